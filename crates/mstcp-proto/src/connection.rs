//! Both directions of one connection: what a shell talks to.

mod counters;
mod incoming;
mod opening;
mod timers;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::budget::Budget;
use crate::control::Control;
use crate::error::LocalError;
use crate::frame::MAX_PAYLOAD_BYTES;
use crate::handshake::{ClientHandshake, Proof};
use crate::hello::MAX_PRIORITY;
use crate::peer_activity::PeerActivity;
use crate::receiver::Receiver;
use crate::scheduler::{Scheduler, StreamSet};
use crate::send_buffer::SharedBytes;
use crate::sender::{MeasuredPath, Sender};
use crate::slice::Slice;
use crate::state::{ConnectionState, Event};
use crate::unanswered::{Unanswered, UnansweredStreams};
use crate::MAX_STREAMS;

pub use counters::{Counters, StreamCounters};
use opening::{PendingJoin, PendingOpen};
use timers::Timers;

/// What may wait for the application of a plain connection before its stream is read no more.
const PLAIN_RECEIVE_BYTES: usize = 1 << 20;

/// What a connection is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How many streams, 1 to 64; their ids are 0 to one less.
    pub stream_count: usize,
    /// Application bytes in a full-size frame, 1 to 65,535, both directions.
    pub frame_payload_bytes: usize,
    /// Bound of the send queue, in application bytes.
    pub send_queue_bytes: usize,
    /// The receive window: bound of the bytes that are ahead or not taken by the application; 256 KiB at least.
    pub reorder_buffer_bytes: usize,
}

fn check_payload(frame_payload_bytes: usize) -> Result<(), LocalError> {
    match (1..=MAX_PAYLOAD_BYTES).contains(&frame_payload_bytes) {
        true => Ok(()),
        false => Err(LocalError::BadFramePayload(frame_payload_bytes)),
    }
}

/// One MSTCP connection, after the hellos. `now_ns` is the shell's monotonic clock.
///
/// The shell polls after whatever it told the connection, and again at [`Connection::timeout_ns`].
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
    now_ns: u64,
    closed: Option<(u16, String)>,
    trusting: bool,
    is_plain: bool,
    /// Client only: the hellos that have not been answered, and what makes further ones.
    opening: Option<PendingOpen>,
    joining: Vec<PendingJoin>,
    client: Option<ClientHandshake>,
    peer_activity: PeerActivity,
    unanswered_streams: UnansweredStreams,
    timers: Timers,
    state: ConnectionState,
    /// It was closed, and the peer has everything.
    delivered: bool,
    events: VecDeque<Event>,
    /// Slots whose streams are gone without the shell knowing.
    unclaimed: StreamSet,
    /// What this side has announced, and the number of what it heard last.
    announced: Option<(u32, Vec<SocketAddr>)>,
    heard_number: u32,
}

