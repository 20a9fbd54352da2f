//! What is taken for lost, and when.

mod duplicates;
mod rack;
mod tcp_pr;
mod timer_only;

pub use duplicates::DuplicateAcks;
pub use rack::Rack;
pub use tcp_pr::TcpPr;
pub use timer_only::TimerOnly;

use super::super::config::{Config, Detection};
use super::super::ns3::{Ns3DuplicateAcks, Ns3MptcpDuplicateAcks};
use super::super::receiver::OFF;
use super::super::scoreboard::Scoreboard;
use super::super::segment::Segment;
use super::{AckEvent, Episode, Phase};
use crate::time::Nanos;

/// Tells loss from delay and reordering. What is left to its default is as RFC 6582 and RFC 6675 have it.
pub trait LossDetector: std::fmt::Debug + Send {
    /// Whether an ACK that does not advance counts as a duplicate, without SACK; `old_window` is the window before it.
    fn is_duplicate(&self, segment: &Segment, old_window: u64) -> bool {
        // RFC 5681, 2: no data, no SYN or FIN, the window as before.
        segment.payload_bytes == 0
            && !segment.syn
            && !segment.fin
            && segment.window_bytes == old_window
    }

    /// Whether [`on_ack`](Self::on_ack), [`on_sent`](Self::on_sent) and the timer do anything: most detectors need not be asked.
    fn looks_at_acks(&self) -> bool {
        false
    }

    /// Take any ACK, after the rest of the recovery did; whether data is lost by it.
    fn on_ack(
        &mut self,
        _event: &AckEvent,
        _segment: &Segment,
        _episode: &Episode,
        _board: &mut Scoreboard,
    ) -> bool {
        false
    }

    /// A segment leaves.
    fn on_sent(&mut self, _now: Nanos) {}

    /// At a retransmission timeout: what left later may yet be acknowledged.
    fn expired_before(&self, _now: Nanos) -> Nanos {
        Nanos::MAX
    }

    /// Take a duplicate ACK outside recovery; whether data is lost by it, so that a recovery begins.
    fn on_duplicate(&mut self, _: &AckEvent, _: &Episode, _: &mut Scoreboard) -> bool {
        false
    }

    /// Whether duplicates count after a timeout too. RFC 6582, 3.2 step 4: they tell nothing then.
    fn counts_after_timeout(&self) -> bool {
        false
    }

    /// An ACK of new data that is no duplicate has arrived.
    fn on_progress(&mut self, _episode: &Episode, _board: &mut Scoreboard) {}

    /// A recovery begins: mark on the board what is lost.
    fn on_enter(&mut self, _episode: &Episode, _board: &mut Scoreboard) {}

    /// A recovery has ended.
    fn on_leave(&mut self, _episode: &Episode, _board: &mut Scoreboard) {}

    /// The retransmission timer has expired.
    fn on_timeout(&mut self) {}

    /// A segment to send again in a recovery when nothing is known lost and there is no new data.
    fn speculative(&mut self, _episode: &Episode, _board: &Scoreboard) -> Option<usize> {
        None
    }

    /// Whether a left edge that was taken for delivered is now taken for lost, without SACK.
    fn corrects_head(&self, episode: &Episode) -> bool {
        episode.phase == Phase::Recovery
    }

    /// Whether what is taken for lost may be sent again now.
    fn may_resend(&self, episode: &Episode) -> bool {
        matches!(episode.phase, Phase::Recovery | Phase::Loss)
    }

    /// Whether duplicate ACKs below the threshold let no new data out.
    fn holds_new_data(&self) -> bool {
        false
    }

    /// Whether a partial ACK with SACK sends a segment outside the window.
    fn forces_partial(&self, _board: &Scoreboard) -> bool {
        false
    }

    /// Whether a forced retransmission with nothing known lost sends new data instead.
    fn prefers_new_data(&self) -> bool {
        false
    }

    /// Whether an ACK that both advances and carries new SACK blocks restarts the retransmission timer.
    fn disorder_restarts_timer(&self) -> bool {
        true
    }

    /// When [`on_timer`](Self::on_timer) is due.
    fn timer(&self) -> Nanos {
        OFF
    }

    /// Look at the time; whether data is lost by it.
    fn on_timer(&mut self, _now: Nanos, _episode: &Episode, _board: &mut Scoreboard) -> bool {
        false
    }
}

/// The detector that a configuration asks for.
pub fn build(config: &Config) -> Box<dyn LossDetector> {
    let (threshold, limited) = (config.duplicate_threshold, config.limited_transmit);
    match config.detection {
        Detection::DuplicateAcks => Box::new(DuplicateAcks::new(threshold, limited)),
        Detection::Ns3 => Box::new(Ns3DuplicateAcks::new(threshold, limited)),
        Detection::Ns3Mptcp(method) => Box::new(Ns3MptcpDuplicateAcks::new(threshold, method)),
        Detection::TimerOnly => Box::new(TimerOnly),
        Detection::Rack => Box::new(Rack::new(config)),
        Detection::Delay => Box::<TcpPr>::default(),
    }
}
