//! No fast retransmit.

use super::super::super::scoreboard::Scoreboard;
use super::super::{AckEvent, Episode};
use super::LossDetector;

/// Takes nothing for lost before the retransmission timer expires. So do, by what Alheid et al. (ICT 2016, V-B) say of it, the TCP-DOOR
/// and the F-RTO of ns-3's MPTCP.
#[derive(Debug, Clone)]
pub struct TimerOnly;

impl LossDetector for TimerOnly {
    fn on_duplicate(&mut self, _: &AckEvent, _: &Episode, _: &mut Scoreboard) -> bool {
        false
    }

    fn on_progress(&mut self, _: &Episode, _: &mut Scoreboard) {}

    fn on_enter(&mut self, _: &Episode, _: &mut Scoreboard) {}

    fn on_leave(&mut self, _: &Episode, _: &mut Scoreboard) {}

    fn on_timeout(&mut self) {}

    fn speculative(&mut self, _: &Episode, _: &Scoreboard) -> Option<usize> {
        None
    }
}
