//! Loss recovery: from duplicate ACKs or SACK blocks to what is sent again, and how the window shrinks meanwhile.
//!
//! One state machine serves RFC 6582 (without SACK) and RFC 6675 (with it); the [scoreboard](super::scoreboard) holds what differs.

mod prr;

use prr::Prr;

use super::config::{Config, Impatient, Quirks, Reduction};
use super::congestion::{Acked, CongestionControl, Window};
use super::scoreboard::{Advance, Scoreboard};
use crate::time::Nanos;

/// What the loss recovery is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// No sign of loss.
    #[default]
    Open,
    /// Duplicate ACKs, fewer than the threshold.
    Disorder,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout, until all that was out at it is acknowledged.
    Loss,
}

/// An ACK, as the recovery sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckEvent {
    pub now: Nanos,
    /// The left edge before it.
    pub before: u64,
    /// Its number.
    pub ack: u64,
    /// Whether it counts as a duplicate (RFC 5681, 2; RFC 6675, 2).
    pub duplicate: bool,
    /// What it took from the scoreboard.
    pub advance: Advance,
    /// Bytes delivered by SACK blocks and by the number.
    pub delivered: u64,
    /// The pipe once the scoreboard was updated.
    pub pipe: u64,
    pub srtt: Option<Nanos>,
    /// Whether the window was what limited the sender.
    pub window_limited: bool,
}

/// What follows from an ACK.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Verdict {
    /// Send a segment again at once, whatever the window.
    pub retransmit: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// Fast recovery began.
    pub entered: bool,
}

/// The parts of the sender that recovery works on.
pub(super) struct Parts<'a> {
    pub board: &'a mut Scoreboard,
    pub window: &'a mut Window,
    pub congestion: &'a mut dyn CongestionControl,
}

/// The state of the loss recovery of one sender.
#[derive(Debug, Clone)]
pub(super) struct LossRecovery {
    phase: Phase,
    duplicates: u32,
    threshold: u32,
    limited_transmit: bool,
    pub sack: bool,
    impatient: Impatient,
    quirks: Quirks,
    /// RFC 6582 `recover`, RFC 6675 `RecoveryPoint`: the right edge when the present or last recovery began.
    recover: u64,
    /// Whether `recover` is still ahead.
    recover_ahead: bool,
    /// Whether the next partial ACK is the first one.
    first_partial: bool,
    /// New data that duplicate ACKs let out (RFC 5681, 3.2 step 2: not part of the flight).
    limited_bytes: u64,
    /// `RescueRxt` of RFC 6675: rule 4 may send once the left edge is beyond.
    rescue_beyond: u64,
    prr: Option<Prr>,
    /// Bytes acknowledged beyond whole segments.
    remainder: u64,
    /// When the window last grew or could have.
    grown_at: Nanos,
}

