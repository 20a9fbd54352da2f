//! Streams that bring nothing through: found by what the peer reports, while it is known to live.

use super::opening::Phase;
use super::stream::ByteRange;
use super::{Sender, STALL_NS};
use crate::error::RemoteError;
use crate::peer_activity::PeerActivity;
use crate::scheduler::StreamSet;
use crate::state::StreamState;

/// A stream is given so much, and two round trips, after the peer was silent on all, in nanoseconds.
const AFTER_SILENCE_NS: u64 = 300_000_000;
/// The longest that a SEEN waits, in nanoseconds.
pub(crate) const SEEN_DELAY_NS: u64 = 400_000_000;
/// A stream that was found stalled and reported later is given twice the time, so often.
const MAX_SLOWNESS: u32 = 5;
/// That is done where more than a quarter of what arrived, and this, was sent again.
const FREE_RESENT_BYTES: u64 = 4 << 20;
/// How long a stream must work without a stall to be taken for quick again, in nanoseconds.
const QUICK_NS: u64 = 10_000_000_000;
/// How much longer a stream may be stalled before it is given up, in nanoseconds.
const GIVE_UP_NS: u64 = 1_000_000_000;
/// And for so much longer yet if it still brings something, in nanoseconds.
const ONE_WAY_NS: u64 = 30_000_000_000;
/// Where all streams are stalled, one that is only slow is opened again after so much, and two round trips, in nanoseconds: what
/// waits on its path would have to arrive before what the others lost. Every second time doubles it.
const CLOGGED_NS: u64 = 300_000_000;
/// So is one that is not stalled, but whose oldest frame was sent this long ago, in nanoseconds.
const CONGESTED_NS: u64 = 1_000_000_000;
/// A stream of which something was reported within this time is only slow, in nanoseconds.
const ONLY_SLOW_NS: u64 = 3_000_000_000;

impl Sender {
    /// Two round trips of the longest path, in nanoseconds.
    pub(crate) fn round_trips_ns(&self) -> u64 {
        let delays = self.alive.iter().map(|slot| self.views[slot].delay_ns);
        4 * delays.max().unwrap_or(0)
    }

    /// The round trip of the longest path where nothing waits in queues, in nanoseconds.
    pub(crate) fn least_round_trip_ns(&self) -> u64 {
        let delays = self
            .alive
            .iter()
            .map(|slot| self.views[slot].least_delay_ns);
        2 * delays.max().unwrap_or(0)
    }

    /// Two round trips of a stream's path, in nanoseconds.
    pub(crate) fn round_trips_of_ns(&self, slot: usize) -> u64 {
        4 * self.views[slot].delay_ns
    }

    /// Note the streams of which TCP says that it sends again without an answer.
    pub(crate) fn note_unanswered(&mut self, unanswered: StreamSet) {
        self.unanswered = unanswered;
    }

