//! Streams whose TCP sends again and again without an answer.
//!
//! TCP waits ever longer before it tries again, so that a path that works again would lie idle for as long as it was dead. Its
//! kernel's answers tell such a path from a peer that is only held up, whose kernel goes on acknowledging.

use crate::life::Life;
use crate::scheduler::StreamSet;

/// TCP is asked about a stream that was silent for so long while something is awaited, in nanoseconds.
const SILENT_NS: u64 = 300_000_000;
/// And again after so long each, this often, and then after twice the time each, in nanoseconds.
const AGAIN_NS: u64 = 50_000_000;
const OFTEN: u32 = 10;
const LONGEST_AGAIN_NS: u64 = 1_000_000_000;
/// TCP has sent again without an answer for so long, and two round trips: the stream is given up, in nanoseconds.
const UNANSWERED_NS: u64 = 500_000_000;

/// What a peer's kernel has not answered on a stream, as TCP says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unanswered {
    /// It has acknowledged all that was sent, or the system does not say.
    #[default]
    Nothing,
    /// It has not acknowledged everything.
    Sent,
    /// Nor what TCP has sent again because its time was up.
    SentAgain,
}

/// What is known of the streams' TCP, by slot.
#[derive(Debug, Default)]
pub(crate) struct Doubts(Vec<Doubt>);

#[derive(Debug, Clone, Copy, Default)]
struct Doubt {
    /// When to ask again, and how often it was asked.
    next_ns: u64,
    asked: u32,
    /// What it said last, and since when it sends again without an answer.
    said: Unanswered,
    unanswered_ns: Option<u64>,
}

impl Doubts {
    fn of(&mut self, slot: usize) -> &mut Doubt {
        if slot >= self.0.len() {
            self.0.resize(slot + 1, Doubt::default());
        }
        &mut self.0[slot]
    }

    /// Use a place for a new stream.
    pub(crate) fn add_stream(&mut self, slot: usize) {
        *self.of(slot) = Doubt::default();
    }

    /// When to ask TCP again about a stream that may have to be given up, or where the peer is silent on all streams, about one
    /// where something was not answered; else it is asked when something else is due: a peer from which something is awaited is
    /// asked for an answer anyway.
    pub(crate) fn ask_at_ns(&self, slot: usize, is_all_silent: bool) -> Option<u64> {
        let doubt = self.0.get(slot)?;
        let is_asked = match doubt.said {
            Unanswered::Nothing => false,
            Unanswered::Sent => is_all_silent,
            Unanswered::SentAgain => true,
        };
        is_asked.then_some(doubt.next_ns)
    }

    /// The streams on which TCP sent again without an answer when it was asked last, and nothing was heard since.
    pub(crate) fn unanswered(&self, life: &Life) -> StreamSet {
        let mut unanswered = StreamSet::default();
        for (slot, doubt) in self.0.iter().enumerate() {
            let is_silent = |since_ns: u64| life.stream_heard_ns(slot) < since_ns;
            if doubt.unanswered_ns.is_some_and(is_silent) {
                unanswered.insert(slot);
            }
        }
        unanswered
    }

    /// The streams about which TCP is to be asked now, of those that are given with when they were heard last.
    pub(crate) fn take_due(
        &mut self,
        now_ns: u64,
        streams: impl Iterator<Item = (usize, u64)>,
    ) -> StreamSet {
        let mut due = StreamSet::default();
        for (slot, heard_ns) in streams {
            let doubt = self.of(slot);
            if now_ns < heard_ns + SILENT_NS {
                *doubt = Doubt::default();
            } else if now_ns >= doubt.next_ns {
                doubt.asked += 1;
                let longer = doubt.asked.saturating_sub(OFTEN).min(8);
                doubt.next_ns = now_ns + (AGAIN_NS << longer).min(LONGEST_AGAIN_NS);
                due.insert(slot);
            }
        }
        due
    }

    /// Note what TCP says; true if the stream is to be given up. `round_trips_ns` is two round trips of its path.
    pub(crate) fn note(
        &mut self,
        now_ns: u64,
        slot: usize,
        said: Unanswered,
        round_trips_ns: u64,
    ) -> bool {
        let doubt = self.of(slot);
        doubt.said = said;
        if said != Unanswered::SentAgain {
            doubt.unanswered_ns = None;
            return false;
        }
        let since_ns = *doubt.unanswered_ns.get_or_insert(now_ns);
        let end_ns = since_ns + UNANSWERED_NS + round_trips_ns;
        doubt.next_ns = doubt.next_ns.min(end_ns);
        now_ns >= end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::{Doubts, Unanswered};

    const MS: u64 = 1_000_000;

    fn asks(doubts: &mut Doubts, now_ns: u64, heard_ns: u64) -> bool {
        !doubts
            .take_due(now_ns, [(0, heard_ns)].into_iter())
            .is_empty()
    }

    #[test]
    fn a_silent_stream_whose_tcp_is_not_answered_is_given_up() {
        let mut doubts = Doubts::default();
        assert!(!asks(&mut doubts, 299 * MS, 0));
        assert!(asks(&mut doubts, 300 * MS, 0));
        assert!(!doubts.note(300 * MS, 0, Unanswered::SentAgain, 45 * MS));
        assert_eq!(doubts.ask_at_ns(0, false), Some(350 * MS));
        for now_ms in (350..=800).step_by(50) {
            assert!(asks(&mut doubts, now_ms * MS, 0));
            assert!(!doubts.note(now_ms * MS, 0, Unanswered::SentAgain, 45 * MS));
        }
        assert_eq!(doubts.ask_at_ns(0, false), Some(845 * MS));
        assert!(asks(&mut doubts, 845 * MS, 0));
        assert!(doubts.note(845 * MS, 0, Unanswered::SentAgain, 45 * MS));
    }

    #[test]
    fn one_whose_tcp_is_answered_or_that_is_heard_is_not() {
        let mut doubts = Doubts::default();
        let mut asked = 0;
        for now_ms in 300..10_000 {
            if asks(&mut doubts, now_ms * MS, 0) {
                let said = match asked % 2 {
                    0 => Unanswered::SentAgain,
                    _ => Unanswered::Sent,
                };
                assert!(!doubts.note(now_ms * MS, 0, said, 0));
                asked += 1;
            }
        }
        assert!((20..=25).contains(&asked), "{asked}");
        // It was heard.
        assert!(!asks(&mut doubts, 10_200 * MS, 10_000 * MS));
        assert!(!doubts.note(10_300 * MS, 0, Unanswered::SentAgain, 0));
    }
}
