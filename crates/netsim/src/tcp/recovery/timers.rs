//! The retransmission timer, the timer of a detector that goes by time, and tail loss probes.

use super::super::config::RetransmissionScope;
use super::super::receiver::OFF;
use super::super::scoreboard::{Advance, Scoreboard};
use super::super::segment::Segment;
use super::tail_probe::TailProbe;
use super::{AckEvent, AckVerdict, LossRecovery, Phase, SenderParts};
use crate::time::Nanos;

impl LossRecovery {
    /// RFC 8985, 7.4: a loss that a probe made good is a sign of congestion like any other.
    pub(super) fn look_after_probe(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        parts: &mut SenderParts<'_>,
    ) {
        let Some(probe) = &mut self.probe else { return };
        let made_good = probe.on_ack(event, segment);
        if made_good && !matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            parts.congestion.on_loss(
                event.now,
                parts.window,
                event.flight + event.ack - event.before,
            );
            parts.set_window(parts.window.ssthresh);
        }
    }

    /// Whether tail loss probes are sent.
    pub fn probes(&self) -> bool {
        self.probe.is_some()
    }

    /// Set the timer of the tail loss probe; `deadline` is when the retransmission timer expires.
    pub fn arm_probe(
        &mut self,
        now: Nanos,
        srtt: Option<Nanos>,
        deadline: Nanos,
        board: &Scoreboard,
    ) {
        if let Some(probe) = &mut self.probe {
            probe.arm(now, srtt, deadline, &self.episode, board);
        }
    }

    /// The tail loss probe left: the right edge after it, and whether it carried old data.
    pub fn on_probe_sent(&mut self, end: u64, again: bool) {
        if let Some(probe) = &mut self.probe {
            probe.on_sent(end, again);
        }
    }

    pub(super) fn probe_at(&self) -> Nanos {
        self.probe.as_ref().map_or(OFF, TailProbe::timer)
    }

    /// RFC 5681, 3.1 (4): the retransmission timer has expired.
    pub fn on_timeout(&mut self, now: Nanos, parts: &mut SenderParts<'_>) {
        let again = self.episode.phase == Phase::Loss && parts.board.head_is_resent();
        let held = self.holds_window(now);
        if let (false, Some(response)) = (again || held, &mut self.response) {
            response.on_reduction(now, parts.window, parts.board, true);
        }
        // RFC 5681 equation 4 by the pipe of RFC 6675: what is SACKed or lost has left the network, and would let slow start go on
        // to many times what the path holds.
        let flight = parts.board.pipe();
        let expired = self.detector.expired_before(now);
        self.detector.on_timeout();
        self.detect_at = self.detector.timer();
        if let Some(probe) = &mut self.probe {
            probe.cancel();
        }
        match self.repair {
            RetransmissionScope::All => parts.board.mark_all_lost(expired),
            RetransmissionScope::First => parts.board.mark_head_lost(),
        }
        let recover = self.recover(parts.board);
        let episode = &mut self.episode;
        episode.limited_bytes = 0;
        episode.recover = recover;
        episode.recover_ahead = true;
        episode.phase = Phase::Loss;
        self.first_partial = true;
        if held {
            return;
        }
        if self.repair == RetransmissionScope::First {
            return parts.congestion.on_loss_at_once(now, parts.window);
        }
        if !again || self.reduction.lowers_at_each_timeout() {
            parts.congestion.on_loss(now, parts.window, flight);
        }
        parts.congestion.on_timeout(parts.window);
        // RACK takes what left last for under way still: the left edge leaves beside it, or nothing would ever leave again.
        let least = parts.board.pipe() + parts.window.segment();
        if parts.window.cwnd < least {
            parts.set_window(least);
        }
    }

    /// Whether the first segment is sent again after a timeout whatever the window: the rest is still taken for under way.
    pub fn forces_after_timeout(&self) -> bool {
        self.repair == RetransmissionScope::First
    }

    /// When the detector wants to be asked next; [`OFF`] if it has no timer.
    pub fn timer(&self) -> Nanos {
        self.detect_at.min(self.probe_at())
    }

    /// Let the detector look at the time; what follows.
    pub fn on_timer(
        &mut self,
        now: Nanos,
        srtt: Option<Nanos>,
        parts: &mut SenderParts<'_>,
    ) -> AckVerdict {
        let mut verdict = AckVerdict::default();
        if now >= self.probe_at() {
            verdict.probe = true;
            return verdict;
        }
        let lost = self.detector.on_timer(now, &self.episode, parts.board);
        self.detect_at = self.detector.timer();
        let edge = parts.board.start();
        let event = AckEvent {
            now,
            before: edge,
            ack: edge,
            duplicate: false,
            advance: Advance::default(),
            delivered: 0,
            pipe: parts.board.pipe(),
            srtt,
            rtt: None,
            window: *parts.window,
            window_limited: true,
            flight: parts.board.outstanding(),
            unsent: false,
        };
        self.begin_if_lost(lost, &event, parts, &mut verdict);
        verdict
    }
}
