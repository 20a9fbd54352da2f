//! Both directions of one connection: what a shell talks to.

mod timers;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::budget::Budget;
use crate::control::Control;
use crate::doubt::Doubts;
use crate::error::{Error, LocalError, RemoteError};
use crate::frame::{Expected, MAX_PAYLOAD_BYTES};
use crate::handshake::Proof;
use crate::hello::MAX_PRIORITY;
use crate::life::Life;
use crate::receiver::Receiver;
use crate::scheduler::{Scheduler, StreamSet};
use crate::send_buffer::SharedBytes;
use crate::sender::{Sender, Transmit};
use crate::slice::Slice;
use crate::state::{ConnectionState, Event, StreamState};
use crate::MAX_STREAMS;

use timers::Timers;

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

/// What one stream has carried, both directions. Bytes are application bytes, without headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounters {
    /// Data frames sent.
    pub frames_sent: u64,
    /// Application bytes sent.
    pub bytes_sent: u64,
    /// Data frames received.
    pub frames_received: u64,
    /// Application bytes received.
    pub bytes_received: u64,
    /// Frames received before an earlier one.
    pub out_of_order_frames: u64,
    /// Of the bytes sent, those that another stream had carried before.
    pub resent_bytes: u64,
    /// How often it was found to bring nothing through.
    pub stalls: u64,
}

/// What a connection has carried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Each stream's part.
    pub streams: Vec<StreamCounters>,
    /// Frames received before an earlier one, over all streams.
    pub out_of_order_frames: u64,
    /// Application bytes in the reorder buffer now.
    pub reorder_bytes: usize,
    /// The most application bytes that were ever in the reorder buffer.
    pub reorder_max_bytes: usize,
    /// Application bytes in the send queue now.
    pub queued_bytes: usize,
    /// Application bytes sent that the peer has not acknowledged.
    pub unacknowledged_bytes: usize,
    /// Application bytes that arrived more than once.
    pub duplicate_bytes: u64,
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
    pongs: u64,
    life: Life,
    doubts: Doubts,
    timers: Timers,
    state: ConnectionState,
    /// It was closed, and the peer has everything.
    delivered: bool,
    events: VecDeque<Event>,
    /// Slots whose streams are gone without the shell knowing.
    unclaimed: StreamSet,
}

