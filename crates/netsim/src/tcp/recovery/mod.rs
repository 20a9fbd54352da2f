//! Loss recovery: from what ACKs show to what is sent again, and how the window shrinks meanwhile.
//!
//! | part | interface | decides |
//! |---|---|---|
//! | [`detector`] | [`LossDetector`] | what is taken for lost, and when |
//! | [`reduction`] | [`WindowReduction`] | how the window shrinks while lost data is sent again |
//! | [`response`] | [`SpuriousResponse`] | what is remembered of a reduction, and when it is undone |
//!
//! With RACK go [tail loss probes](tail_probe). [`LossRecovery`] holds the phases and lets the three act; all changes of the window pass through the
//! [`CongestionControl`]. The [scoreboard](super::scoreboard) holds what is under way.

pub mod detector;
pub mod reduction;
pub mod response;
pub mod tail_probe;

pub use detector::LossDetector;
use reduction::Keep;
pub use reduction::WindowReduction;
pub use response::SpuriousResponse;
use tail_probe::TailProbe;

use super::config::{Config, Detection, Impatient, Repair, WindowGrowth};
use super::congestion::{Acked, CongestionControl, Window};
use super::receiver::OFF;
use super::scoreboard::{Advance, Scoreboard, Transmission};
use super::segment::Segment;
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
pub struct AckEvent {
    /// When it arrived.
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
    /// The smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// The sample of the round-trip time that the ACK gives, if it gives one.
    pub rtt: Option<Nanos>,
    /// The congestion window before what the ACK causes.
    pub window: Window,
    /// Whether the window was what limited the sender.
    pub window_limited: bool,
    /// Sequence space that is out and not acknowledged, after it.
    pub flight: u64,
    /// Whether the application has more to send.
    pub unsent: bool,
}

/// What follows from an ACK.
#[derive(Debug, Clone, Copy, Default)]
pub struct Verdict {
    /// Send a segment again at once, whatever the window.
    pub retransmit: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// Fast recovery began.
    pub entered: bool,
    /// A reduction was undone.
    pub undone: bool,
    /// Send a tail loss probe.
    pub probe: bool,
    /// Double the retransmission timeout.
    pub back_off: bool,
}

/// The parts of the sender that recovery works on.
pub struct Parts<'a> {
    /// What is under way.
    pub board: &'a mut Scoreboard,
    /// The congestion window, which the congestion control alone changes.
    pub window: &'a mut Window,
    /// The congestion control.
    pub congestion: &'a mut dyn CongestionControl,
}

impl Parts<'_> {
    /// Let the congestion control take the window that a reduction wants.
    pub fn set_window(&mut self, cwnd: u64) {
        self.congestion.on_reduction(self.window, cwnd);
    }
}

/// Where the recovery is: what its three parts see of each other.
#[derive(Debug, Clone, Copy)]
pub struct Episode {
    /// What is going on.
    pub phase: Phase,
    /// Whether SACK is in use.
    pub sack: bool,
    /// RFC 6582 `recover`, RFC 6675 `RecoveryPoint`: the right edge when the present or last recovery began.
    pub recover: u64,
    /// Whether `recover` is still ahead.
    pub recover_ahead: bool,
    /// New data that duplicate ACKs let out (RFC 5681, 3.2 step 2: not part of the flight).
    pub limited_bytes: u64,
}

/// The state of the loss recovery of one sender.
#[derive(Debug)]
pub struct LossRecovery {
    episode: Episode,
    detector: Box<dyn LossDetector>,
    reduction: Box<dyn WindowReduction>,
    response: Option<Box<dyn SpuriousResponse>>,
    /// The response holds the window in the present recovery, which `keep` then makes of the reduction.
    held: bool,
    keep: Keep,
    bare_duplicates: bool,
    /// Whether the detector goes by time, and when it wants to be asked next.
    timed: bool,
    detect_at: Nanos,
    probe: Option<TailProbe>,
    repair: Repair,
    growth: WindowGrowth,
    impatient: Impatient,
    /// Whether the next partial ACK is the first one.
    first_partial: bool,
    /// Bytes acknowledged beyond whole segments.
    remainder: u64,
    /// When the window last grew or could have.
    grown_at: Nanos,
}

