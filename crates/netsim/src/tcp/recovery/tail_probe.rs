//! Tail loss probes (RFC 8985, 7): where no ACK comes that could tell of a loss, a segment more asks for one.

use super::super::receiver::OFF;
use super::super::scoreboard::Scoreboard;
use super::super::segment::Segment;
use super::{AckEvent, Episode, Phase};
use crate::time::{Nanos, MILLISECOND};

/// WCDelAckT (7.2): the longest that a peer is assumed to delay the ACK of a single segment; Linux's least timeout.
const ACK_DELAY: Nanos = 200 * MILLISECOND;
/// Linux's `TCP_TIMEOUT_MIN`, two ticks of its clock (250 a second): what is under way may be short segments, whose ACK is
/// delayed too.
const MIN_DELAY: Nanos = 8 * MILLISECOND;

/// The state of the probe of one sender.
#[derive(Debug, Clone)]
pub struct TailProbe {
    initial_timeout: Nanos,
    due: Nanos,
    /// TLP.end_seq and TLP.is_retrans of the probe that is out.
    out: Option<(u64, bool)>,
}

impl TailProbe {
    /// None is out. `initial_timeout` is the probe's before a round trip is known.
    pub fn new(initial_timeout: Nanos) -> Self {
        Self {
            initial_timeout,
            due: OFF,
            out: None,
        }
    }

    /// Whether one is out that may still tell of a loss.
    pub fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// When a probe is due; [`OFF`] if none is.
    pub fn timer(&self) -> Nanos {
        self.due
    }

    /// 7.2, TLP_calc_PTO: new data has left or an ACK has come; `deadline` is when the retransmission timer expires.
    pub fn arm(
        &mut self,
        now: Nanos,
        srtt: Option<Nanos>,
        deadline: Nanos,
        episode: &Episode,
        board: &Scoreboard,
    ) {
        let calm = episode.phase == Phase::Open && board.sacked_segments() == 0;
        let wanted = calm && self.out.is_none();
        self.due = if wanted && !board.is_empty() {
            let delay = if board.segments() == 1 {
                ACK_DELAY
            } else {
                MIN_DELAY
            };
            let measured = srtt.filter(|&srtt| srtt > 0);
            let timeout = measured.map_or(self.initial_timeout, |srtt| 2 * srtt + delay);
            (now + timeout).min(deadline)
        } else {
            OFF
        };
    }

    /// 7.3: the probe left; `end` is the highest sequence number sent, plus one, and `again` tells whether it carried old data.
    pub fn on_sent(&mut self, end: u64, again: bool) {
        self.due = OFF;
        self.out = Some((end, again));
    }

    /// 7.4: whether the probe made good a loss that has shown itself in no other way.
    pub fn on_ack(&mut self, event: &AckEvent, segment: &Segment) -> bool {
        let Some((end, again)) = self.out.filter(|&(end, _)| event.ack >= end) else {
            return false;
        };
        let both_arrived =
            segment.duplicate().is_some() || event.ack == event.before && segment.sack.is_empty();
        if !again || both_arrived {
            self.out = None;
        } else if event.ack > end {
            self.out = None;
            return true;
        }
        false
    }

    /// The retransmission timer has expired, or a recovery has begun.
    pub fn cancel(&mut self) {
        self.due = OFF;
        self.out = None;
    }
}
