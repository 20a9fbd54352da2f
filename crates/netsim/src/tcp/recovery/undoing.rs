//! Reductions that are taken back, or held off.

use super::super::congestion::Window;
use super::super::segment::Segment;
use super::response::{SpuriousResponse, Undo};
use super::{AckEvent, AckVerdict, LossRecovery, Phase, SenderParts};
use crate::time::Nanos;

impl LossRecovery {
    /// Take reductions back by another response.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.response = Some(response);
        self.looks_at_all = true;
    }

    /// Whether a duplicate does not count, and takes a reduction back instead.
    pub(super) fn excuses(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.excuses_duplicate(event, segment));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
            verdict.undone = true;
        }
        undo.is_some()
    }

    /// Whether an ACK is ignored as if it had been lost.
    pub fn ignores_ack(&mut self, window: &Window) -> bool {
        let response = self.response.as_mut();
        response.is_some_and(|response| response.ignores_ack(window))
    }

    /// The connection has seen that what was sent again on this subflow had arrived; whether a reduction was undone.
    pub fn on_needless(&mut self, parts: &mut SenderParts<'_>) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.on_needless(parts.window));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
        }
        undo.is_some()
    }

    /// Whether window, threshold and timeout stay as they are for the present, whatever is lost.
    pub fn holds_window(&self, now: Nanos) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| response.holds_window(now))
    }

    /// Segments have arrived in another order than they left; whether a reduction was undone.
    pub fn on_out_of_order(&mut self, now: Nanos, rto: Nanos, parts: &mut SenderParts<'_>) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.on_out_of_order(now, rto));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
        }
        undo.is_some()
    }

    /// Take a reduction back that was none of the network's making.
    pub(super) fn undo(&mut self, undo: &Undo, parts: &mut SenderParts<'_>) {
        if undo.resume && matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            self.episode.phase = Phase::Open;
            self.first_partial = true;
            parts.board.clear_lost();
            self.detector.on_leave(&self.episode, parts.board);
        }
        parts.congestion.on_undo(parts.window, &undo.window);
    }
}
