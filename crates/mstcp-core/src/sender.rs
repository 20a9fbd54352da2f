//! Application bytes to frames, frames to streams, and again over others when a stream is lost.
//!
//! All unsent bytes wait in one queue of the connection. A frame is cut and given to a stream only when the shell asks
//! for it, and becomes final only when the stream's socket took some of it: if the socket was full the bytes are still
//! in the queue and the choice is repeated among the others. What an application writes is never held back to fill a
//! frame; writes merge only while they wait in the queue anyway. Bytes stay here until the peer acknowledged them.

use std::collections::VecDeque;

use crate::control::Control;
use crate::error::{LocalError, RemoteError};
use crate::frame::{self, MAX_LONG_BYTES};
use crate::receiver::INITIAL_WINDOW_BYTES;
use crate::scheduler::{check_weights, Scheduler, StreamSet, StreamView, View};
use crate::send_buffer::{SendBuffer, SharedBytes};

/// A frame lasts about so long at its stream's rate, in seconds.
const FRAME_SECONDS: f64 = 0.002;
/// Below this rate frames are of full size, one segment each, for the sake of delay; in bit/s.
const LARGE_FRAMES_BPS: f64 = 50e6;
/// The greatest frame that is sent.
const LARGEST_FRAME_BYTES: usize = 1 << 17;
/// A stream that had nothing acknowledged for so long is stalled, in nanoseconds: what it holds is sent over others.
pub const STALL_NS: u64 = 1_000_000_000;

/// Bytes for the shell to send on a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Index of the stream.
    pub stream: usize,
    /// What to send on it next.
    pub data: &'a [u8],
}

/// What one stream has carried of this direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Data frames.
    pub frames: u64,
    /// Application bytes in them (no headers).
    pub bytes: u64,
    /// Those of the bytes that another stream had carried before.
    pub resent_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    offset: u64,
    length: usize,
}

