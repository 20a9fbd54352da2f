//! What an ACK does to a recovery: begin it, carry it on, end it; and when the window grows.

use super::super::config::{Impatient, RetransmissionScope, WindowGrowth};
use super::super::congestion::Acked;
use super::super::scoreboard::Scoreboard;
use super::super::segment::Segment;
use super::{AckEvent, AckVerdict, LossRecovery, Phase, SenderParts};

impl LossRecovery {
    /// Take an ACK at or beyond the left edge.
    pub fn on_ack(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        parts: &mut SenderParts<'_>,
    ) -> AckVerdict {
        let mut verdict = AckVerdict::default();
        if event.duplicate && !self.excuses(event, segment, parts, &mut verdict) {
            self.on_duplicate(event, parts, &mut verdict);
            verdict.opened = self.open_on_duplicate(event, parts);
        }
        if event.ack > event.before {
            self.on_advance(event, parts, &mut verdict);
        }
        if self.timed {
            let lost = self
                .detector
                .on_ack(event, segment, &self.episode, parts.board);
            self.begin_if_lost(lost, event, parts, &mut verdict);
            self.detect_at = self.detector.timer();
            self.look_after_probe(event, segment, parts);
        }
        if let Some(response) = &mut self.response {
            if let Some(undo) = response.on_ack(event, segment, &self.episode) {
                self.undo(&undo, parts);
                verdict.undone = true;
                verdict.retransmit = false;
            }
        }
        verdict
    }