impl Connection {
    /// A new connection whose frames `scheduler` spreads over the streams.
    pub fn new(config: Config, scheduler: Box<dyn Scheduler>) -> Result<Self, LocalError> {
        if !(1..=MAX_STREAMS).contains(&config.stream_count) {
            return Err(LocalError::StreamCount(config.stream_count));
        }
        if !(1..=MAX_PAYLOAD_BYTES).contains(&config.frame_payload_bytes) {
            return Err(LocalError::BadFramePayload(config.frame_payload_bytes));
        }
        Ok(Self {
            sender: Sender::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.send_queue_bytes,
                scheduler,
            ),
            receiver: Receiver::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.reorder_buffer_bytes,
            ),
            now_ns: 0,
            closed: None,
            trusting: false,
            pongs: 0,
            life: Life::default(),
            doubts: Doubts::default(),
            timers: Timers::default(),
            state: ConnectionState::Open,
            delivered: false,
            events: VecDeque::new(),
            unclaimed: StreamSet::default(),
        })
    }

    /// Take for delivered what a socket took: no acknowledgements, no window, nothing sent again. For models of streams
    /// that never fail, both ends alike; before anything else.
    pub fn trust_streams(&mut self) {
        self.trusting = true;
        self.sender.trust_streams();
        self.receiver.trust_streams();
    }

    /// See [`Receiver::share_budget`].
    pub fn share_budget(&mut self, budget: Arc<Budget>) {
        self.receiver.share_budget(budget);
    }

    /// See [`Sender::write`].
    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        self.sender.write(data)
    }

    /// See [`Sender::write_shared`].
    pub fn write_shared(&mut self, data: SharedBytes) -> Result<(), LocalError> {
        self.sender.write_shared(data)
    }

    /// See [`Sender::end`].
    pub fn end(&mut self) {
        self.sender.end();
    }

    /// See [`Sender::close_streams`].
    pub fn close_streams(&mut self) {
        let ack = (!self.trusting).then(|| self.receiver.make_ack());
        self.sender.close_streams(ack);
    }

    /// Tell the peer that the connection is given up; see [`crate::control::code`].
    pub fn close(&mut self, code: u16, reason: &str) {
        let reason = reason.to_owned();
        let control = Control::Close { code, reason };
        self.sender.push_control(control, self.sender.alive());
    }

    /// Ask the peer for a sign of life on every stream; [`Connection::pongs`] counts the answers.
    pub fn ping(&mut self, token: u64) {
        let alive = self.sender.alive();
        self.sender.push_control(Control::Ping(token), alive);
    }

    /// Have the first frame on a stream be a CONFIRM with this proof; see [`crate::handshake`]. A stream that begins
    /// otherwise is given up.
    pub fn expect_confirm(&mut self, slot: usize, proof: Proof) -> Result<(), LocalError> {
        self.receiver.expect_confirm(slot, proof)
    }

    /// Of a client: count the first bytes that were written as delivered, since they went with the hello.
    pub fn skip_early(&mut self, length: usize) {
        self.sender.skip_early(length);
    }

    /// Of a server: take the bytes that came with the hello; append to `out` what is in order.
    pub fn on_early(&mut self, early: &[u8], out: &mut Vec<Slice>) {
        self.receiver.on_early(early, out);
    }

    /// See [`Sender::poll`].
    pub fn poll(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.prepare(now_ns);
        self.sender.poll(now_ns)
    }

    /// See [`Sender::poll_frame`].
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        self.prepare(now_ns);
        self.sender.poll_frame(now_ns)
    }

    /// See [`Sender::rest`].
    pub fn rest<'a>(&'a self, stream: usize, take: impl FnMut(&'a [u8])) {
        self.sender.rest(stream, take);
    }

    /// See [`Sender::on_sent`].
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        self.sender.on_sent(stream, count)
    }

    /// See [`Sender::on_writable`].
    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        self.sender.on_writable(stream)
    }

    /// See [`Sender::set_weights`].
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        self.sender.set_weights(weights)
    }

    /// See [`Sender::set_delay`].
    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        self.sender.set_delay(stream, delay_ns)
    }

    /// See [`Sender::on_measured`].
    pub fn on_measured(
        &mut self,
        stream: usize,
        rate_bps: f64,
        delay_ns: u64,
    ) -> Result<(), LocalError> {
        self.sender.on_measured(stream, rate_bps, delay_ns)
    }

    /// See [`Sender::on_unsent`].
    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.sender.on_unsent(now_ns, stream, unsent_bytes)
    }

    /// Take bytes of a stream; append to `out` the application bytes that are now in order, which count as taken.
    ///
    /// After a remote error the connection must not be used again.
    pub fn on_received(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut slices = Vec::new();
        self.receive(stream, data, None, &mut slices)?;
        for slice in &slices {
            out.extend_from_slice(slice);
            self.on_consumed(slice.len());
        }
        Ok(())
    }

    /// Take bytes of a stream that lie in `chunk`; append to `out` what is now in order, without copying.
    ///
    /// What the application then takes is reported by [`Connection::on_consumed`].
    pub fn on_chunk(
        &mut self,
        stream: usize,
        chunk: &Arc<Vec<u8>>,
        length: usize,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.on_slice(stream, &Slice::new(Arc::clone(chunk), 0..length), out)
    }

    /// Take bytes of a stream in memory that may be kept; append to `out` what is now in order, without copying.
    pub fn on_slice(
        &mut self,
        stream: usize,
        slice: &Slice,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.receive(stream, slice, Some(slice), out)
    }

    /// See [`Receiver::next_in_place`].
    pub fn next_in_place(&self, stream: usize) -> usize {
        self.receiver.next_in_place(stream)
    }

    /// See [`Receiver::expects_payload`].
    pub fn expects_payload(&self, stream: usize) -> bool {
        self.receiver.expects_payload(stream)
    }

    /// See [`Receiver::on_in_place`]. The bytes count as taken by the application.
    pub fn on_in_place(
        &mut self,
        stream: usize,
        count: usize,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.receiver.on_in_place(stream, count, out)?;
        self.receiver.on_consumed(count);
        if self.alive().contains(stream) && count > 0 {
            self.life.hear(stream);
        }
        Ok(())
    }

    /// See [`Receiver::expected`].
    pub fn expected(&self, stream: usize) -> Option<Expected> {
        self.receiver.expected(stream)
    }

    fn receive(
        &mut self,
        stream: usize,
        data: &[u8],
        shared: Option<&Slice>,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        let mut controls = Vec::new();
        let had_last = self.receiver.has_last(stream);
        match self
            .receiver
            .on_received(stream, data, shared, out, &mut controls)
        {
            Err(Error::Remote(RemoteError::NotConfirmed)) => {
                self.give_up(stream);
                return Ok(());
            }
            result => result?,
        }
        if self.alive().contains(stream) && !data.is_empty() {
            self.life.hear(stream);
        }
        if self.receiver.has_last(stream) && !had_last && !self.trusting {
            // The peer takes the stream out: so do we, in the other direction.
            let _ = self.sender.retire(stream);
        }
        for control in controls {
            self.on_control(stream, control)?;
        }
        Ok(())
    }

    fn on_control(&mut self, slot: usize, control: Control) -> Result<(), RemoteError> {
        match control {
            Control::Ack {
                received,
                limit,
                streams,
            } => self.sender.on_ack(self.now_ns, received, limit, &streams)?,
            Control::Close { code, reason } => self.closed = Some((code, reason)),
            Control::Ping(token) => {
                let back = StreamSet::only(slot);
                self.sender.push_control(Control::Pong(token), back);
                self.timers.is_asked = true;
            }
            Control::Pong(_) => self.pongs += 1,
            Control::Seen(streams) => self.sender.on_seen(self.now_ns, &streams)?,
            Control::Gone(id) => {
                if let Some(slot) = self.sender.slot_of(id) {
                    self.give_up(slot);
                }
            }
            Control::Status { id, priority } => {
                if let Some(slot) = self.sender.slot_of(id) {
                    // The stream is there.
                    let _ = self.sender.set_priority(slot, priority);
                }
            }
            Control::Fin { .. } | Control::Last | Control::Confirm(_) => {}
        }
        Ok(())
    }

    /// See [`Receiver::on_consumed`].
    pub fn on_consumed(&mut self, bytes: usize) {
        self.receiver.on_consumed(bytes);
    }

    /// Take a stream out while the others go on; see [`Sender::retire`]. The peer does the same in its direction.
    pub fn remove_stream(&mut self, stream: usize) -> Result<(), LocalError> {
        let stays = |slot: usize| slot != stream && !self.sender.is_retiring(slot);
        if !self.alive().iter().any(stays) {
            return Err(LocalError::LastStream);
        }
        self.sender.retire(stream)
    }

    /// Whether a stream is being taken out and has not sent its LAST: TCP's end may wait for that.
    pub fn is_retiring(&self, stream: usize) -> bool {
        self.sender.is_retiring(stream)
    }

    /// Note that TCP ended a stream, or that the shell gave it up; true if the peer had ended it by a LAST frame.
    ///
    /// What it had not brought through goes over the others.
    pub fn on_stream_end(&mut self, stream: usize) -> Result<bool, LocalError> {
        let has_last = self.receiver.on_stream_end(stream)?;
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
        if !self.alive().contains(slot) {
            return;
        }
        // The stream is there.
        let _ = self.on_stream_end(slot);
        self.unclaimed.insert(slot);
        self.events.push_back(Event::StreamGone { slot });
    }

    /// The streams that have been silent while something is awaited: the shell asks TCP about them and tells what it says by
    /// [`Connection::on_unanswered`]. Due also at [`Connection::timeout_ns`].
    pub fn doubted(&mut self, now_ns: u64) -> StreamSet {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.doubts_streams() {
            return StreamSet::default();
        }
        let (alive, life) = (self.alive(), &self.life);
        let heard = alive.iter().map(|slot| (slot, life.stream_heard_ns(slot)));
        self.doubts.take_due(self.now_ns, heard)
    }

    /// Note whether TCP has sent again on a stream, for want of an answer, what is still not acknowledged. A stream where that
    /// lasts is given up: TCP's next attempt comes late, a new stream at once.
    pub fn on_unanswered(&mut self, now_ns: u64, slot: usize, is_unanswered: bool) {
        self.now_ns = self.now_ns.max(now_ns);
        if !self.alive().contains(slot) {
            return;
        }
        let round_trips_ns = self.sender.round_trips_of_ns(slot);
        let is_dead = (self.doubts).note(self.now_ns, slot, is_unanswered, round_trips_ns);
        if is_dead {
            self.give_up_for_silence(slot);
        }
    }

    fn doubts_streams(&self) -> bool {
        !self.trusting && (self.sender.awaits() || !self.stalled().is_empty())
    }

    /// Give up a stream through which nothing comes, and tell the peer.
    fn give_up_for_silence(&mut self, slot: usize) {
        let gone = Control::Gone(self.sender.id(slot));
        self.give_up(slot);
        self.timers.has_silent_paths = true;
        self.sender.push_control(gone, self.alive());
    }

    /// What the shell should know; none if nothing happened. While there is something, [`Connection::timeout_ns`] is due.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.events.pop_front();
        if let Some(Event::StreamGone { slot }) = event {
            self.unclaimed.remove(slot);
        }
        event
    }

    /// Where the connection is.
    pub fn state(&self) -> ConnectionState {
        self.state
    }

    /// Where a stream is; none if there never was one with this index.
    pub fn stream_state(&self, slot: usize) -> Option<StreamState> {
        self.sender.state(slot)
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
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(LocalError::BadWeights);
        }
        let (alive, unclaimed) = (self.sender.alive(), self.unclaimed);
        let slot = (0..MAX_STREAMS)
            .find(|&slot| !alive.contains(slot) && !unclaimed.contains(slot))
            .ok_or(LocalError::StreamCount(MAX_STREAMS + 1))?;
        self.sender.add_stream(slot, id, weight);
        self.receiver.add_stream(slot, id);
        self.life.add_stream(slot, self.now_ns);
        self.doubts.add_stream(slot);
        self.note_added();
        Ok(slot)
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

    /// How many pings were answered.
    pub fn pongs(&self) -> u64 {
        self.pongs
    }

    /// What has been carried so far.
    pub fn counters(&self) -> Counters {
        let reassembly = self.receiver.reassembly();
        let streams: Vec<_> = self
            .sender
            .sent()
            .zip(self.receiver.received())
            .map(|(sent, received)| StreamCounters {
                frames_sent: sent.frames,
                bytes_sent: sent.bytes,
                frames_received: received.frames,
                bytes_received: received.bytes,
                out_of_order_frames: received.out_of_order_frames,
                resent_bytes: sent.resent_bytes,
                stalls: sent.stalls,
            })
            .collect();
        Counters {
            out_of_order_frames: streams
                .iter()
                .map(|stream| stream.out_of_order_frames)
                .sum(),
            streams,
            reorder_bytes: reassembly.waiting_bytes(),
            reorder_max_bytes: reassembly.max_waiting_bytes(),
            queued_bytes: self.sender.queued_bytes(),
            unacknowledged_bytes: self.sender.unacknowledged_bytes(),
            duplicate_bytes: reassembly.duplicate_bytes(),
        }
    }
}