impl Span {
    fn end(self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A frame that is being sent.
#[derive(Debug, Default, Clone)]
struct Outgoing {
    header: Vec<u8>,
    span: Option<Span>,
    taken: usize,
    ends_stream: bool,
}

impl Outgoing {
    fn rest(&self) -> usize {
        self.header.len() + self.span.map_or(0, |span| span.length) - self.taken
    }

    /// Be ready for the next frame; the header's memory is kept.
    fn clear(&mut self) {
        self.header.clear();
        self.span = None;
        self.taken = 0;
        self.ends_stream = false;
    }
}

#[derive(Debug)]
struct Stream {
    id: u32,
    alive: bool,
    out: Outgoing,
    /// Data frames sent on it that the peer has not reported, in their order, and how many it has.
    in_flight: VecDeque<Span>,
    reported: u64,
    progress_ns: u64,
    fin_begun: bool,
    last_begun: bool,
    sent: Sent,
}

impl Stream {
    fn new(id: u32) -> Self {
        Self {
            id,
            alive: true,
            out: Outgoing::default(),
            in_flight: VecDeque::new(),
            reported: 0,
            progress_ns: 0,
            fin_begun: false,
            last_begun: false,
            sent: Sent::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draft {
    New,
    Again,
    Fin,
    Last,
    Control,
    Ack,
}

/// The sending direction of a connection.
#[derive(Debug)]
pub struct Sender {
    frame_payload_bytes: usize,
    buffer: SendBuffer,
    queue_limit_bytes: usize,
    scheduler: Box<dyn Scheduler>,
    views: Vec<StreamView>,
    /// When the backlogs of `views` were true, in nanoseconds of the shell's clock.
    views_ns: u64,
    streams: Vec<Stream>,
    alive: StreamSet,
    with_room: StreamSet,
    /// Alive streams that bring nothing through.
    stalled: StreamSet,
    /// The frame that `poll` offered and no byte of which has been taken yet.
    draft: Option<(usize, Draft)>,
    /// Bytes to be sent once more, by rising offset.
    again: VecDeque<Span>,
    next_offset: u64,
    acknowledged: u64,
    limit: u64,
    ended: bool,
    fin_sent: bool,
    closing: bool,
    controls: VecDeque<Control>,
    /// The acknowledgement that is to be sent, and the stream that it prefers.
    ack: Option<(usize, Control)>,
    scratch: Vec<u8>,
    trusting: bool,
}

impl Sender {
    /// A sender over `stream_count` streams of equal weights whose sockets all have room. The queue is bounded to
    /// `queue_limit_bytes`, but an empty queue takes a write of any size.
    pub fn new(
        stream_count: usize,
        frame_payload_bytes: usize,
        queue_limit_bytes: usize,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        let mut sender = Self {
            frame_payload_bytes,
            buffer: SendBuffer::default(),
            queue_limit_bytes,
            scheduler,
            views: Vec::new(),
            views_ns: 0,
            streams: Vec::new(),
            alive: StreamSet::default(),
            with_room: StreamSet::default(),
            stalled: StreamSet::default(),
            draft: None,
            again: VecDeque::new(),
            next_offset: 0,
            acknowledged: 0,
            limit: INITIAL_WINDOW_BYTES as u64,
            ended: false,
            fin_sent: false,
            closing: false,
            controls: VecDeque::new(),
            ack: None,
            scratch: Vec::new(),
            trusting: false,
        };
        for slot in 0..stream_count {
            sender.add_stream(slot, slot as u32, 1.0);
        }
        sender
    }

    /// Take what a socket took for delivered.
    pub(crate) fn trust_streams(&mut self) {
        self.trusting = true;
        self.limit = u64::MAX;
    }

    fn release_taken(&mut self) {
        let begun = self.streams.iter().filter(|stream| stream.out.rest() > 0);
        let begun = begun.filter_map(|stream| stream.out.span.map(|span| span.offset));
        self.acknowledged = begun.min().unwrap_or(self.next_offset);
        self.buffer.release(self.acknowledged);
        for stream in &mut self.streams {
            stream.in_flight.clear();
        }
        if self.streams.iter().all(|stream| stream.fin_begun) {
            self.acknowledged = self.next_offset + 1;
        }
    }

    /// Queue a copy of application bytes.
    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        self.check_write(data.len())?;
        self.buffer.push_copy(data);
        Ok(())
    }

    /// Queue application bytes without copying them.
    pub fn write_shared(&mut self, data: SharedBytes) -> Result<(), LocalError> {
        self.check_write((*data).as_ref().len())?;
        self.buffer.push_shared(data);
        Ok(())
    }

    fn check_write(&self, length: usize) -> Result<(), LocalError> {
        if self.ended {
            return Err(LocalError::WriteAfterEnd);
        }
        let queued = self.queued_bytes();
        if queued > 0 && queued + length > self.queue_limit_bytes {
            return Err(LocalError::SendQueueFull {
                queued,
                limit: self.queue_limit_bytes,
            });
        }
        Ok(())
    }

    /// Say that no more application bytes will come: after the last of them every stream gets a FIN.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Say that nothing more will be sent or awaited: each stream gets its LAST, once all else has been taken.
    pub fn close_streams(&mut self) {
        self.closing = true;
    }

    /// Queue a control frame; it goes before data.
    pub fn push_control(&mut self, control: Control) {
        self.controls.push_back(control);
    }

    /// Send an acknowledgement, by preference on the stream that brought data last: its path works.
    pub(crate) fn push_ack(&mut self, stream: usize, ack: Control) {
        self.ack = Some((stream, ack));
    }

    /// Whether an acknowledgement waits to be sent.
    pub(crate) fn has_ack(&self) -> bool {
        self.ack.is_some()
    }

    /// Answer a ping; one answer waits at a time, so that pings cannot fill memory.
    pub(crate) fn push_pong(&mut self, token: u64) {
        self.controls
            .retain(|control| !matches!(control, Control::Pong(_)));
        self.controls.push_back(Control::Pong(token));
    }

    /// Use a stream with room in place `slot`: a new one, or that of a lost stream.
    pub fn add_stream(&mut self, slot: usize, id: u32, weight: f64) {
        let view = StreamView {
            weight,
            delay_ns: 0,
            backlog_bytes: 0.0,
        };
        let mut stream = Stream::new(id);
        if slot < self.streams.len() {
            stream.sent = self.streams[slot].sent;
            self.streams[slot] = stream;
            self.views[slot] = view;
        } else {
            self.streams.push(stream);
            self.views.push(view);
        }
        self.alive.insert(slot);
        self.with_room.insert(slot);
        self.stalled.remove(slot);
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
        self.alive.remove(slot);
        self.with_room.remove(slot);
        self.stalled.remove(slot);
        self.streams[slot].alive = false;
        self.streams[slot].out = Outgoing::default();
        self.send_again(slot);
        Ok(())
    }

    /// Queue a stream's unreported frames for the other streams.
    fn send_again(&mut self, slot: usize) {
        let acknowledged = self.acknowledged;
        let spans = self.streams[slot].in_flight.iter();
        self.again
            .extend(spans.filter(|span| span.end() > acknowledged));
        self.again
            .make_contiguous()
            .sort_unstable_by_key(|span| (span.offset, span.length));
    }

    /// Choose the frame that goes next and the stream that has room for it: the stream, and the bytes to be sent.
    ///
    /// The shell sends [`Sender::rest`] and reports by [`Sender::on_sent`]; until then the same frame is offered.
    pub fn poll_frame(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        self.check_stalls(now_ns);
        let stream = match self.draft {
            Some((stream, _)) => stream,
            None => match self.begun_frame() {
                Some(stream) => stream,
                None => self.draw(now_ns)?,
            },
        };
        Some((stream, self.streams[stream].out.rest()))
    }

    /// Offer the next bytes to send as one slice: [`Sender::poll_frame`] with a copy.
    pub fn poll(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let (stream, _) = self.poll_frame(now_ns)?;
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        self.rest(stream, |piece| scratch.extend_from_slice(piece));
        self.scratch = scratch;
        Some(Transmit {
            stream,
            data: &self.scratch,
        })
    }

    /// Pass on what is left of the stream's frame, in pieces that are not copied.
    pub fn rest<'a>(&'a self, stream: usize, mut take: impl FnMut(&'a [u8])) {
        let out = &self.streams[stream].out;
        let header_bytes = out.header.len();
        if out.taken < header_bytes {
            take(&out.header[out.taken..]);
        }
        if let Some(span) = out.span {
            let taken = out.taken.saturating_sub(header_bytes);
            self.buffer
                .pieces(span.offset + taken as u64, span.length - taken, take);
        }
    }

    /// Report how many of the offered bytes the stream's socket took; fewer than offered means that it is full.
    ///
    /// Returns true when the stream has sent its last byte: the shell then shuts its sending side down.
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        let Some(out) = self.streams.get(stream).map(|stream| &stream.out) else {
            return Err(LocalError::NoSuchStream(stream));
        };
        let offered = out.rest();
        if count > offered {
            return Err(LocalError::SentTooMuch {
                reported: count,
                offered,
            });
        }
        if count < offered {
            self.with_room.remove(stream);
        }
        if let Some((drafted, draft)) = self.draft {
            if drafted == stream {
                if count == 0 {
                    self.withdraw_draft(stream);
                    return Ok(false);
                }
                self.draft = None;
                self.begin(stream, draft);
            }
        }
        let out = &mut self.streams[stream].out;
        out.taken += count;
        if out.rest() > 0 || offered == 0 {
            return Ok(false);
        }
        let ends_stream = out.ends_stream;
        out.clear();
        if self.trusting {
            self.release_taken();
        }
        Ok(ends_stream)
    }

    /// Note that a stream's socket has room again.
    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        if stream >= self.streams.len() {
            return Err(LocalError::NoSuchStream(stream));
        }
        if self.alive.contains(stream) {
            self.with_room.insert(stream);
        }
        Ok(())
    }

    /// Take an acknowledgement.
    pub fn on_ack(
        &mut self,
        now_ns: u64,
        received: u64,
        limit: u64,
        streams: &[(u32, u64)],
    ) -> Result<(), RemoteError> {
        if received > self.next_offset + u64::from(self.fin_sent) {
            return Err(RemoteError::BadAck);
        }
        self.acknowledged = self.acknowledged.max(received);
        self.limit = self.limit.max(limit);
        self.release_acknowledged();
        for &(id, frames) in streams {
            let found = self
                .streams
                .iter_mut()
                .enumerate()
                .find(|(_, stream)| stream.alive && stream.id == id);
            let Some((slot, stream)) = found else {
                continue;
            };
            let new = frames.saturating_sub(stream.reported);
            if new > stream.in_flight.len() as u64 {
                return Err(RemoteError::BadAck);
            }
            if new > 0 {
                stream.in_flight.drain(..new as usize);
                stream.reported = frames;
                stream.progress_ns = now_ns;
                self.stalled.remove(slot);
            }
        }
        Ok(())
    }

    /// Forget what the peer has. A frame that another stream has overtaken still must leave whole: its rest is copied.
    fn release_acknowledged(&mut self) {
        let mut end = self.acknowledged.min(self.next_offset);
        let drafted = self.draft.map(|(slot, _)| slot);
        if let Some(span) = drafted.and_then(|slot| self.streams[slot].out.span) {
            end = end.min(span.offset);
        }
        for slot in (0..self.streams.len()).filter(|slot| Some(*slot) != drafted) {
            let out = &self.streams[slot].out;
            let taken = out.taken.saturating_sub(out.header.len()) as u64;
            if out.span.is_some_and(|span| span.offset + taken < end) {
                let mut header = Vec::with_capacity(out.rest());
                self.rest(slot, |piece| header.extend_from_slice(piece));
                self.streams[slot].out = Outgoing {
                    header,
                    ..Outgoing::default()
                };
            }
        }
        self.buffer.release(end);
    }

    /// Take new weights, one for each stream: rates in bit/s, or any unit where rates are not known.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        check_weights(weights)?;
        if weights.len() != self.views.len() {
            return Err(LocalError::BadWeights);
        }
        for (view, weight) in self.views.iter_mut().zip(weights) {
            view.weight = *weight;
        }
        Ok(())
    }

    /// Take the one-way propagation delay of a stream's path.
    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        self.view_mut(stream)?.delay_ns = delay_ns;
        Ok(())
    }

