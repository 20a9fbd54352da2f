//! Forward RTO recovery (RFC 5682, 2.1, the basic algorithm).

use super::super::super::congestion::Window;
use super::super::super::scoreboard::Scoreboard;
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::{SpuriousResponse, Undo};
use crate::time::Nanos;

/// After a timeout and the first retransmission, sends new data: if the next ACK advances too, nothing was lost.
#[derive(Debug, Clone, Default)]
pub struct FRto {
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// No timeout is being judged.
    #[default]
    Idle,
    /// The first segment was sent again (step 1); the window was this.
    Resent(Window),
    /// An ACK has advanced, and new data goes out (step 2b).
    Probing(Window),
}

impl SpuriousResponse for FRto {
    fn on_reduction(&mut self, _: Nanos, window: &Window, _: &Scoreboard, by_timer: bool) {
        if by_timer {
            self.state = State::Resent(*window);
        }
    }

    fn withholds(&self) -> bool {
        matches!(self.state, State::Probing(_))
    }

    fn on_ack(&mut self, event: &AckEvent, _: &Segment, episode: &Episode) -> Option<Undo> {
        let advances = event.ack > event.before && !event.duplicate;
        match std::mem::take(&mut self.state) {
            State::Idle => None,
            // Step 2: a duplicate, an ACK of all that was out, or nothing new to send: as without F-RTO.
            State::Resent(window) => {
                if advances && event.ack < episode.recover && event.unsent {
                    self.state = State::Probing(window);
                }
                None
            }
            // Step 3.
            State::Probing(window) => advances.then_some(Undo {
                window,
                resume: true,
            }),
        }
    }
}