impl LossRecovery {
    pub fn new(config: &Config) -> Self {
        Self {
            phase: Phase::Open,
            duplicates: 0,
            threshold: config.duplicate_threshold,
            limited_transmit: config.limited_transmit,
            sack: config.sack,
            impatient: config.impatient,
            quirks: config.quirks,
            recover: 0,
            recover_ahead: false,
            first_partial: true,
            limited_bytes: 0,
            rescue_beyond: 0,
            prr: match config.reduction {
                Reduction::Classic => None,
                Reduction::Prr => Some(Prr::new(false, config.quirks.prr_sees_bytes_only)),
                Reduction::PrrConservative => {
                    Some(Prr::new(true, config.quirks.prr_sees_bytes_only))
                }
            },
            remainder: 0,
            grown_at: 0,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Mend the board when an ACK shows that the head, taken for delivered, is not: what was counted has arrived further on.
    pub fn correct_head(&self, board: &mut Scoreboard) {
        if self.sack {
            board.mark_head_lost();
        } else if self.quirks.keep_guesses || self.phase == Phase::Recovery {
            board.book_duplicate();
            board.mark_head_lost();
        }
    }

    /// Take an ACK at or beyond the left edge.
    pub fn on_ack(&mut self, event: &AckEvent, parts: &mut Parts<'_>) -> Verdict {
        let mut verdict = Verdict::default();
        if event.duplicate {
            self.on_duplicate(event, parts, &mut verdict);
        }
        if event.ack > event.before {
            self.on_advance(event, parts, &mut verdict);
        }
        verdict
    }

    /// RFC 5681, 3.2; RFC 6675, 5 steps 1 to 4.
    fn on_duplicate(&mut self, event: &AckEvent, parts: &mut Parts<'_>, verdict: &mut Verdict) {
        match self.phase {
            // RFC 6582, 3.2 step 4: after a timeout duplicates tell nothing.
            Phase::Loss => return,
            Phase::Recovery => {
                if !self.sack {
                    parts.board.book_duplicate();
                }
                if let Some(prr) = &mut self.prr {
                    prr.on_duplicate(event, parts);
                }
                return;
            }
            Phase::Open => self.phase = Phase::Disorder,
            Phase::Disorder => {}
        }
        self.duplicates += 1;
        let enough =
            self.duplicates >= self.threshold && self.may_enter(event.ack.max(event.before));
        if enough || (self.sack && self.sacks_tell_loss(parts.board)) {
            self.enter(event, parts);
            verdict.retransmit = true;
            verdict.entered = true;
        } else if !self.sack && self.limited_transmit {
            // RFC 3042: each of the first duplicates lets a new segment out.
            parts.board.book_duplicate();
        }
    }

    /// RFC 6675, 5 step 2: IsLost of the left edge.
    fn sacks_tell_loss(&self, board: &Scoreboard) -> bool {
        if self.quirks.resend_anytime {
            board.second_is_lost()
        } else {
            board.head_is_lost() && self.may_enter(board.start())
        }
    }

    /// Whether what is taken for lost may be sent again now.
    pub fn may_resend(&self) -> bool {
        self.quirks.resend_anytime || matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Whether the first duplicates let no new data out, although SACK blocks show that there is less under way.
    pub fn holds_new_data(&self) -> bool {
        self.phase == Phase::Disorder
            && self.sack
            && !self.limited_transmit
            && !self.quirks.resend_anytime
    }

    /// RFC 6582, 3.2 step 2; RFC 6675, 5.1.
    fn may_enter(&self, left_edge: u64) -> bool {
        if self.quirks.loose_recover {
            left_edge >= self.recover || !self.recover_ahead
        } else if self.sack {
            left_edge >= self.recover
        } else {
            left_edge > self.recover
        }
    }

    fn enter(&mut self, event: &AckEvent, parts: &mut Parts<'_>) {
        if self.sack {
            if !parts.board.head_is_lost() {
                parts.board.mark_head_lost();
            }
        } else {
            let booked = if self.limited_transmit || self.quirks.keep_guesses {
                1
            } else {
                self.threshold
            };
            (0..booked).for_each(|_| parts.board.book_duplicate());
            parts.board.mark_head_lost();
        }
        self.recover = parts.board.end();
        self.recover_ahead = true;
        self.first_partial = true;
        self.phase = Phase::Recovery;
        let pipe = parts.board.pipe();
        let flight = if self.quirks.ssthresh_from_pipe {
            pipe + if self.sack { 0 } else { parts.window.segment() }
        } else {
            parts.board.outstanding().saturating_sub(self.limited_bytes)
        };
        parts.window.ssthresh = parts.congestion.on_loss(event.now, parts.window, flight);
        match &mut self.prr {
            Some(prr) => prr.enter(event, parts, pipe),
            None => parts.window.cwnd = parts.window.ssthresh,
        }
    }

    /// An ACK of new data.
    fn on_advance(&mut self, event: &AckEvent, parts: &mut Parts<'_>, verdict: &mut Verdict) {
        let segments = self.whole_segments(event.ack - event.before, parts.window.segment());
        if !event.duplicate {
            self.duplicates = 0;
            self.limited_bytes = 0;
            if !self.sack && !self.quirks.keep_guesses && self.phase != Phase::Recovery {
                parts.board.clear_booked();
            }
        }
        match self.phase {
            Phase::Recovery if event.ack < self.recover => {
                self.on_partial(event, segments, parts, verdict)
            }
            Phase::Loss if event.ack < self.recover => {
                self.grow(event, segments, parts);
                verdict.restart_timer = true;
            }
            _ => self.on_full(event, segments, parts, verdict),
        }
    }

    /// RFC 6582, 3.2 step 3, partial acknowledgements; RFC 6675, 5 (B).
    fn on_partial(
        &mut self,
        event: &AckEvent,
        segments: u64,
        parts: &mut Parts<'_>,
        verdict: &mut Verdict,
    ) {
        if !self.sack {
            parts.board.mark_head_lost();
        }
        if let Some(prr) = &mut self.prr {
            if segments >= 1 {
                prr.on_partial(event, parts);
            }
        }
        verdict.retransmit =
            !self.sack || (self.quirks.eager_sack && !parts.board.head_is_resent());
        let impatient = match self.impatient {
            Impatient::Never => false,
            Impatient::WithoutSack => !self.sack,
            Impatient::Always => true,
        };
        verdict.restart_timer = self.first_partial || !impatient;
        self.first_partial = false;
    }

    /// An ACK of new data that ends a recovery, or with none under way.
    fn on_full(
        &mut self,
        event: &AckEvent,
        mut segments: u64,
        parts: &mut Parts<'_>,
        verdict: &mut Verdict,
    ) {
        let from = self.phase;
        match from {
            Phase::Open => {}
            Phase::Disorder if event.duplicate => {}
            Phase::Disorder => self.phase = Phase::Open,
            Phase::Recovery => {
                segments = (event.ack - event.before) / parts.window.segment();
                self.leave(parts);
            }
            Phase::Loss => {
                segments = (event.ack - self.recover) / parts.window.segment();
                self.phase = Phase::Open;
            }
        }
        if event.ack >= self.recover {
            self.recover_ahead = false;
        }
        if self.phase == Phase::Open && (from != Phase::Recovery || self.quirks.grow_on_exit) {
            self.grow(event, segments, parts);
        }
        verdict.restart_timer = self.phase == Phase::Open || !self.quirks.no_restart_in_disorder;
    }

    /// RFC 6582, 3.2 step 3, full acknowledgement: the window becomes `ssthresh`, without a burst (option 1).
    fn leave(&mut self, parts: &mut Parts<'_>) {
        self.phase = Phase::Open;
        self.duplicates = 0;
        self.first_partial = true;
        parts.window.cwnd = parts.window.ssthresh;
        if !self.quirks.keep_guesses {
            if !self.sack {
                parts.board.clear_booked();
            }
            let segment = parts.window.segment();
            let burstless = parts.board.outstanding().max(segment) + segment;
            if self.prr.is_none() {
                parts.window.cwnd = parts.window.ssthresh.min(burstless);
            }
        }
    }

    fn whole_segments(&mut self, bytes: u64, segment: u64) -> u64 {
        self.remainder += bytes;
        let segments = self.remainder / segment;
        self.remainder %= segment;
        segments
    }

    fn grow(&mut self, event: &AckEvent, segments: u64, parts: &mut Parts<'_>) {
        if event.window_limited || self.quirks.grow_unused {
            let bytes = event.ack - event.before;
            parts.congestion.on_ack(
                parts.window,
                &Acked {
                    now: event.now,
                    segments,
                    bytes,
                    srtt: event.srtt,
                },
            );
        } else {
            // RFC 7661, 4.4.1: what was not used is not probed.
            parts.congestion.on_idle(self.grown_at, event.now);
        }
        self.grown_at = event.now;
    }

    /// RFC 5681, 3.1 (4): the retransmission timer has expired.
    pub fn on_timeout(&mut self, now: Nanos, parts: &mut Parts<'_>) {
        let again = self.phase == Phase::Loss && parts.board.head_is_resent();
        let flight = if self.quirks.ssthresh_from_pipe {
            parts.board.pipe()
        } else {
            parts.board.outstanding()
        };
        self.duplicates = 0;
        self.limited_bytes = 0;
        parts.board.mark_all_lost();
        self.recover = parts.board.end();
        self.recover_ahead = true;
        self.first_partial = true;
        self.phase = Phase::Loss;
        if !again || self.quirks.ssthresh_at_each_timeout {
            parts.window.ssthresh = parts.congestion.on_loss(now, parts.window, flight);
        }
        parts.congestion.on_timeout();
        parts.window.cwnd = parts.window.segment();
    }

    /// RFC 6675, NextSeg rules 3 and 4: a segment to send again when nothing is known lost and there is no new data.
    pub fn speculative(&mut self, board: &Scoreboard) -> Option<usize> {
        if !self.sack || self.phase != Phase::Recovery {
            return None;
        }
        let unsacked = board.next_unsacked(self.quirks.eager_sack);
        if unsacked.is_some() || self.quirks.eager_sack || board.start() <= self.rescue_beyond {
            return unsacked;
        }
        self.rescue_beyond = self.recover;
        board.last_unsacked()
    }

    /// Account for `bytes` that left.
    pub fn on_sent(&mut self, bytes: u64, again: bool) {
        match self.phase {
            Phase::Recovery => {
                if let Some(prr) = &mut self.prr {
                    prr.on_sent(bytes);
                }
            }
            Phase::Disorder if !again => self.limited_bytes += bytes,
            _ => {}
        }
    }
}