    /// Take what the shell found of a stream's bytes to be still in the host; without such reports it is reckoned.
    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.drain_backlogs(now_ns);
        self.view_mut(stream)?.backlog_bytes = unsent_bytes as f64;
        Ok(())
    }

    fn view_mut(&mut self, stream: usize) -> Result<&mut StreamView, LocalError> {
        self.views
            .get_mut(stream)
            .ok_or(LocalError::NoSuchStream(stream))
    }

    fn drain_backlogs(&mut self, now_ns: u64) {
        let elapsed_s = now_ns.saturating_sub(self.views_ns) as f64 * 1e-9;
        self.views_ns = self.views_ns.max(now_ns);
        for view in &mut self.views {
            let left = view.backlog_bytes - view.weight / 8.0 * elapsed_s;
            view.backlog_bytes = left.max(0.0);
        }
    }

    /// Whether the stream's socket was full when last tried.
    pub fn is_blocked(&self, stream: usize) -> bool {
        !self.with_room.contains(stream)
    }

    /// The streams that are alive and whose sockets were full when last tried.
    pub fn blocked(&self) -> StreamSet {
        self.alive.without(self.with_room)
    }

    /// The streams that are alive.
    pub fn alive(&self) -> StreamSet {
        self.alive
    }

    /// Application bytes in the queue: written, and in no frame that a socket has begun to take.
    pub fn queued_bytes(&self) -> usize {
        (self.buffer.end() - self.next_offset) as usize
    }

    /// Application bytes that were sent and that the peer has not acknowledged.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.next_offset.saturating_sub(self.acknowledged) as usize
    }

    /// Whether the peer has all bytes and knows that they are all.
    pub fn is_finished(&self) -> bool {
        self.ended && self.acknowledged == self.buffer.end() + 1
    }

    /// When a stream may be found stalled, if nothing comes from the peer: poll again then.
    pub fn stall_at_ns(&self) -> Option<u64> {
        if self.alive.iter().count() < 2 {
            return None;
        }
        self.alive
            .iter()
            .filter(|&slot| !self.stalled.contains(slot))
            .map(|slot| &self.streams[slot])
            .filter(|stream| !stream.in_flight.is_empty())
            .map(|stream| stream.progress_ns + STALL_NS)
            .min()
    }

    /// The streams that are alive and bring nothing through.
    pub fn stalled(&self) -> StreamSet {
        self.stalled
    }

    /// What each stream has carried.
    pub fn sent(&self) -> impl Iterator<Item = Sent> + '_ {
        self.streams.iter().map(|stream| stream.sent)
    }

    fn check_stalls(&mut self, now_ns: u64) {
        if self.alive.iter().count() < 2 {
            return;
        }
        for slot in self.alive.iter() {
            let stream = &self.streams[slot];
            if !self.stalled.contains(slot)
                && !stream.in_flight.is_empty()
                && now_ns >= stream.progress_ns + STALL_NS
            {
                self.stalled.insert(slot);
                self.send_again(slot);
            }
        }
    }

    /// The streams that may be given frames: those that stall only if all do.
    fn eligible(&self) -> StreamSet {
        let moving = self.alive.without(self.stalled);
        let usable = if moving.is_empty() {
            self.alive
        } else {
            moving
        };
        let mut open = StreamSet::default();
        for slot in usable.iter().filter(|&slot| !self.streams[slot].last_begun) {
            open.insert(slot);
        }
        open
    }

    /// A stream with room that has part of a frame left to send.
    fn begun_frame(&self) -> Option<usize> {
        self.with_room
            .iter()
            .find(|&index| self.streams[index].out.rest() > 0)
    }

    fn withdraw_draft(&mut self, stream: usize) {
        if let Some((_, draft)) = self.draft.take() {
            let out = std::mem::take(&mut self.streams[stream].out);
            // All else is still where it was taken from.
            if let (Draft::Again, Some(span)) = (draft, out.span) {
                self.again.push_front(span);
            }
        }
    }

    /// Make the drafted frame final on its stream, and copy it to the others if the scheduler wants it so.
    fn begin(&mut self, stream: usize, draft: Draft) {
        match draft {
            Draft::Fin => {
                self.streams[stream].fin_begun = true;
                self.fin_sent = true;
            }
            Draft::Last => self.streams[stream].last_begun = true,
            Draft::Ack => self.ack = None,
            Draft::Control => {
                self.controls.pop_front();
            }
            Draft::New | Draft::Again => self.begin_data(stream, draft == Draft::Again),
        }
    }

    fn begin_data(&mut self, stream: usize, again: bool) {
        let Some(span) = self.streams[stream].out.span else {
            return;
        };
        let view = self.view(self.views_ns, span.length);
        let (alive, with_room) = (view.alive, view.with_room);
        let mut scheduler = std::mem::replace(&mut self.scheduler, Box::new(NoScheduler));
        scheduler.on_begun(&self.view(self.views_ns, span.length), stream);
        let copied = scheduler.is_copied(span.length);
        self.scheduler = scheduler;
        let mut carriers = StreamSet::default();
        carriers.insert(stream);
        if copied {
            for index in with_room.iter().filter(|&index| alive.contains(index)) {
                let idle = self.streams[index].out.rest() == 0;
                if idle && self.views[index].weight > 0.0 {
                    self.streams[index].out = self.streams[stream].out.clone();
                    carriers.insert(index);
                }
            }
        }
        for index in carriers.iter() {
            let now_ns = self.views_ns;
            let out = &mut self.streams[index];
            out.sent.frames += 1;
            out.sent.bytes += span.length as u64;
            if again {
                out.sent.resent_bytes += span.length as u64;
            }
            if out.in_flight.is_empty() {
                out.progress_ns = now_ns;
            }
            out.in_flight.push_back(span);
            self.views[index].backlog_bytes += out.out.rest() as f64;
        }
        if !again {
            self.next_offset = span.end();
        }
    }

    fn view(&self, now_ns: u64, frame_bytes: usize) -> View<'_> {
        let eligible = self.eligible();
        View {
            now_ns,
            frame_bytes,
            alive: eligible,
            with_room: self.with_room.and(eligible),
            streams: &self.views,
        }
    }

    /// How large a frame may be on a stream: full size at low rates, more where that lasts no longer than 2 ms.
    fn frame_bytes(&self, stream: usize) -> usize {
        let weight = self.views[stream].weight;
        if weight < LARGE_FRAMES_BPS {
            return self.frame_payload_bytes;
        }
        let bytes = (weight / 8.0 * FRAME_SECONDS) as usize;
        bytes.clamp(
            self.frame_payload_bytes,
            LARGEST_FRAME_BYTES.min(MAX_LONG_BYTES),
        )
    }

    /// Cut the next frame and give it to a stream.
    fn draw(&mut self, now_ns: u64) -> Option<usize> {
        self.drain_backlogs(now_ns);
        let room = self.with_room.and(self.eligible());
        if let Some((preferred, ack)) = &self.ack {
            let preferred = Some(*preferred).filter(|&stream| room.contains(stream));
            let stream = preferred.or_else(|| room.iter().next())?;
            frame::encode_control(&mut self.streams[stream].out.header, ack);
            self.draft = Some((stream, Draft::Ack));
            return Some(stream);
        }
        if let Some(control) = self.controls.front() {
            let stream = room.iter().next()?;
            frame::encode_control(&mut self.streams[stream].out.header, control);
            self.draft = Some((stream, Draft::Control));
            return Some(stream);
        }
        self.trim_again();
        if let Some(span) = self.again.front().copied() {
            let stream = self.choose(now_ns, span.length)?;
            let length = span.length.min(self.frame_bytes(stream));
            self.again.pop_front();
            if length < span.length {
                self.again.push_front(Span {
                    offset: span.offset + length as u64,
                    length: span.length - length,
                });
            }
            return Some(self.draft_data(stream, Draft::Again, span.offset, length));
        }
        let open = self.limit.saturating_sub(self.next_offset);
        let unsent = (self.queued_bytes() as u64).min(open) as usize;
        if unsent > 0 {
            let stream = self.choose(now_ns, unsent.min(self.frame_payload_bytes))?;
            let length = unsent.min(self.frame_bytes(stream));
            return Some(self.draft_data(stream, Draft::New, self.next_offset, length));
        }
        if self.queued_bytes() > 0 || !(self.ended || self.closing) {
            return None;
        }
        self.draft_end()
    }

    fn draft_end(&mut self) -> Option<usize> {
        for stream in self.with_room.and(self.alive).iter() {
            let total_bytes = self.buffer.end();
            let out = &mut self.streams[stream];
            if self.ended && !out.fin_begun && !out.last_begun {
                frame::encode_control(&mut out.out.header, &Control::Fin { total_bytes });
                self.draft = Some((stream, Draft::Fin));
                return Some(stream);
            }
            if self.closing && !out.last_begun {
                frame::encode_control(&mut out.out.header, &Control::Last);
                out.out.ends_stream = true;
                self.draft = Some((stream, Draft::Last));
                return Some(stream);
            }
        }
        None
    }

    fn choose(&mut self, now_ns: u64, frame_bytes: usize) -> Option<usize> {
        let mut scheduler = std::mem::replace(&mut self.scheduler, Box::new(NoScheduler));
        let view = self.view(now_ns, frame_bytes);
        let mut chosen = scheduler.choose(&view);
        if chosen.is_none()
            && view
                .alive
                .iter()
                .all(|index| view.streams[index].weight <= 0.0)
        {
            // Only streams without a rate are left: better those than none.
            chosen = view.with_room.iter().next();
        }
        self.scheduler = scheduler;
        chosen
    }

    fn draft_data(&mut self, stream: usize, draft: Draft, offset: u64, length: usize) -> usize {
        let out = &mut self.streams[stream].out;
        frame::encode_data_header(&mut out.header, offset, length, self.frame_payload_bytes);
        out.span = Some(Span { offset, length });
        self.draft = Some((stream, draft));
        stream
    }

    /// Drop what need not be sent again, and what stands there twice.
    fn trim_again(&mut self) {
        while let Some(first) = self.again.front_mut() {
            let from = self.acknowledged.max(first.offset);
            if from >= first.end() {
                self.again.pop_front();
                continue;
            }
            first.length = (first.end() - from) as usize;
            first.offset = from;
            break;
        }
    }
}

/// Stands in while the scheduler looks at the sender.
#[derive(Debug)]
struct NoScheduler;

impl Scheduler for NoScheduler {
    fn choose(&mut self, _view: &View<'_>) -> Option<usize> {
        None
    }
}