impl Connection {
    /// A new connection whose frames `scheduler` spreads over the streams.
    pub fn new(config: Config, scheduler: Box<dyn Scheduler>) -> Result<Self, LocalError> {
        if !(1..=MAX_STREAMS).contains(&config.stream_count) {
            return Err(LocalError::StreamCount(config.stream_count));
        }
        check_payload(config.frame_payload_bytes)?;
        Ok(Self::of(
            Sender::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.send_queue_bytes,
                Some(scheduler),
            ),
            Receiver::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.reorder_buffer_bytes,
            ),
        ))
    }

    /// Plain TCP behind the same interface: one stream, no hello, no frames; bytes in, the same bytes out. What a single path
    /// gets (the paper, section II).
    ///
    /// [`Connection::on_stream_end`] stands for the end of the peer's bytes, and leaves the other direction open; an empty frame
    /// of [`Connection::poll_frame`] stands for the end of ours. Unless `is_decided` the connection is refused if it begins with
    /// the magic of a hello.
    pub fn plain(
        frame_payload_bytes: usize,
        send_queue_bytes: usize,
        is_decided: bool,
    ) -> Result<Self, LocalError> {
        check_payload(frame_payload_bytes)?;
        let mut connection = Self::of(
            Sender::plain(frame_payload_bytes, send_queue_bytes),
            Receiver::plain(frame_payload_bytes, PLAIN_RECEIVE_BYTES, is_decided),
        );
        connection.trusting = true;
        connection.is_plain = true;
        Ok(connection)
    }

    /// Change how many bytes fill a frame, before anything was sent or received.
    ///
    /// # Errors
    /// Frames cannot have that many.
    pub fn set_frame_payload_bytes(
        &mut self,
        frame_payload_bytes: usize,
    ) -> Result<(), LocalError> {
        check_payload(frame_payload_bytes)?;
        self.sender.set_frame_payload_bytes(frame_payload_bytes);
        self.receiver.set_frame_payload_bytes(frame_payload_bytes);
        Ok(())
    }

    fn of(sender: Sender, receiver: Receiver) -> Self {
        Self {
            sender,
            receiver,
            now_ns: 0,
            closed: None,
            trusting: false,
            is_plain: false,
            opening: None,
            joining: Vec::new(),
            client: None,
            peer_activity: PeerActivity::default(),
            unanswered_streams: UnansweredStreams::default(),
            timers: Timers::new(),
            state: ConnectionState::Open,
            delivered: false,
            events: VecDeque::new(),
            unclaimed: StreamSet::default(),
            announced: None,
            heard_number: 0,
        }
    }

    /// Whether it is plain TCP: see [`Connection::plain`].
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Offer at most this many bytes at a time of a plain connection.
    pub fn set_plain_bytes(&mut self, most: usize) {
        self.sender.set_plain_bytes(most);
    }

    /// Append to `out` what may have been the beginning of a hello, when the stream of a plain connection ends.
    pub fn release_opening(&mut self, out: &mut Vec<Slice>) {
        self.receiver.release_opening(out);
    }

    /// Take for delivered what a socket took: no acknowledgements, no window, nothing sent again. For models of streams
    /// that never fail, both ends alike; before anything else.
    pub fn trust_streams(&mut self) {
        self.trusting = true;
        self.sender.trust_streams();
        self.receiver.trust_streams();
    }

    /// Promise no more than a part of what all connections of the process may promise, beyond 256 KiB.
    pub fn share_budget(&mut self, budget: Arc<Budget>) {
        self.receiver.share_budget(budget);
    }

    /// Release its receive memory once its sockets are closed; see [`Receiver::leave_budget`].
    pub fn leave_budget(&mut self) {
        self.receiver.leave_budget();
    }

    /// Queue a copy of application bytes.
    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        self.sender.write(data)?;
        self.note_written();
        Ok(())
    }

    /// Queue application bytes without copying them.
    pub fn write_shared(&mut self, data: SharedBytes) -> Result<(), LocalError> {
        self.sender.write_shared(data)?;
        self.note_written();
        Ok(())
    }

    /// Queue application bytes in memory that is kept by others too, without copying them.
    pub fn write_slice(&mut self, data: Slice) -> Result<(), LocalError> {
        self.sender.write_slice(data)?;
        self.note_written();
        Ok(())
    }

    /// Say that no more application bytes will come: after the last of them every stream gets a FIN.
    pub fn end(&mut self) {
        self.sender.end();
    }

    /// Say that nothing more will be sent or awaited: each stream gets its LAST, once all else has been taken. Before it goes
    /// what is known to have come: an acknowledgement on another stream may never arrive.
    fn close_streams(&mut self) {
        let ack = (!self.trusting).then(|| self.receiver.make_ack());
        self.sender.close_streams(ack);
    }

    /// Tell the peer that the connection is given up; see [`crate::code`].
    pub fn close(&mut self, code: u16, reason: &str) {
        if self.is_plain {
            return; // TCP has no words for it
        }
        let reason = reason.to_owned();
        let control = Control::Close { code, reason };
        self.sender.push_control(control, self.sender.alive());
    }

    /// Ask the peer for a sign of life on every stream.
    pub fn ping(&mut self, token: u64) {
        let alive = self.sender.alive();
        self.sender.note_pinged(self.now_ns);
        self.sender.push_control(Control::Ping(token), alive);
    }

    /// Have the first frame on a stream be a CONFIRM with this proof; see [`crate::handshake`]. A stream that begins
    /// otherwise is given up.
    pub fn expect_confirm(&mut self, slot: usize, proof: Proof) -> Result<(), LocalError> {
        self.receiver.expect_confirm(slot, proof)?;
        // The client of a path that works in one direction alone joins again and again: what such a stream took would be late.
        self.sender.set_unconfirmed(slot, self.sender.id(slot) > 0);
        Ok(())
    }

    /// Use the data frames behind a client's first hello before its CONFIRM: for servers without a secret.
    pub fn take_unconfirmed(&mut self) {
        self.receiver.take_unconfirmed();
    }

    /// Whether a server still awaits the client's CONFIRM on the stream that opened the connection.
    pub fn is_unconfirmed(&self) -> bool {
        self.receiver.is_unconfirmed()
    }

    /// Count the first bytes that a client wrote as delivered: they went with the hello.
    pub fn skip_early(&mut self, length: usize) {
        self.sender.skip_early(length);
    }

    /// Accept the bytes that came with a client's hello; append to `out` what is in order.
    pub fn on_early(&mut self, early: &[u8], out: &mut Vec<Slice>) {
        self.receiver.on_early(early, out);
    }

    /// Choose the frame that goes next and the stream that has room for it: the stream, and the bytes to be sent.
    ///
    /// The shell sends [`Connection::rest`] and reports by [`Connection::on_sent`]; until then the same frame is offered.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        self.prepare(now_ns);
        self.sender.poll_frame(now_ns)
    }

    /// Pass on what is left of the stream's frame, in pieces that are not copied.
    pub fn rest<'a>(&'a self, stream: usize, take: impl FnMut(&'a [u8])) {
        self.sender.rest(stream, take);
    }

    /// Report how many of the offered bytes the stream's socket took; fewer than offered means that it is full.
    ///
    /// Returns true when the stream has sent its last byte: the shell then shuts its sending side down.
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        self.sender.on_sent(stream, count)
    }

    /// Note that a stream's socket has room again.
    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        self.sender.on_writable(stream)
    }

    /// Take new weights, one for each stream: rates in bit/s, or any unit where rates are not known.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        self.sender.set_weights(weights)
    }

    /// Take the one-way propagation delay of a stream's path.
    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        self.sender.set_delay(stream, delay_ns)
    }

    /// Take what TCP knows of a stream's path: for streams whose rates nobody gave. A stream whose weight is 0 keeps it.
    pub fn on_measured(&mut self, stream: usize, path: &MeasuredPath) -> Result<(), LocalError> {
        self.sender.on_measured(stream, path)
    }

    /// Take how many of a stream's bytes the shell measured to be still in the host; without such reports it is estimated.
    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.sender.on_unsent(now_ns, stream, unsent_bytes)
    }

    /// Note that the application took bytes.
    pub fn on_consumed(&mut self, bytes: usize) {
        self.receiver.on_consumed(bytes);
    }

    /// Take a stream out while the others go on: it gets no new frames, and its LAST once the peer has reported those it took. The
    /// peer does the same in its direction.
    pub fn remove_stream(&mut self, stream: usize) -> Result<(), LocalError> {
        let stays = |slot: usize| slot != stream && !self.sender.is_retiring(slot);
        if !self.alive().iter().any(stays) {
            return Err(LocalError::LastStream);
        }
        self.sender.retire(stream)
    }

    /// Note that TCP ended a stream, or that the shell gave it up; true if the peer had ended it by a LAST frame.
    ///
    /// What it had not brought through goes over the others.
    pub fn on_stream_end(&mut self, stream: usize) -> Result<bool, LocalError> {
        let has_last = self.receiver.on_stream_end(stream)?;
        self.joining.retain(|one| one.slot != stream);
        if self.is_plain {
            return Ok(true);
        }
        let proper = has_last || self.sender.is_retiring(stream);
        if self.alive().contains(stream) {
            if proper {
                self.sender.on_stream_ended(stream);
            }
            self.sender.on_stream_lost(stream)?;
            self.receiver.tell_again();
            self.note_ended(proper, has_last);
        }
        Ok(proper)
    }

    /// Go on without a stream, and have the shell reset its socket.
    fn give_up(&mut self, slot: usize) {
        self.give_up_by(slot, Event::StreamGone { slot });
    }

    /// As [`Connection::give_up`], and tell the shell by this event.
    fn give_up_by(&mut self, slot: usize, event: Event) {
        if self.alive().contains(slot) {
            // The stream is there.
            let _ = self.on_stream_end(slot);
            self.unclaimed.insert(slot);
            self.events.push_back(event);
        }
    }

    /// The streams that have been silent while something is awaited: the shell asks TCP about them and tells what it says by
    /// [`Connection::on_unanswered`]. Due also at [`Connection::timeout_ns`].
    pub fn streams_to_query(&mut self, now_ns: u64) -> StreamSet {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.may_query_tcp() {
            return StreamSet::default();
        }
        let (alive, peer_activity) = (self.alive(), &self.peer_activity);
        let heard = alive
            .iter()
            .map(|slot| (slot, peer_activity.stream_heard_ns(slot)));
        self.unanswered_streams.take_due(self.now_ns, heard)
    }

    /// Note what the peer's kernel has not answered on a stream. A stream on which TCP sends again for long is given up: its next
    /// attempt comes late, a new stream at once.
    pub fn on_unanswered(&mut self, now_ns: u64, slot: usize, unanswered: Unanswered) {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.alive().contains(slot) {
            return;
        }
        if unanswered != Unanswered::Nothing {
            self.probe();
        }
        let round_trips_ns = self.sender.round_trips_of_ns(slot);
        let is_dead = (self.unanswered_streams).note(self.now_ns, slot, unanswered, round_trips_ns);
        if is_dead {
            self.give_up_stream(slot);
        }
    }

    fn may_query_tcp(&self) -> bool {
        let awaits = self.sender.awaits() || !self.stalled().is_empty();
        !self.trusting && (awaits || self.may_probe())
    }

    /// Give up a stream through which nothing comes, and tell the peer.
    pub fn give_up_stream(&mut self, slot: usize) {
        if !self.alive().contains(slot) {
            return;
        }
        let gone = Control::Gone(self.sender.id(slot));
        self.give_up(slot);
        self.timers.has_silent_paths = true;
        self.sender.push_control(gone, self.alive());
    }

    /// What the shell should know; none if nothing happened. While there is something, [`Connection::timeout_ns`] is due.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(slot) = event.as_ref().and_then(Event::gone_slot) {
            self.unclaimed.remove(slot);
        }
        event
    }

    /// Where the connection is.
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// Use a stream by this priority from now on, 0 to 255, in both directions: the streams of the lowest value that work
    /// carry everything, others are their backup.
    pub fn set_priority(&mut self, slot: usize, priority: u32) -> Result<(), LocalError> {
        if priority > MAX_PRIORITY {
            return Err(LocalError::BadPriority(priority));
        }
        self.note_priority(slot, priority)?;
        let id = self.sender.id(slot);
        let alive = self.alive();
        self.sender
            .push_control(Control::Status { id, priority }, alive);
        Ok(())
    }

    /// As [`Connection::set_priority`], where the peer knows it: its hello said so.
    pub fn note_priority(&mut self, slot: usize, priority: u32) -> Result<(), LocalError> {
        self.sender.set_priority(slot, priority)
    }

    /// Use a further stream whose socket has room; returns its index, which a lost stream may have had before.
    pub fn add_stream(&mut self, id: u32, weight: f64) -> Result<usize, LocalError> {
        if self.is_plain {
            return Err(LocalError::PlainHasOneStream);
        }
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(LocalError::BadWeights);
        }
        let (alive, unclaimed) = (self.sender.alive(), self.unclaimed);
        let slot = (0..MAX_STREAMS)
            .find(|&slot| !alive.contains(slot) && !unclaimed.contains(slot))
            .ok_or(LocalError::StreamCount(MAX_STREAMS + 1))?;
        self.sender.add_stream(slot, id, weight);
        self.receiver.add_stream(slot, id);
        self.peer_activity.note_stream(slot, self.now_ns);
        self.unanswered_streams.add_stream(slot);
        self.note_added();
        // It may have been lost with another.
        self.push_announced(StreamSet::only(slot));
        Ok(slot)
    }

    /// Tell the client (servers only) at which addresses, [`crate::MAX_ADDRESSES`] at most, it accepts further streams; those that
    /// were named before and are missing are withdrawn.
    pub fn announce(&mut self, addresses: Vec<SocketAddr>) {
        let number = self.announced.as_ref().map_or(0, |(number, _)| *number) + 1;
        self.announced = Some((number, addresses));
        self.push_announced(self.alive());
    }

    fn push_announced(&mut self, targets: StreamSet) {
        if let Some((number, addresses)) = self.announced.clone().filter(|_| !self.is_plain) {
            let control = Control::Addresses { number, addresses };
            self.sender.push_control(control, targets);
        }
    }

    /// The streams that should be read now: all that are alive.
    pub fn readable(&self) -> StreamSet {
        self.receiver.readable()
    }

    /// The streams that are alive.
    pub fn alive(&self) -> StreamSet {
        self.sender.alive()
    }

    /// The streams that are alive and bring nothing through.
    pub fn stalled(&self) -> StreamSet {
        self.sender.stalled()
    }

    /// Whether a stream's socket was full when last tried.
    pub fn is_blocked(&self, stream: usize) -> bool {
        self.sender.is_blocked(stream)
    }

    /// The streams that are alive and whose sockets were full when last tried.
    pub fn blocked(&self) -> StreamSet {
        self.sender.blocked()
    }

    /// Application bytes in the send queue.
    pub fn queued_bytes(&self) -> usize {
        self.sender.queued_bytes()
    }

    /// Application bytes sent that the peer has not acknowledged.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.sender.unacknowledged_bytes()
    }

    /// Whether the peer has acknowledged all we have to send, and its end.
    pub fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }

    /// Whether all of the peer's bytes have been delivered.
    pub fn is_ended(&self) -> bool {
        self.receiver.is_ended()
    }

    /// Code and reason, if the peer gave the connection up.
    pub fn closed_by_peer(&self) -> Option<(u16, &str)> {
        self.closed
            .as_ref()
            .map(|(code, reason)| (*code, reason.as_str()))
    }
}
