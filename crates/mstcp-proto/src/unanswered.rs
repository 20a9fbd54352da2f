//! Streams whose TCP sends again and again without an answer.
//!
//! TCP waits ever longer before it tries again, so that a path that works again would lie idle for as long as it was dead. Its
//! kernel's answers tell such a path from a peer that is only held up, whose kernel goes on acknowledging.

use crate::peer_activity::PeerActivity;
use crate::scheduler::StreamSet;

/// How long a stream is silent while something is awaited before TCP is asked about it, in nanoseconds.
const SILENT_NS: u64 = 300_000_000;
/// Time until TCP is asked again, in nanoseconds; after this many times it doubles, up to the maximum.
const AGAIN_NS: u64 = 50_000_000;
const ASKS_BEFORE_BACKOFF: u32 = 10;
const MAX_AGAIN_NS: u64 = 1_000_000_000;
/// A stream is given up once TCP has retransmitted without an answer for this, in nanoseconds, and two round trips.
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

/// What TCP last said of unanswered retransmissions, by slot.
#[derive(Debug, Default)]
pub(crate) struct UnansweredStreams(Vec<UnansweredStream>);

#[derive(Debug, Clone, Copy, Default)]
struct UnansweredStream {
    /// When to ask again, and how often it was asked.
    next_ns: u64,
    asked: u32,
    /// What it said last, and since when it sends again without an answer.
    said: Unanswered,
    unanswered_ns: Option<u64>,
}

impl UnansweredStreams {
    fn of(&mut self, slot: usize) -> &mut UnansweredStream {
        if slot >= self.0.len() {
            self.0.resize(slot + 1, UnansweredStream::default());
        }
        &mut self.0[slot]
    }

    /// Use a place for a new stream.
    pub(crate) fn add_stream(&mut self, slot: usize) {
        *self.of(slot) = UnansweredStream::default();
    }

    /// When to ask TCP again about a stream that may have to be given up, or where the peer is silent on all streams, about one
    /// where something was not answered; else it is asked when something else is due: a peer from which something is awaited is
    /// asked for an answer anyway.
    pub(crate) fn ask_at_ns(&self, slot: usize, is_all_silent: bool) -> Option<u64> {
        let entry = self.0.get(slot)?;
        let is_asked = match entry.said {
            Unanswered::Nothing => false,
            Unanswered::Sent => is_all_silent,
            Unanswered::SentAgain => true,
        };
        is_asked.then_some(entry.next_ns)
    }

    /// The streams on which TCP sent again without an answer when it was asked last, and nothing was heard since.
    pub(crate) fn unanswered(&self, peer_activity: &PeerActivity) -> StreamSet {
        let mut unanswered = StreamSet::default();
        for (slot, entry) in self.0.iter().enumerate() {
            let is_silent = |since_ns: u64| peer_activity.stream_heard_ns(slot) < since_ns;
            if entry.unanswered_ns.is_some_and(is_silent) {
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
            let entry = self.of(slot);
            if now_ns < heard_ns + SILENT_NS {
                *entry = UnansweredStream::default();
            } else if now_ns >= entry.next_ns {
                entry.asked += 1;
                let longer = entry.asked.saturating_sub(ASKS_BEFORE_BACKOFF).min(8);
                entry.next_ns = now_ns + (AGAIN_NS << longer).min(MAX_AGAIN_NS);
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
        let entry = self.of(slot);
        entry.said = said;
        if said != Unanswered::SentAgain {
            entry.unanswered_ns = None;
            return false;
        }
        let since_ns = *entry.unanswered_ns.get_or_insert(now_ns);
        let end_ns = since_ns + UNANSWERED_NS + round_trips_ns;
        entry.next_ns = entry.next_ns.min(end_ns);
        now_ns >= end_ns
    }
}

#[cfg(test)]
mod tests {
    use super::{Unanswered, UnansweredStreams};

    const MS: u64 = 1_000_000;

    fn asks(unanswered_streams: &mut UnansweredStreams, now_ns: u64, heard_ns: u64) -> bool {
        !unanswered_streams
            .take_due(now_ns, [(0, heard_ns)].into_iter())
            .is_empty()
    }

    #[test]
    fn a_silent_stream_whose_tcp_is_not_answered_is_given_up() {
        let mut unanswered_streams = UnansweredStreams::default();
        assert!(!asks(&mut unanswered_streams, 299 * MS, 0));
        assert!(asks(&mut unanswered_streams, 300 * MS, 0));
        assert!(!unanswered_streams.note(300 * MS, 0, Unanswered::SentAgain, 45 * MS));
        assert_eq!(unanswered_streams.ask_at_ns(0, false), Some(350 * MS));
        for now_ms in (350..=800).step_by(50) {
            assert!(asks(&mut unanswered_streams, now_ms * MS, 0));
            assert!(!unanswered_streams.note(now_ms * MS, 0, Unanswered::SentAgain, 45 * MS));
        }
        assert_eq!(unanswered_streams.ask_at_ns(0, false), Some(845 * MS));
        assert!(asks(&mut unanswered_streams, 845 * MS, 0));
        assert!(unanswered_streams.note(845 * MS, 0, Unanswered::SentAgain, 45 * MS));
    }

    #[test]
    fn one_whose_tcp_is_answered_or_that_is_heard_is_not() {
        let mut unanswered_streams = UnansweredStreams::default();
        let mut asked = 0;
        for now_ms in 300..10_000 {
            if asks(&mut unanswered_streams, now_ms * MS, 0) {
                let said = match asked % 2 {
                    0 => Unanswered::SentAgain,
                    _ => Unanswered::Sent,
                };
                assert!(!unanswered_streams.note(now_ms * MS, 0, said, 0));
                asked += 1;
            }
        }
        assert!((20..=25).contains(&asked), "{asked}");
        // It was heard.
        assert!(!asks(&mut unanswered_streams, 10_200 * MS, 10_000 * MS));
        assert!(!unanswered_streams.note(10_300 * MS, 0, Unanswered::SentAgain, 0));
    }
}
