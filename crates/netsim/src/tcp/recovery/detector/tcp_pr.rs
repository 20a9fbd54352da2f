//! Loss by delay alone: TCP-PR (Bohacek, Hespanha, Lee, Lim, Obraczka, "TCP-PR: TCP for Persistent Packet Reordering", ICDCS 2003).

use super::super::super::receiver::OFF;
use super::super::super::scoreboard::{Scoreboard, SegmentFate};
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::LossDetector;
use crate::time::Nanos;

/// The memory of the greatest round trip for one window (section 3.1: 0.995).
const ALPHA: f64 = 0.995;
/// How many times the greatest round trip a segment may take (section 3.1: 3).
const BETA: f64 = 3.0;

/// A segment is lost once it is out for longer than `mxrtt`, a multiple of the greatest recent round trip; duplicates mean nothing.
///
/// Extreme losses (section 3.2), after which TCP-PR begins with a segment, are left to the retransmission timer.
#[derive(Debug, Clone, Default)]
pub struct TcpPr {
    /// `ewrtt` in nanoseconds.
    greatest: f64,
    due: Option<Nanos>,
}

impl TcpPr {
    /// `mxrtt`; [`OFF`] until a round trip is known.
    fn patience(&self) -> Nanos {
        if self.greatest > 0.0 {
            (BETA * self.greatest) as Nanos
        } else {
            OFF
        }
    }

    fn detect(&mut self, now: Nanos, board: &mut Scoreboard) -> bool {
        let patience = self.patience();
        let mut due = OFF;
        let lost = board.judge(|sent_at, _, again| {
            let deadline = sent_at.saturating_add(patience);
            if deadline <= now {
                return SegmentFate::Lost;
            }
            due = due.min(deadline);
            // First transmissions come in the order of their times.
            if again {
                SegmentFate::Keep
            } else {
                SegmentFate::Stop
            }
        });
        self.due = (due != OFF).then_some(due);
        lost
    }
}

impl LossDetector for TcpPr {
    fn on_ack(
        &mut self,
        event: &AckEvent,
        _: &Segment,
        _: &Episode,
        board: &mut Scoreboard,
    ) -> bool {
        if let Some(rtt) = event.rtt {
            // Equation 1, where alpha^(1/cwnd) is 1 - (1 - alpha) / cwnd to the first order.
            let memory = 1.0 - (1.0 - ALPHA) / event.window.segments().max(1.0);
            self.greatest = (memory * self.greatest).max(rtt as f64);
        }
        self.detect(event.now, board)
    }

    fn on_sent(&mut self, now: Nanos) {
        if self.due.is_none() && self.greatest > 0.0 {
            self.due = Some(now.saturating_add(self.patience()));
        }
    }

    fn on_timeout(&mut self) {
        self.due = None;
    }

    fn looks_at_acks(&self) -> bool {
        true
    }

    fn timer(&self) -> Nanos {
        self.due.unwrap_or(OFF)
    }

    fn on_timer(&mut self, now: Nanos, _: &Episode, board: &mut Scoreboard) -> bool {
        self.detect(now, board)
    }
}