    /// Begin a recovery for what a detector by time takes for lost, unless one is under way.
    pub(super) fn begin_if_lost(
        &mut self,
        lost: bool,
        event: &AckEvent,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) {
        if lost && !matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            self.enter(event, parts);
            verdict.retransmit = true;
            verdict.entered = true;
        }
    }

    /// RFC 5681, 3.2; RFC 6675, 5 steps 1 to 4.
    pub(super) fn on_duplicate(
        &mut self,
        event: &AckEvent,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) {
        match self.episode.phase {
            Phase::Loss if self.detector.counts_after_timeout() => {}
            Phase::Loss => return,
            Phase::Recovery => {
                if !self.episode.sack && self.repair == RetransmissionScope::All {
                    parts.board.book_duplicate();
                }
                self.reduction().on_duplicate(event, parts);
                return;
            }
            Phase::Open => self.episode.phase = Phase::Disorder,
            Phase::Disorder => {}
        }
        if self
            .detector
            .on_duplicate(event, &self.episode, parts.board)
        {
            self.enter(event, parts);
            verdict.retransmit = true;
            verdict.entered = true;
            verdict.back_off = self.reduction.doubles_timeout();
        }
    }

    /// Open the window for a duplicate, if the response does; whether it does.
    fn open_on_duplicate(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) -> bool {
        let response = self.response.as_ref();
        let opens = response.is_some_and(|response| response.opens_on_duplicates());
        if opens {
            let acked = Acked {
                now: event.now,
                segments: 1,
                bytes: parts.window.segment(),
                srtt: event.srtt,
                delay: None,
                flight: event.flight,
            };
            parts.congestion.on_ack(parts.window, &acked);
        }
        opens
    }

    pub(super) fn enter(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) {
        self.detector.on_enter(&self.episode, parts.board);
        self.held = self.holds_window(event.now);
        if let (false, Some(response)) = (self.held, &mut self.response) {
            response.on_reduction(event.now, parts.window, parts.board, false);
        }
        let recover = self.recover(parts.board);
        let episode = &mut self.episode;
        episode.recover = recover;
        episode.recover_ahead = true;
        episode.phase = Phase::Recovery;
        if let Some(probe) = &mut self.probe {
            probe.cancel();
        }
        self.first_partial = true;
        let episode = self.episode;
        self.reduction().enter(event, &episode, parts);
    }

    /// The number whose acknowledgement ends an episode: of all that is out now, or of anything.
    pub(super) fn recover(&self, board: &Scoreboard) -> u64 {
        match self.repair {
            RetransmissionScope::All => board.end(),
            RetransmissionScope::First => board.start() + 1,
        }
    }

    /// An ACK of new data.
    pub(super) fn on_advance(
        &mut self,
        event: &AckEvent,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) {
        let segments = self.whole_segments(event.ack - event.before, parts.window.segment());
        if !event.duplicate {
            self.episode.limited_bytes = 0;
            self.detector.on_progress(&self.episode, parts.board);
        }
        match self.episode.phase {
            Phase::Recovery if event.ack < self.episode.recover => {
                self.on_partial(event, segments, parts, verdict)
            }
            Phase::Loss if event.ack < self.episode.recover => {
                self.grow(event, [event.ack - event.before, segments], parts);
                verdict.restart_timer = true;
            }
            _ => self.on_full(event, segments, parts, verdict),
        }
    }

    /// RFC 6582, 3.2 step 3, partial acknowledgements; RFC 6675, 5 (B).
    pub(super) fn on_partial(
        &mut self,
        event: &AckEvent,
        segments: u64,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) {
        if !self.episode.sack {
            parts.board.mark_head_lost();
        }
        if segments >= 1 {
            self.reduction().on_partial(event, parts);
        }
        verdict.retransmit = !self.episode.sack || self.detector.forces_partial(parts.board);
        let impatient = match self.impatient {
            Impatient::Never => false,
            Impatient::WithoutSack => !self.episode.sack,
            Impatient::Always => true,
        };
        verdict.restart_timer = self.first_partial || !impatient;
        self.first_partial = false;
    }

    /// An ACK of new data that ends a recovery, or with none under way.
    pub(super) fn on_full(
        &mut self,
        event: &AckEvent,
        mut segments: u64,
        parts: &mut SenderParts<'_>,
        verdict: &mut AckVerdict,
    ) {
        let from = self.episode.phase;
        let mut bytes = event.ack - event.before;
        match from {
            Phase::Open => {}
            Phase::Disorder if event.duplicate => {}
            Phase::Disorder => self.episode.phase = Phase::Open,
            Phase::Recovery => {
                bytes = self.reduction().credit_on_exit(event);
                segments = bytes / parts.window.segment();
                self.leave(parts);
            }
            Phase::Loss => {
                segments = (event.ack - self.episode.recover) / parts.window.segment();
                self.episode.phase = Phase::Open;
            }
        }
        if event.ack >= self.episode.recover {
            self.episode.recover_ahead = false;
        }
        let open = self.episode.phase == Phase::Open;
        if open && bytes > 0 {
            self.grow(event, [bytes, segments], parts);
        }
        verdict.restart_timer = open || self.detector.disorder_restarts_timer();
    }

    pub(super) fn leave(&mut self, parts: &mut SenderParts<'_>) {
        self.episode.phase = Phase::Open;
        self.first_partial = true;
        self.detector.on_leave(&self.episode, parts.board);
        self.reduction().leave(parts);
    }

    pub(super) fn whole_segments(&mut self, bytes: u64, segment: u64) -> u64 {
        self.remainder += bytes;
        let segments = self.remainder / segment;
        self.remainder %= segment;
        segments
    }

    /// Let the window grow by what counts of an ACK, in bytes and in segments.
    pub(super) fn grow(
        &mut self,
        event: &AckEvent,
        [bytes, segments]: [u64; 2],
        parts: &mut SenderParts<'_>,
    ) {
        if event.window_limited || self.growth == WindowGrowth::Always {
            let timed = event.advance.timed.filter(|&(_, again)| !again);
            parts.congestion.on_ack(
                parts.window,
                &Acked {
                    now: event.now,
                    segments,
                    bytes,
                    srtt: event.srtt,
                    delay: timed.map(|(sent_at, _)| event.now - sent_at),
                    flight: event.flight,
                },
            );
        } else {
            // RFC 7661, 4.4.1: what was not used is not probed.
            parts.congestion.on_idle(self.grown_at, event.now);
        }
        self.grown_at = event.now;
    }
}