    /// Find the streams that have stalled by now; what they took goes over the others.
    pub(crate) fn check_stalls(&mut self, now_ns: u64, peer_activity: &PeerActivity) -> StreamSet {
        let mut late = StreamSet::default();
        let since = peer_activity.alive_since(now_ns, self.round_trips_ns());
        self.is_peer_alive = since.is_some();
        let Some(since_ns) = since else {
            return late;
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
                late.insert(slot);
            }
        }
        for slot in late.iter() {
            let stream = &mut self.streams[slot];
            stream.sent.stalls += 1;
            stream.stalled_ns = now_ns;
            stream.taken_stalled_ns = None;
            self.set_state(slot, StreamState::Stalled);
            if self.has_others() {
                self.send_again(slot);
            } else {
                // Over the next that comes: on this one it would wait behind itself.
                self.streams[slot].taken_stalled_ns = Some(0);
            }
        }
        self.relieve_stalled(now_ns);
        late
    }

    /// Send over others what stalled streams had to take while there were no others, if they do not bring that either.
    fn relieve_stalled(&mut self, now_ns: u64) {
        if self.eligible.without(self.stalled).is_empty() {
            return;
        }
        for slot in self.stalled.iter() {
            let taken_ns = self.streams[slot].taken_stalled_ns;
            if taken_ns.is_some_and(|at_ns| now_ns >= at_ns + self.patience_ns(slot)) {
                self.streams[slot].taken_stalled_ns = None;
                self.send_again(slot);
            }
        }
    }

    /// Whether there are several streams that may be given data; one that is not confirmed is none.
    fn has_others(&self) -> bool {
        self.alive.without(self.unconfirmed).is_several()
    }

    /// How long a stream may report nothing, in nanoseconds.
    fn patience_ns(&self, slot: usize) -> u64 {
        (STALL_NS + self.round_trips_ns()) << self.streams[slot].slowness
    }

    /// When a stream will be found stalled if nothing is reported; none if nothing is to be reported.
    fn stalls_at_ns(&self, slot: usize, since_ns: u64) -> Option<u64> {
        let stream = &self.streams[slot];
        // One that was held up looks at all its streams at once.
        let after_ns = (AFTER_SILENCE_NS + self.round_trips_ns()) << stream.slowness;
        let data_ns = (!stream.in_flight.is_empty()).then_some(stream.progress_ns);
        let acks_ns = stream.acks_unseen_ns.map(|at_ns| at_ns + SEEN_DELAY_NS);
        // A lone stream that brings data carries on, though nothing is known of the acknowledgements; but not where the peer's
        // answers wait on it behind what was sent before.
        let other_ns = match self.has_others() {
            true => acks_ns,
            false => stream.pinged_ns,
        };
        let from_ns = data_ns.into_iter().chain(other_ns).min()?;
        let at_ns = from_ns + self.patience_ns(slot);
        match self.unanswered.contains(slot) {
            // Its kernel has said so: the peer's reports need not be awaited.
            true => Some(at_ns),
            false => Some(at_ns.max(since_ns + after_ns)),
        }
    }

    /// When to look again, if nothing comes from the peer.
    pub(crate) fn stall_at_ns(&self, now_ns: u64, peer_activity: &PeerActivity) -> Option<u64> {
        let since_ns = peer_activity.alive_since(now_ns, self.round_trips_ns())?;
        let judged = self.alive.without(self.stalled).without(self.last_begun);
        let stall = judged
            .iter()
            .filter_map(|slot| self.stalls_at_ns(slot, since_ns));
        let give_up = self.stalled.iter().map(|slot| self.given_up_at_ns(slot));
        let congested = self.stalled.or(self.congested(now_ns));
        let clogged = congested.iter().map(|slot| self.clogged_at_ns(slot));
        // What was due and not done waits for something else, which wakes us.
        stall
            .chain(give_up)
            .chain(clogged)
            .filter(|at_ns| *at_ns > now_ns)
            .min()
    }

    fn given_up_at_ns(&self, slot: usize) -> u64 {
        self.streams[slot].stalled_ns + GIVE_UP_NS + self.round_trips_of_ns(slot)
    }

    /// The streams that have stalled for so long that they should be opened again: of use in neither direction while another
    /// brings things through, or for longer while another works in both. One that brings something may be the only one that
    /// will.
    pub(crate) fn hopeless(&mut self, now_ns: u64, peer_activity: &PeerActivity) -> StreamSet {
        let mut hopeless = StreamSet::default();
        let open = self
            .alive
            .without(self.stalled)
            .without(self.retiring)
            .without(self.last_begun)
            .without(self.unconfirmed);
        if !self.is_peer_alive {
            return hopeless;
        }
        let congested = self.congested(now_ns);
        if open.without(congested).is_empty() {
            let clogged = self.clogged(now_ns, peer_activity, congested);
            if !clogged.is_empty() {
                self.note_clogs(now_ns);
            }
            return clogged;
        }
        let recent = |at_ns: u64, slot: usize| {
            now_ns.saturating_sub(at_ns) <= GIVE_UP_NS + self.round_trips_of_ns(slot)
        };
        let hears = |slot: usize| recent(peer_activity.stream_heard_ns(slot), slot);
        let tells = |slot: usize| recent(self.streams[slot].told_ns, slot);
        let sends = open.iter().any(tells);
        let another_works = open.iter().any(hears);
        for slot in self.stalled.iter() {
            let at_ns = self.given_up_at_ns(slot);
            let is_hopeless = match hears(slot) {
                true => another_works && now_ns >= at_ns + ONE_WAY_NS,
                false => sends && now_ns >= at_ns,
            };
            if is_hopeless {
                hopeless.insert(slot);
            }
        }
        hopeless
    }

    /// Note that clogged streams are opened again.
    fn note_clogs(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.clogged_ns) > QUICK_NS {
            self.clogs = 0;
        }
        self.clogs = (self.clogs + 1).min(MAX_SLOWNESS);
        self.clogged_ns = now_ns;
    }

    /// While bytes wait to be sent again: the streams on which they would wait for longer than a new stream takes to open.
    fn congested(&self, now_ns: u64) -> StreamSet {
        let mut congested = StreamSet::default();
        let lacks = |span: &ByteRange| span.end() > self.acknowledged;
        if !self.again.iter().any(lacks) {
            return congested;
        }
        for slot in self.late.and(self.alive).without(self.stalled).iter() {
            let oldest = self.streams[slot].in_flight.front();
            if oldest.is_some_and(|frame| now_ns >= frame.left_ns + CONGESTED_NS) {
                congested.insert(slot);
            }
        }
        congested
    }

    /// Where all streams are stalled or congested: those that bring things through in both directions, but slowly. Their paths
    /// work, so that new streams can be opened there, which carry first what is missing.
    fn clogged(
        &self,
        now_ns: u64,
        peer_activity: &PeerActivity,
        congested: StreamSet,
    ) -> StreamSet {
        let mut clogged = StreamSet::default();
        for slot in self.stalled.or(congested).iter() {
            let stream = &self.streams[slot];
            let hears = now_ns.saturating_sub(peer_activity.stream_heard_ns(slot)) <= GIVE_UP_NS;
            let tells = stream.told_ns > 0 && now_ns - stream.told_ns <= ONLY_SLOW_NS;
            if hears && tells && now_ns >= self.clogged_at_ns(slot) {
                clogged.insert(slot);
            }
        }
        clogged
    }

    fn clogged_at_ns(&self, slot: usize) -> u64 {
        let after_ns = CLOGGED_NS + self.round_trips_of_ns(slot);
        let stalled = self
            .stalled
            .iter()
            .map(|slot| self.streams[slot].stalled_ns);
        // Another may come back soon after the last that worked was lost.
        let since_ns = stalled.max().unwrap_or(0).max(self.lost_open_ns);
        since_ns + (after_ns << (self.clogs / 2))
    }

    /// Note that the peer is asked on all streams.
    pub(crate) fn note_pinged(&mut self, now_ns: u64) {
        for slot in self.alive.iter() {
            self.streams[slot].pinged_ns.get_or_insert(now_ns);
        }
    }

    /// Note that the peer's answer has come on the stream on which it was asked.
    pub(crate) fn note_pong(&mut self, now_ns: u64, slot: usize) {
        let stream = &mut self.streams[slot];
        stream.pinged_ns = None;
        stream.told_ns = now_ns;
        if stream.in_flight.is_empty() && stream.acks_unseen_ns.is_none() {
            self.note_told(slot, now_ns);
        }
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
                self.note_told(slot, now_ns);
            }
        }
        Ok(())
    }

    /// Note that the peer has reported data frames of a stream.
    pub(super) fn note_progress(&mut self, slot: usize, now_ns: u64) {
        self.streams[slot].progress_ns = now_ns;
        self.note_told(slot, now_ns);
    }

    /// Note that the peer has reported something of a stream.
    fn note_told(&mut self, slot: usize, now_ns: u64) {
        // It was only slow: to send again what waits in its path fills the others.
        let resent: u64 = self
            .streams
            .iter()
            .map(|stream| stream.sent.resent_bytes)
            .sum();
        let is_costly = resent > self.acknowledged / 4 + FREE_RESENT_BYTES;
        let stream = &mut self.streams[slot];
        stream.told_ns = now_ns;
        if now_ns.saturating_sub(stream.stalled_ns) > QUICK_NS {
            stream.slowness = 0;
        }
        if stream.state == StreamState::Stalled {
            if is_costly {
                stream.slowness = (stream.slowness + 1).min(MAX_SLOWNESS);
            }
            // What is still to be reported of it has its time again.
            stream.progress_ns = now_ns;
            stream.acks_unseen_ns = stream.acks_unseen_ns.map(|_| now_ns);
            stream.pinged_ns = None;
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

    /// Whether acknowledgements went out of which the peer has not said that they have come.
    pub(crate) fn has_unseen_acks(&self) -> bool {
        let mut alive = self.alive.iter();
        alive.any(|slot| self.streams[slot].acks_unseen_ns.is_some())
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
        if self.phase != Phase::Open {
            return false;
        }
        let has_unreported = self.acknowledged < self.next_offset + u64::from(self.fin_sent);
        has_unreported || (self.queued_bytes() > 0 && self.limit() <= self.next_offset)
    }
}
