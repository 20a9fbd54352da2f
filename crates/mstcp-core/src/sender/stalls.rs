//! Streams that bring nothing through: found by what the peer reports, while it is known to live.

use super::{Sender, STALL_NS};
use crate::error::RemoteError;
use crate::life::Life;
use crate::scheduler::StreamSet;
use crate::state::StreamState;

/// The longest that a SEEN waits, in nanoseconds.
pub(crate) const SEEN_DELAY_NS: u64 = 400_000_000;
/// A stream that was found stalled and reported later is given twice the time, so often.
const MOST_SLOWNESS: u32 = 5;
/// That is done where more than a quarter of what arrived, and this, was sent again.
const FREE_RESENT_BYTES: u64 = 4 << 20;
/// A stream that has carried so long without a stall is taken for quick again, in nanoseconds.
const QUICK_NS: u64 = 10_000_000_000;
/// A stream that is stalled for so much longer is given up, in nanoseconds.
const GIVE_UP_NS: u64 = 1_000_000_000;

impl Sender {
    /// Two round trips of the longest path, in nanoseconds.
    pub(crate) fn round_trips_ns(&self) -> u64 {
        let delays = self.alive.iter().map(|slot| self.views[slot].delay_ns);
        4 * delays.max().unwrap_or(0)
    }

    /// Find the streams that have stalled by now; what they took goes over the others.
    pub(crate) fn check_stalls(&mut self, now_ns: u64, life: &Life) -> StreamSet {
        let mut found = StreamSet::default();
        let since = life.alive_since(now_ns, self.round_trips_ns());
        self.is_peer_alive = since.is_some();
        let (Some(since_ns), true) = (since, self.alive.is_several()) else {
            return found;
        };
        for slot in self
            .alive
            .without(self.stalled)
            .without(self.last_begun)
            .iter()
        {
            if self
                .stalls_at_ns(slot, since_ns)
                .is_some_and(|at_ns| now_ns >= at_ns)
            {
                found.insert(slot);
            }
        }
        for slot in found.iter() {
            let stream = &mut self.streams[slot];
            stream.sent.stalls += 1;
            stream.stalled_ns = now_ns;
            self.set_state(slot, StreamState::Stalled);
            self.send_again(slot);
        }
        found
    }

    /// When a stream will be found stalled if nothing is reported; none if nothing is to be reported.
    fn stalls_at_ns(&self, slot: usize, since_ns: u64) -> Option<u64> {
        let stream = &self.streams[slot];
        let patience_ns = (STALL_NS + self.round_trips_ns()) << stream.slowness;
        let data_ns = (!stream.in_flight.is_empty()).then_some(stream.progress_ns);
        let acks_ns = stream.acks_unseen_ns.map(|at_ns| at_ns + SEEN_DELAY_NS);
        let from_ns = data_ns.into_iter().chain(acks_ns).min()?;
        Some(from_ns.max(since_ns) + patience_ns)
    }

    /// When to look again, if nothing comes from the peer.
    pub(crate) fn stall_at_ns(&self, now_ns: u64, life: &Life) -> Option<u64> {
        if !self.alive.is_several() {
            return None;
        }
        let since_ns = life.alive_since(now_ns, self.round_trips_ns())?;
        let judged = self.alive.without(self.stalled).without(self.last_begun);
        let stall = judged
            .iter()
            .filter_map(|slot| self.stalls_at_ns(slot, since_ns));
        let give_up = self.stalled.iter().map(|slot| self.given_up_at_ns(slot));
        // What was due and not done waits for something else, which wakes us.
        stall.chain(give_up).filter(|at_ns| *at_ns > now_ns).min()
    }

    fn given_up_at_ns(&self, slot: usize) -> u64 {
        self.streams[slot].stalled_ns + GIVE_UP_NS + 4 * self.views[slot].delay_ns
    }

    /// The streams that have stalled for so long that they should be opened again: of use in neither direction, or another
    /// works in both.
    pub(crate) fn hopeless(&self, now_ns: u64, life: &Life) -> StreamSet {
        let mut hopeless = StreamSet::default();
        let open = self
            .alive
            .without(self.stalled)
            .without(self.retiring)
            .without(self.last_begun);
        if !self.is_peer_alive || open.is_empty() {
            return hopeless;
        }
        let is_silent = |slot: usize| {
            let silence_ns = now_ns.saturating_sub(life.stream_heard_ns(slot));
            silence_ns > GIVE_UP_NS + 4 * self.views[slot].delay_ns
        };
        let another_works = open.iter().any(|slot| !is_silent(slot));
        for slot in self.stalled.iter() {
            if now_ns >= self.given_up_at_ns(slot) && (another_works || is_silent(slot)) {
                hopeless.insert(slot);
            }
        }
        hopeless
    }

    /// Take what the peer has seen of our acknowledgements.
    pub(crate) fn on_seen(
        &mut self,
        now_ns: u64,
        streams: &[(u32, u64)],
    ) -> Result<(), RemoteError> {
        for &(id, acks) in streams {
            let Some(slot) = self.slot_of(id) else {
                continue;
            };
            let stream = &mut self.streams[slot];
            if acks > stream.acks_sent {
                return Err(RemoteError::BadAck);
            }
            if acks > stream.acks_seen {
                stream.acks_seen = acks;
                stream.acks_unseen_ns = (acks < stream.acks_sent).then_some(now_ns);
                self.note_progress(slot, now_ns);
            }
        }
        Ok(())
    }

    /// Note that the peer has reported something of a stream.
    pub(super) fn note_progress(&mut self, slot: usize, now_ns: u64) {
        // It was only slow: to send again what waits in its path fills the others.
        let resent: u64 = self
            .streams
            .iter()
            .map(|stream| stream.sent.resent_bytes)
            .sum();
        let is_costly = resent > self.acknowledged / 4 + FREE_RESENT_BYTES;
        let stream = &mut self.streams[slot];
        stream.progress_ns = now_ns;
        if now_ns.saturating_sub(stream.stalled_ns) > QUICK_NS {
            stream.slowness = 0;
        }
        if stream.state == StreamState::Stalled {
            if is_costly {
                stream.slowness = (stream.slowness + 1).min(MOST_SLOWNESS);
            }
            // What is still to be reported of it has its time again.
            stream.acks_unseen_ns = stream.acks_unseen_ns.map(|_| now_ns);
            let retires = stream.retires;
            self.set_state(
                slot,
                match retires {
                    true => StreamState::Retiring,
                    false => StreamState::Open,
                },
            );
            self.recovered.insert(slot);
        }
    }

    /// The streams that have come back since this was asked last.
    pub(crate) fn take_recovered(&mut self) -> StreamSet {
        std::mem::take(&mut self.recovered)
    }

    /// What changes whenever the peer reports or grants something.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let reported: u64 = self
            .alive
            .iter()
            .map(|slot| self.streams[slot].reported)
            .sum();
        (self.acknowledged + reported, self.limit)
    }

    /// Whether something is awaited from the peer: a report, room, or that it has the FIN.
    pub(crate) fn awaits(&self) -> bool {
        let has_unreported = self.acknowledged < self.next_offset + u64::from(self.fin_sent);
        has_unreported || (self.queued_bytes() > 0 && self.limit() <= self.next_offset)
    }
}