impl LossRecovery {
    /// No sign of loss yet.
    pub fn new(config: &Config) -> Self {
        let detector = detector::build(config);
        Self {
            episode: Episode {
                phase: Phase::Open,
                sack: config.sack,
                recover: 0,
                recover_ahead: false,
                limited_bytes: 0,
            },
            timed: detector.looks_at_acks(),
            detector,
            reduction: reduction::build(config),
            response: response::build(config),
            held: false,
            keep: Keep,
            bare_duplicates: config.bare_duplicates,
            detect_at: OFF,
            probe: (config.detection == Detection::Rack)
                .then(|| TailProbe::new(config.delayed_ack_timeout, config.rto.initial)),
            repair: config.repair,
            growth: config.growth,
            impatient: config.impatient,
            first_partial: true,
            remainder: 0,
            grown_at: 0,
        }
    }

    /// Take reductions back by another response.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.response = Some(response);
    }

    /// What is going on.
    pub fn phase(&self) -> Phase {
        self.episode.phase
    }

    /// Whether SACK is in use.
    pub fn sack(&self) -> bool {
        self.episode.sack
    }

    /// Settle whether SACK is used, once the handshake tells.
    pub fn agree(&mut self, sack: bool) {
        self.episode.sack = sack;
    }

    /// Whether an ACK counts as a duplicate; `sacked`: bytes newly SACKed, `old_window`: the window before it.
    pub fn is_duplicate(
        &self,
        segment: &Segment,
        board: &Scoreboard,
        before: u64,
        [sacked, old_window]: [u64; 2],
    ) -> bool {
        if sacked > 0 {
            return true;
        }
        if self.episode.sack && !self.bare_duplicates {
            return false;
        }
        segment.acknowledgement == Some(before)
            && before < board.end()
            && self.detector.is_duplicate(segment, old_window)
    }

    /// Correct the board when an ACK shows that the head, taken for delivered, is not: what was counted has arrived further on.
    pub fn correct_head(&self, board: &mut Scoreboard) {
        if self.episode.sack {
            board.mark_head_lost();
        } else if self.detector.corrects_head(&self.episode) {
            board.book_duplicate();
            board.mark_head_lost();
        }
    }

    /// Take an ACK at or beyond the left edge.
    pub fn on_ack(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        parts: &mut Parts<'_>,
    ) -> Verdict {
        let mut verdict = Verdict::default();
        if event.duplicate && !self.excuses(event, segment, parts, &mut verdict) {
            self.on_duplicate(event, parts, &mut verdict);
            self.open_on_duplicate(event, parts);
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

    /// RFC 8985, 7.4: a loss that a probe made good is a sign of congestion like any other.
    fn look_after_probe(&mut self, event: &AckEvent, segment: &Segment, parts: &mut Parts<'_>) {
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

    fn probe_at(&self) -> Nanos {
        self.probe.as_ref().map_or(OFF, TailProbe::timer)
    }

    /// Begin a recovery for what a detector by time takes for lost, unless one is under way.
    fn begin_if_lost(
        &mut self,
        lost: bool,
        event: &AckEvent,
        parts: &mut Parts<'_>,
        verdict: &mut Verdict,
    ) {
        if lost && !matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            self.enter(event, parts);
            verdict.retransmit = true;
            verdict.entered = true;
        }
    }

    /// RFC 5681, 3.2; RFC 6675, 5 steps 1 to 4.
    fn on_duplicate(&mut self, event: &AckEvent, parts: &mut Parts<'_>, verdict: &mut Verdict) {
        match self.episode.phase {
            Phase::Loss if self.detector.counts_after_timeout() => {}
            Phase::Loss => return,
            Phase::Recovery => {
                if !self.episode.sack && self.repair == Repair::All {
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

    /// Whether a duplicate does not count, and takes a reduction back instead.
    fn excuses(
        &mut self,
        event: &AckEvent,
        segment: &Segment,
        parts: &mut Parts<'_>,
        verdict: &mut Verdict,
    ) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.excuses_duplicate(event, segment));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
            verdict.undone = true;
        }
        undo.is_some()
    }

    fn open_on_duplicate(&mut self, event: &AckEvent, parts: &mut Parts<'_>) {
        let response = self.response.as_ref();
        if response.is_some_and(|response| response.opens_on_duplicates()) {
            let acked = Acked {
                now: event.now,
                segments: 1,
                bytes: parts.window.segment(),
                srtt: event.srtt,
            };
            parts.congestion.on_ack(parts.window, &acked);
        }
    }

    /// Whether an ACK is ignored as if it had been lost.
    pub fn ignores_ack(&mut self, window: &Window) -> bool {
        let response = self.response.as_mut();
        response.is_some_and(|response| response.ignores_ack(window))
    }

    /// The connection has seen that what was sent again on this subflow had arrived; whether a reduction was undone.
    pub fn on_needless(&mut self, parts: &mut Parts<'_>) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.on_needless(parts.window));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
        }
        undo.is_some()
    }

    /// Whether what is taken for lost may be sent again now.
    pub fn may_resend(&self) -> bool {
        let withheld = self
            .response
            .as_ref()
            .is_some_and(|response| response.withholds());
        !withheld && self.detector.may_resend(&self.episode)
    }

    /// Whether the first duplicates let no new data out, although SACK blocks show that there is less under way.
    pub fn holds_new_data(&self) -> bool {
        self.episode.phase == Phase::Disorder && self.episode.sack && self.detector.holds_new_data()
    }

    /// Whether a forced retransmission with nothing known lost sends new data instead.
    pub fn prefers_new_data(&self) -> bool {
        self.episode.sack && self.detector.prefers_new_data()
    }

    /// Whether window, threshold and timeout stay as they are for the present, whatever is lost.
    pub fn holds_window(&self, now: Nanos) -> bool {
        self.response
            .as_ref()
            .is_some_and(|response| response.holds_window(now))
    }

    fn reduction(&mut self) -> &mut dyn WindowReduction {
        if self.held {
            &mut self.keep
        } else {
            &mut *self.reduction
        }
    }

    /// Segments have arrived in another order than they left; whether a reduction was undone.
    pub fn on_out_of_order(&mut self, now: Nanos, rto: Nanos, parts: &mut Parts<'_>) -> bool {
        let response = self.response.as_mut();
        let undo = response.and_then(|response| response.on_out_of_order(now, rto));
        if let Some(undo) = undo {
            self.undo(&undo, parts);
        }
        undo.is_some()
    }

    fn enter(&mut self, event: &AckEvent, parts: &mut Parts<'_>) {
        self.detector.on_enter(&self.episode, parts.board);
        self.held = self.holds_window(event.now);
        if let (false, Some(response)) = (self.held, &mut self.response) {
            response.on_fast_retransmit(event.now, parts.window, parts.board);
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
    fn recover(&self, board: &Scoreboard) -> u64 {
        match self.repair {
            Repair::All => board.end(),
            Repair::First => board.start() + 1,
        }
    }

    /// An ACK of new data.
    fn on_advance(&mut self, event: &AckEvent, parts: &mut Parts<'_>, verdict: &mut Verdict) {
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
    fn on_full(
        &mut self,
        event: &AckEvent,
        mut segments: u64,
        parts: &mut Parts<'_>,
        verdict: &mut Verdict,
    ) {
        let from = self.episode.phase;
        match from {
            Phase::Open => {}
            Phase::Disorder if event.duplicate => {}
            Phase::Disorder => self.episode.phase = Phase::Open,
            Phase::Recovery => {
                segments = (event.ack - event.before) / parts.window.segment();
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
        if open && (from != Phase::Recovery || self.reduction().grows_on_exit()) {
            self.grow(event, segments, parts);
        }
        verdict.restart_timer = open || self.detector.disorder_restarts_timer();
    }

    fn leave(&mut self, parts: &mut Parts<'_>) {
        self.episode.phase = Phase::Open;
        self.first_partial = true;
        self.detector.on_leave(&self.episode, parts.board);
        self.reduction().leave(parts);
    }

    /// Take a reduction back that was none of the network's making.
    fn undo(&mut self, undo: &response::Undo, parts: &mut Parts<'_>) {
        if undo.resume && matches!(self.episode.phase, Phase::Recovery | Phase::Loss) {
            self.episode.phase = Phase::Open;
            self.first_partial = true;
            parts.board.clear_lost();
            self.detector.on_leave(&self.episode, parts.board);
        }
        parts.congestion.on_undo(parts.window, &undo.window);
    }

    fn whole_segments(&mut self, bytes: u64, segment: u64) -> u64 {
        self.remainder += bytes;
        let segments = self.remainder / segment;
        self.remainder %= segment;
        segments
    }

    fn grow(&mut self, event: &AckEvent, segments: u64, parts: &mut Parts<'_>) {
        if event.window_limited || self.growth == WindowGrowth::Always {
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
        let again = self.episode.phase == Phase::Loss && parts.board.head_is_resent();
        let held = self.holds_window(now);
        if let (false, Some(response)) = (again || held, &mut self.response) {
            response.on_timeout(now, parts.window, parts.board);
        }
        let flight = self.reduction.flight_at_timeout(parts.board);
        let expired = self.detector.expired_before(now);
        self.detector.on_timeout();
        self.detect_at = self.detector.timer();
        if let Some(probe) = &mut self.probe {
            probe.cancel();
        }
        match self.repair {
            Repair::All => parts.board.mark_all_lost(expired),
            Repair::First => parts.board.mark_head_lost(),
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
        if self.repair == Repair::First {
            return parts.congestion.on_loss_at_once(now, parts.window);
        }
        if !again || self.reduction.lowers_at_each_timeout() {
            parts.congestion.on_loss(now, parts.window, flight);
        }
        parts.congestion.on_timeout(parts.window);
    }

    /// Whether the first segment is sent again after a timeout whatever the window: the rest is still taken for under way.
    pub fn forces_after_timeout(&self) -> bool {
        self.repair == Repair::First
    }

    /// RFC 6675, NextSeg rules 3 and 4: a segment to send again when nothing is known lost and there is no new data.
    pub fn speculative(&mut self, board: &Scoreboard) -> Option<usize> {
        if !self.episode.sack || self.episode.phase != Phase::Recovery {
            return None;
        }
        self.detector.speculative(&self.episode, board)
    }

    /// Account for what left.
    pub fn on_sent(&mut self, now: Nanos, sent: &Transmission) {
        let bytes = u64::from(sent.payload_bytes);
        match self.episode.phase {
            Phase::Recovery => self.reduction().on_sent(bytes),
            Phase::Disorder if !sent.again => self.episode.limited_bytes += bytes,
            _ => {}
        }
        if let (true, Some(response)) = (sent.again, &mut self.response) {
            response.on_resent(now, sent);
        }
        if self.timed {
            self.detector.on_sent(now);
            self.detect_at = self.detector.timer();
        }
    }

    /// When the detector wants to be asked next; [`OFF`] if it has no timer.
    pub fn timer(&self) -> Nanos {
        self.detect_at.min(self.probe_at())
    }

    /// Let the detector look at the time; what follows.
    pub fn on_timer(&mut self, now: Nanos, srtt: Option<Nanos>, parts: &mut Parts<'_>) -> Verdict {
        let mut verdict = Verdict::default();
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
