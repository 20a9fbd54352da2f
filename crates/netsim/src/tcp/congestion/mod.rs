//! Congestion control: how large the window may be.

pub mod bbr;
pub mod coupled;
pub(super) mod cubic;
pub(super) mod curve;
pub(super) mod hystart;
mod linux_cubic;
mod reno;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub use linux_cubic::LinuxCubic;
pub use reno::Reno;

use super::config::CongestionAlgorithm;
use super::delivery_rate::{RateSample, SampleRule};
use super::ns3::{Ns3Bbr, Ns3Cubic};
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

    /// The window in segments.
    pub fn segments(&self) -> f64 {
        self.cwnd as f64 / f64::from(self.mss)
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
    /// Since the oldest acknowledged segment left, if it was sent once.
    pub delay: Option<Nanos>,
    /// Bytes still unacknowledged.
    pub flight: u64,
}

/// What an ACK says of the path, in recovery or outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// The time.
    pub now: Nanos,
    /// Bytes newly delivered, by number or by SACK blocks.
    pub bytes: u64,
    /// A sample of the round-trip time, if it gives one.
    pub rtt: Option<Nanos>,
    /// The smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// Bytes estimated to be under way after it.
    pub pipe: u64,
    /// Bytes estimated to be under way before it.
    pub prior_pipe: u64,
    /// Bytes taken for lost since the ACK before; for a control of ns-3 by how much an ACK changes what is taken for lost.
    pub lost: u64,
    /// Bytes delivered in all.
    pub total: u64,
    /// How fast the path has carried it, if that can be told.
    pub sample: Option<RateSample>,
    /// Whether a recovery is under way, or what follows a timeout.
    pub recovering: bool,
}

/// A congestion control: whatever changes the window does it here. One object belongs to one connection; coupled controls share
/// state between theirs.
pub trait CongestionControl: std::fmt::Debug + Send {
    /// How deliveries are sampled for [`on_delivery`](Self::on_delivery), if that does anything: most controls need not be told each time.
    fn samples(&self) -> Option<SampleRule> {
        None
    }

    /// The connection is open, with the handshake's round-trip time if that was measured.
    fn on_open(&mut self, _now: Nanos, _window: &mut Window, _srtt: Option<Nanos>) {}

    /// Data leaves while nothing is under way. Told to controls alone that look at deliveries.
    fn on_restart(&mut self, _now: Nanos, _window: &mut Window) {}

    /// A fast recovery of ns-3 begins with `pipe` bytes under way, as an ACK delivers this many; [`on_loss`](Self::on_loss) follows.
    fn on_recovery(&mut self, _window: &mut Window, _pipe: u64, _delivered: u64) {}

    /// Learn what an ACK has delivered; comes before all else that it causes.
    fn on_delivery(&mut self, _window: &mut Window, _delivery: &Delivery) {}

    /// Grow the window after an ACK of new data outside fast recovery.
    fn on_ack(&mut self, window: &mut Window, acked: &Acked);

    /// Set `ssthresh` after a loss with `flight` bytes outstanding; ends the present growth.
    fn on_loss(&mut self, now: Nanos, window: &mut Window, flight: u64);

    /// Set the window to `cwnd`, which the reduction in a recovery wants.
    fn on_reduction(&mut self, window: &mut Window, cwnd: u64) {
        window.cwnd = cwnd;
    }

    /// Set the window after the retransmission timer has expired ([`on_loss`](Self::on_loss) was called before). RFC 5681, 3.1: the
    /// loss window of one segment.
    fn on_timeout(&mut self, window: &mut Window) {
        window.cwnd = window.segment();
    }

    /// Shrink the window for a loss at once, to a segment at least, with congestion avoidance from two segments on (the MPTCP model of
    /// ns-3, whose threshold counts segments in one place and bytes in another).
    fn on_loss_at_once(&mut self, now: Nanos, window: &mut Window) {
        let left = window.cwnd / 2;
        self.on_loss(now, window, window.cwnd);
        window.cwnd = left.max(window.segment());
        window.ssthresh = 2 * window.segment();
    }

    /// Go back to the window `before` a reduction that was spurious, if the present one is smaller.
    fn on_undo(&mut self, window: &mut Window, before: &Window) {
        window.cwnd = window.cwnd.max(before.cwnd);
        window.ssthresh = window.ssthresh.max(before.ssthresh);
    }

    /// Shrink the window of a subflow that holds the others of its connection back: half of both, as Linux's MPTCP penalises.
    fn on_penalty(&mut self, window: &mut Window) {
        let segment = window.segment();
        window.cwnd = (window.cwnd / 2).max(segment);
        if window.ssthresh < u64::MAX / 2 {
            window.ssthresh = (window.ssthresh / 2).max(2 * segment);
        }
    }

    /// Take the segment size that the handshake agreed on; the window keeps its number of segments.
    fn on_mss(&mut self, window: &mut Window, mss: u32) {
        window.cwnd = window.cwnd / window.segment() * u64::from(mss);
        window.mss = mss;
    }

    /// Learn that the sender has been idle from `since` to `now`, which is no time to grow by.
    fn on_idle(&mut self, _since: Nanos, _now: Nanos) {}

    /// The rate at which data is to leave in bytes a nanosecond, if the control sets one; `srtt` is the smoothed round-trip time. Asked
    /// only of controls that look at deliveries.
    fn pacing_rate(&self, _window: &Window, _srtt: Option<Nanos>) -> Option<f64> {
        None
    }
}

/// The congestion control that `algorithm` names.
pub fn build(algorithm: CongestionAlgorithm) -> Box<dyn CongestionControl> {
    match algorithm {
        CongestionAlgorithm::Reno(growth) => Box::new(Reno::new(growth)),
        CongestionAlgorithm::Cubic => Box::<Cubic>::default(),
        CongestionAlgorithm::LinuxCubic { paced } => Box::new(LinuxCubic::new(paced)),
        CongestionAlgorithm::Ns3Cubic => Box::new(Ns3Cubic::default()),
        CongestionAlgorithm::Bbr { seed } => Box::new(Bbr::new(seed)),
        CongestionAlgorithm::Ns3Bbr { seed } => Box::new(Ns3Bbr::new(seed)),
    }
}
