//! Streams that come, stall, retire and go, and which of them may be given frames.

use super::flight::FlightLimit;
use super::opening::Phase;
use super::stream::{OutgoingFrame, Stream};
use super::Sender;
use crate::error::LocalError;
use crate::scheduler::{StreamSet, StreamView};
use crate::state::StreamState;

impl Sender {
    /// Use a stream with room in place `slot`: a new one, or that of a lost stream.
    pub fn add_stream(&mut self, slot: usize, id: u32, weight: f64) {
        let view = StreamView {
            weight,
            ..StreamView::default()
        };
        let mut stream = Stream::new(id);
        let has_others = !self.alive.without(self.stalled).is_empty();
        if self.next_offset > 0 && !has_others && self.phase == Phase::Open {
            stream.flight = FlightLimit::of_last_resort();
        }
        if slot < self.streams.len() {
            stream.sent = self.streams[slot].sent;
            self.streams[slot] = stream;
            self.views[slot] = view;
        } else {
            self.streams.push(stream);
            self.views.push(view);
        }
        self.with_room.insert(slot);
        self.full.remove(slot);
        self.late.remove(slot);
        for set in [
            &mut self.unconfirmed,
            &mut self.greeting,
            &mut self.confirming,
        ] {
            set.remove(slot);
        }
        if self.next_offset > 0 {
            self.joined.insert(slot);
        }
        self.set_state(slot, StreamState::Open);
    }

    /// Send no data on a stream that joined a server before its CONFIRM has come.
    pub(crate) fn set_unconfirmed(&mut self, slot: usize, is_unconfirmed: bool) {
        if self.unconfirmed.contains(slot) == is_unconfirmed {
            return;
        }
        self.unconfirmed.set(slot, is_unconfirmed);
        self.note_eligible();
    }

    /// Have a stream be in a state; the one place where the sets follow.
    pub(super) fn set_state(&mut self, slot: usize, state: StreamState) {
        self.streams[slot].state = state;
        for (set, wanted) in [
            (&mut self.alive, state != StreamState::Gone),
            (&mut self.stalled, state == StreamState::Stalled),
            (&mut self.retiring, state == StreamState::Retiring),
            (&mut self.last_begun, state == StreamState::Ended),
        ] {
            set.set(slot, wanted);
        }
        self.note_eligible();
    }

    /// Set a stream's priority: the streams of the lowest value that work are used.
    pub fn set_priority(&mut self, slot: usize, priority: u32) -> Result<(), LocalError> {
        let stream = self.streams.get_mut(slot);
        stream.ok_or(LocalError::NoSuchStream(slot))?.priority = priority;
        self.note_eligible();
        Ok(())
    }

    /// Find the streams that may be given data: open ones of the lowest priority value, those that are stalled or are to
    /// go only if there are no others.
    fn note_eligible(&mut self) {
        let unconfirmed = self.unconfirmed.without(self.greeting);
        let sending = self.alive.without(self.last_begun).without(unconfirmed);
        let open = sending.without(self.stalled).without(self.retiring);
        let first = open.iter().map(|slot| self.streams[slot].priority).min();
        let mut best = StreamSet::default();
        for slot in open.iter() {
            if Some(self.streams[slot].priority) == first {
                best.insert(slot);
            }
        }
        let choices = [best, sending.without(self.retiring), sending];
        let usable = choices.iter().find(|set| !set.is_empty());
        self.eligible = usable.copied().unwrap_or_default();
    }

    /// The alive stream of this id.
    pub(crate) fn slot_of(&self, id: u32) -> Option<usize> {
        let mut alive = self.alive.iter();
        alive.find(|&slot| self.streams[slot].id == id)
    }

    /// A stream's id.
    pub(crate) fn id(&self, slot: usize) -> u32 {
        self.streams[slot].id
    }

    /// Note that a stream is gone: what it took and the peer has not reported goes over the others.
    pub fn on_stream_lost(&mut self, slot: usize) -> Result<(), LocalError> {
        if slot >= self.streams.len() {
            return Err(LocalError::NoSuchStream(slot));
        }
        if !self.alive.contains(slot) {
            return Ok(());
        }
        if self.draft.is_some_and(|(stream, _)| stream == slot) {
            self.withdraw_draft(slot);
        }
        self.with_room.remove(slot);
        self.confirming.remove(slot);
        if !self.stalled.or(self.unconfirmed).contains(slot) {
            self.lost_open_ns = self.views_ns;
        }
        if self.phase == Phase::Greeting {
            self.phase = Phase::Silent;
        }
        self.set_state(slot, StreamState::Gone);
        self.streams[slot].out = OutgoingFrame::default();
        self.send_again(slot);
        Ok(())
    }

    /// Take a stream out: it gets no new frames, and its LAST once the peer has reported those it took.
    pub fn retire(&mut self, slot: usize) -> Result<(), LocalError> {
        if !self.alive.contains(slot) {
            return Err(LocalError::NoSuchStream(slot));
        }
        if self.draft.is_some_and(|(stream, _)| stream == slot) {
            self.withdraw_draft(slot);
        }
        self.streams[slot].retires = true;
        if self.streams[slot].state == StreamState::Open {
            self.set_state(slot, StreamState::Retiring);
        }
        Ok(())
    }

    /// Whether a stream is taken out.
    pub fn is_retiring(&self, slot: usize) -> bool {
        self.streams.get(slot).is_some_and(|stream| stream.retires)
    }

    /// Queue a stream's unreported frames for the other streams.
    pub(super) fn send_again(&mut self, slot: usize) {
        let acknowledged = self.acknowledged;
        let frames = self.streams[slot].in_flight.iter_mut();
        let spans = frames.filter(|frame| !frame.is_queued).map(|frame| {
            frame.is_elsewhere = true;
            frame.is_queued = true;
            frame.span
        });
        self.again
            .extend(spans.filter(|span| span.end() > acknowledged));
    }

    /// Where all streams but those that have just joined are late, queue what they hold: it goes before new data, which would
    /// wait for it.
    pub(super) fn relieve_late(&mut self) {
        let joined = self.joined.and(self.eligible);
        if joined.is_empty() {
            return;
        }
        self.joined = self.joined.without(joined);
        let others = self.eligible.without(joined);
        if others.without(self.late).is_empty() {
            for slot in others.iter() {
                self.send_again(slot);
            }
        }
    }

    /// Note that both sides have ended a stream, which is about to be gone.
    pub(crate) fn on_stream_ended(&mut self, slot: usize) {
        self.has_ended |= self.last_begun.contains(slot) && self.streams[slot].out.rest() == 0;
    }

    /// Whether LAST went out on all streams that work, or on one of them, which may be gone since.
    pub(crate) fn has_ended_streams(&self, one_is_enough: bool) -> bool {
        let ended = |slot: usize| self.streams[slot].out.rest() == 0;
        if one_is_enough {
            return self.has_ended || self.last_begun.iter().any(ended);
        }
        let working = self.alive.without(self.stalled).without(self.greeting);
        working.without(self.last_begun).is_empty() && self.last_begun.iter().all(ended)
    }

    /// The streams that are alive.
    pub fn alive(&self) -> StreamSet {
        self.alive
    }

    /// The streams that may be given frames.
    pub(crate) fn eligible(&self) -> StreamSet {
        self.eligible
    }

    /// The streams that are alive and bring nothing through.
    pub fn stalled(&self) -> StreamSet {
        self.stalled
    }
}
