//! No reduction: PR-R (Alheid, Doufexi, Kaleshi, "Packet Reordering Response for MPTCP under Wireless Heterogeneous Environment",
//! ICT 2016, algorithm 1).

use super::super::{AckEvent, Episode, SenderParts};
use super::WindowReduction;

/// A fast retransmit sends the segment again and leaves window and threshold as they are; a timeout shrinks them as always.
#[derive(Debug, Clone)]
pub struct KeepWindow;

impl WindowReduction for KeepWindow {
    fn enter(&mut self, _event: &AckEvent, _episode: &Episode, _parts: &mut SenderParts<'_>) {}

    fn leave(&mut self, _parts: &mut SenderParts<'_>) {}

    /// The ACK of the lost segment opens the window as any other.
    fn credit_on_exit(&self, event: &AckEvent) -> u64 {
        event.ack - event.before
    }
}
