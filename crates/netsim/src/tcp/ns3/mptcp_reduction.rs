//! The window in the MPTCP model of ns-3.

use super::super::recovery::reduction::WindowReduction;
use super::super::recovery::{AckEvent, Episode, SenderParts};

/// The congestion control's decrease of the window itself, not of what is under way, and congestion avoidance from there on; the
/// retransmission timeout doubles with it (Chihani and Collange 2011).
#[derive(Debug, Clone)]
pub struct Ns3Mptcp;

impl WindowReduction for Ns3Mptcp {
    fn enter(&mut self, event: &AckEvent, _: &Episode, parts: &mut SenderParts<'_>) {
        parts.congestion.on_loss_at_once(event.now, parts.window);
    }

    fn leave(&mut self, _: &mut SenderParts<'_>) {}

    fn credit_on_exit(&self, event: &AckEvent) -> u64 {
        event.ack - event.before
    }

    fn doubles_timeout(&self) -> bool {
        true
    }
}
