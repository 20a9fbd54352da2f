//! The window in the MPTCP model of ns-3.

use super::super::{AckEvent, Episode, Parts};
use super::WindowReduction;

/// The congestion control's decrease of the window itself, not of what is under way, and congestion avoidance from there on
/// (Chihani and Collange 2011).
#[derive(Debug, Clone)]
pub struct Ns3Mptcp;

impl WindowReduction for Ns3Mptcp {
    fn enter(&mut self, event: &AckEvent, _: &Episode, parts: &mut Parts<'_>) {
        let cwnd = parts.window.cwnd;
        parts.congestion.on_loss(event.now, parts.window, cwnd);
        parts.set_window(parts.window.ssthresh);
    }

    fn leave(&mut self, _: &mut Parts<'_>) {}

    fn grows_on_exit(&self) -> bool {
        true
    }
}
