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

mod acknowledging;
pub mod detector;
pub mod reduction;
pub mod response;
pub mod tail_probe;
mod timers;
mod undoing;

pub use detector::LossDetector;
use reduction::KeepWindow;
pub use reduction::WindowReduction;
pub use response::SpuriousResponse;
use tail_probe::TailProbe;

use super::config::{
    Config, Detection, Impatient, RetransmissionScope, SpuriousHandling, WindowGrowth,
};
use super::congestion::{CongestionControl, Window};
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
pub struct AckVerdict {
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
    /// A duplicate opened the window.
    pub opened: bool,
}

/// The parts of the sender that recovery works on.
pub struct SenderParts<'a> {
    /// What is under way.
    pub board: &'a mut Scoreboard,
    /// The congestion window, which the congestion control alone changes.
    pub window: &'a mut Window,
    /// The congestion control.
    pub congestion: &'a mut dyn CongestionControl,
}

impl SenderParts<'_> {
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
    /// Whether the response sees ACKs too that tell nothing of what is out.
    looks_at_all: bool,
    /// The response holds the window in the present recovery, which `keep` then makes of the reduction.
    held: bool,
    keep: KeepWindow,
    bare_duplicates: bool,
    /// Whether the detector goes by time, and when it wants to be asked next.
    timed: bool,
    detect_at: Nanos,
    probe: Option<TailProbe>,
    repair: RetransmissionScope,
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
        let response = response::build(config);
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
            looks_at_all: config.detection == Detection::Delay
                || response.is_some() && config.spurious != SpuriousHandling::Linux,
            response,
            held: false,
            keep: KeepWindow,
            bare_duplicates: config.bare_duplicates,
            detect_at: OFF,
            probe: (config.detection == Detection::Rack)
                .then(|| TailProbe::new(config.rto.initial)),
            repair: config.repair,
            growth: config.growth,
            impatient: config.impatient,
            first_partial: true,
            remainder: 0,
            grown_at: 0,
        }
    }

    /// What is going on.
    pub fn phase(&self) -> Phase {
        self.episode.phase
    }

    /// Whether SACK is in use.
    pub fn sack(&self) -> bool {
        self.episode.sack
    }

    /// Whether an ACK tells nothing that does not advance, with nothing out: neither of a probe nor of what arrived twice.
    pub fn is_told_nothing(&self, segment: &Segment) -> bool {
        let probing = self.probe.as_ref().is_some_and(TailProbe::is_out);
        let reports = probing || !segment.sack.is_empty();
        let looks_at_reports = self.timed || self.response.is_some();
        !(self.looks_at_all || reports && looks_at_reports)
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

    fn reduction(&mut self) -> &mut dyn WindowReduction {
        if self.held {
            &mut self.keep
        } else {
            &mut *self.reduction
        }
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
}
