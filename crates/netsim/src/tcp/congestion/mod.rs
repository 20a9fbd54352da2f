//! Congestion control: how large the window may be.

mod cubic;
mod reno;

pub use cubic::Cubic;
pub use reno::Reno;

use super::config::CongestionAlgorithm;
use crate::time::Nanos;

/// The congestion window and its threshold, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The congestion window.
    pub cwnd: u64,
    /// The slow-start threshold.
    pub ssthresh: u64,
    /// The segment size.
    pub mss: u32,
}

impl Window {
    /// The segment size in the type of the window.
    pub fn segment(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Whether the window doubles each round trip (RFC 5681, 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// What an ACK of new data says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Acked {
    /// The time.
    pub now: Nanos,
    /// Full segments acknowledged, remainders carried over.
    pub segments: u64,
    /// Bytes acknowledged.
    pub bytes: u64,
    /// The smoothed round-trip time.
    pub srtt: Option<Nanos>,
}

/// A congestion control. One object belongs to one connection; coupled controls share state between theirs.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// Grow `window` after an ACK of new data outside fast recovery.
    fn on_ack(&mut self, window: &mut Window, acked: &Acked);

    /// The threshold after a loss with `flight` bytes outstanding; ends the present growth.
    fn on_loss(&mut self, now: Nanos, window: &Window, flight: u64) -> u64;

    /// Learn that the retransmission timer has expired ([`on_loss`](Self::on_loss) was asked before).
    fn on_timeout(&mut self) {}

    /// Learn that the sender has been idle from `since` to `now`, which is no time to grow by.
    fn on_idle(&mut self, _since: Nanos, _now: Nanos) {}

    /// Its name in results.
    fn name(&self) -> &'static str;
}

/// The congestion control that `algorithm` names.
pub fn build(algorithm: CongestionAlgorithm) -> Box<dyn CongestionControl> {
    match algorithm {
        CongestionAlgorithm::Reno(growth) => Box::new(Reno::new(growth)),
        CongestionAlgorithm::Cubic(settings) => Box::new(Cubic::new(settings)),
    }
}
