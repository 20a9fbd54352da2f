//! D-SACK: detection by RFC 3708, with the response of Blanton and Allman ("On Making TCP More Robust to Packet Reordering", CCR
//! 2002), which the papers by Alheid et al. take too: slow start back to the window before the reduction.

use super::super::super::congestion::Window;
use super::super::super::scoreboard::{Scoreboard, Transmission};
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::{SpuriousResponse, Undo};
use crate::time::Nanos;

/// A reduction was without cause if the receiver had already all that was sent again for it.
#[derive(Debug, Clone, Default)]
pub struct DSack {
    reduced: Option<Reduced>,
    /// The window that the last undone reduction goes back to by slow start.
    goal: u64,
}

#[derive(Debug, Clone)]
struct Reduced {
    window: Window,
    /// What was sent again: where it begins and ends, and whether it was reported to have arrived twice.
    resent: Vec<([u64; 2], bool)>,
    /// Something was sent again twice: of which copy a report tells is not known (RFC 3708, 3 step A.2).
    ambiguous: bool,
}

impl SpuriousResponse for DSack {
    fn on_reduction(&mut self, _: Nanos, window: &Window, _: &Scoreboard, _: bool) {
        // Of several reductions in a row, and of one on the way back, the largest window counts, until one is found to be with cause or without.
        let mut cwnd = self.reduced.as_ref().map_or(0, |one| one.window.cwnd);
        if window.in_slow_start() {
            cwnd = cwnd.max(self.goal);
        }
        self.reduced = Some(Reduced {
            window: Window {
                cwnd: cwnd.max(window.cwnd),
                ..*window
            },
            resent: Vec::new(),
            ambiguous: false,
        });
    }

    fn on_resent(&mut self, _now: Nanos, sent: &Transmission) {
        if let Some(reduced) = &mut self.reduced {
            let range = [sent.start, sent.start + u64::from(sent.payload_bytes)];
            reduced.ambiguous |= reduced.resent.iter().any(|(other, _)| *other == range);
            reduced.resent.push((range, false));
        }
    }

    /// RFC 3708, 3: only what was sent again counts (A), once (A.2), and all of it must have been needless (B, C).
    fn on_ack(&mut self, _: &AckEvent, segment: &Segment, _: &Episode) -> Option<Undo> {
        let (start, end) = segment.duplicate()?;
        let reduced = self.reduced.as_mut()?;
        for ([from, to], reported) in &mut reduced.resent {
            *reported |= start <= *from && *to <= end;
        }
        let needless = reduced.resent.iter().all(|(_, reported)| *reported);
        if !needless || reduced.resent.is_empty() {
            return None;
        }
        let Reduced {
            window, ambiguous, ..
        } = self.reduced.take()?;
        self.goal = window.cwnd;
        // The window stays where it is, and what is above it is reached by slow start.
        (!ambiguous).then_some(Undo {
            window: Window {
                cwnd: 0,
                ssthresh: window.cwnd,
                ..window
            },
            resume: true,
        })
    }
}
