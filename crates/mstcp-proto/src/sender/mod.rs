//! Application bytes to frames, frames to streams, and again over others when a stream is lost.
//!
//! All unsent bytes wait in one queue of the connection. A frame is cut and given to a stream only when the shell asks
//! for it, and becomes final only when the stream's socket took some of it: if the socket was full the bytes are still
//! in the queue and the choice is repeated among the others. What an application writes is never held back to fill a
//! frame; writes merge only while they wait in the queue anyway. Bytes stay here until the peer acknowledged them.

mod controls;
mod drafting;
mod flight;
mod frame_ends;
mod membership;
mod opening;
mod overtaking;
mod paths;
mod reports;
mod stalls;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::control::Control;
use crate::error::LocalError;
use crate::receiver::INITIAL_WINDOW_BYTES;
use crate::scheduler::{check_weights, Scheduler, StreamSet, StreamView};
use crate::send_buffer::{SendBuffer, SharedBytes};
use crate::slice::Slice;

use controls::PendingControl;
use drafting::FrameKind;
use frame_ends::FrameEnds;
use opening::Phase;
use overtaking::OvertakingTimer;
pub use paths::MeasuredPath;
pub(crate) use stalls::SEEN_DELAY_NS;
use stream::{ByteRange, Stream};

/// A stream is stalled when nothing is reported of it for this, in nanoseconds, and two round trips, while the peer lives:
/// what it holds is sent over others.
pub const STALL_NS: u64 = 400_000_000;

/// The most bytes that are kept until the peer acknowledges them, whatever it grants.
pub const MAX_UNACKNOWLEDGED_BYTES: u64 = 256 << 20;

/// A plain connection offers no more bytes at a time.
pub const MAX_PLAIN_BYTES: usize = 1 << 18;

/// What one stream has carried of this direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Data frames.
    pub frames: u64,
    /// Application bytes in them (no headers).
    pub bytes: u64,
    /// Those of the bytes that another stream had carried before.
    pub resent_bytes: u64,
    /// How often it was found to bring nothing through.
    pub stalls: u64,
}

/// The sending direction of a connection.
#[derive(Debug, Default)]
pub struct Sender {
    frame_payload_bytes: usize,
    buffer: SendBuffer,
    queue_limit_bytes: usize,
    /// None while it looks at the sender, and of a plain connection.
    scheduler: Option<Box<dyn Scheduler>>,
    views: Vec<StreamView>,
    /// When the backlogs of `views` were true, in nanoseconds of the shell's clock.
    views_ns: u64,
    streams: Vec<Stream>,
    alive: StreamSet,
    with_room: StreamSet,
    /// Among the streams that are alive: those that are stalled, that retire, and that have ended.
    stalled: StreamSet,
    retiring: StreamSet,
    last_begun: StreamSet,
    /// Streams that joined and are not confirmed: nobody knows yet whether anything comes to the peer on them.
    unconfirmed: StreamSet,
    /// Those of a client among them, which carry data frames alone, and the streams whose CONFIRM is to go next.
    greeting: StreamSet,
    confirming: StreamSet,
    /// Streams that joined and have not been considered for data since.
    joined: StreamSet,
    /// The streams that may be given frames; follows from states and priorities.
    eligible: StreamSet,
    /// The streams on which as much is on its way as may be, when that was looked at last, and whether something was reported
    /// since.
    full: StreamSet,
    /// Those whose oldest frame should have been reported.
    late: StreamSet,
    flights_ns: u64,
    has_reports: bool,
    /// Those on which TCP sends again without an answer, as it said last.
    unanswered: StreamSet,
    /// Streams that were stalled and are not any more, since the shell was told.
    recovered: StreamSet,
    /// How often streams were recently opened again because all were stalled, and when that was last.
    clogs: u32,
    clogged_ns: u64,
    /// When a stream was lost last that was not stalled.
    lost_open_ns: u64,
    /// Whether the peer was known to live when that was looked at last.
    is_peer_alive: bool,
    /// The frame that `poll_frame` offered and no byte of which has been taken yet.
    draft: Option<(usize, FrameKind)>,
    /// Bytes to be sent once more, by rising offset.
    again: BTreeSet<ByteRange>,
    /// Where the bytes that were sent and are not acknowledged were cut.
    cuts: FrameEnds,
    /// The ends of frames that another stream carries as well, by then: frames with these ends that were sent before.
    overtaken: BTreeMap<u64, u64>,
    look: OvertakingTimer,
    next_offset: u64,
    /// When bytes were sent last that had not been sent before.
    begun_new_ns: u64,
    /// Where the bytes begin that were written since the streams had last nothing to do, and whether that is to be seen:
    /// they were written to an empty queue.
    busy_since: u64,
    was_empty: bool,
    acknowledged: u64,
    limit: u64,
    ended: bool,
    fin_sent: bool,
    closing: bool,
    /// A stream has ended in both directions.
    has_ended: bool,
    controls: VecDeque<PendingControl>,
    /// The acknowledgement that is to be sent.
    ack: Option<PendingControl>,
    /// What goes before the LAST of each stream at the end.
    last_ack: Option<Control>,
    /// How far the first hello is, and how many bytes went with it.
    phase: Phase,
    early_bytes: u64,
    trusting: bool,
    /// Plain TCP: bytes as they are, this many offered at a time at most.
    plain_bytes: Option<usize>,
}

impl Sender {
    /// A sender over `stream_count` streams of equal weights whose sockets all have room. The queue is bounded to
    /// `queue_limit_bytes`, but an empty queue takes a write of any size.
    pub fn new(
        stream_count: usize,
        frame_payload_bytes: usize,
        queue_limit_bytes: usize,
        scheduler: Option<Box<dyn Scheduler>>,
    ) -> Self {
        let mut sender = Self {
            frame_payload_bytes,
            queue_limit_bytes,
            scheduler,
            is_peer_alive: true,
            was_empty: true,
            limit: INITIAL_WINDOW_BYTES as u64,
            ..Self::default()
        };
        for slot in 0..stream_count {
            sender.add_stream(slot, slot as u32, 1.0);
        }
        sender
    }

    /// A sender of bytes as they are over one stream. The queue is bounded as above.
    pub(crate) fn plain(frame_payload_bytes: usize, queue_limit_bytes: usize) -> Self {
        let mut sender = Self::new(1, frame_payload_bytes, queue_limit_bytes, None);
        sender.plain_bytes = Some(MAX_PLAIN_BYTES);
        sender.trust_streams();
        sender
    }

    /// See [`crate::Connection::set_frame_payload_bytes`].
    pub(crate) fn set_frame_payload_bytes(&mut self, frame_payload_bytes: usize) {
        self.frame_payload_bytes = frame_payload_bytes;
    }

    /// Offer at most this many bytes at a time of a plain connection.
    pub(crate) fn set_plain_bytes(&mut self, most: usize) {
        self.plain_bytes = Some(most.clamp(1, MAX_PLAIN_BYTES));
    }

    /// Take what a socket took for delivered.
    pub(crate) fn trust_streams(&mut self) {
        self.trusting = true;
        self.limit = u64::MAX;
    }

    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        self.admit(data.len())?;
        self.buffer.push_copy(data);
        Ok(())
    }

    pub fn write_shared(&mut self, data: SharedBytes) -> Result<(), LocalError> {
        self.admit((*data).as_ref().len())?;
        self.buffer.push_shared(data);
        Ok(())
    }

    pub fn write_slice(&mut self, data: Slice) -> Result<(), LocalError> {
        self.admit(data.len())?;
        self.buffer.push_slice(data);
        Ok(())
    }

    /// Check that a write may be queued, and note whether it begins a queue.
    fn admit(&mut self, length: usize) -> Result<(), LocalError> {
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
        self.was_empty |= queued == 0;
        Ok(())
    }

    pub fn end(&mut self) {
        self.ended = true;
    }

    pub fn close_streams(&mut self, ack: Option<Control>) {
        self.closing = true;
        self.last_ack = ack;
    }

    pub fn poll_frame(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        let stream = match self.draft {
            Some((stream, _)) => stream,
            None => match self.begun_frame() {
                Some(stream) => stream,
                None => self.draw_next(now_ns)?,
            },
        };
        Some((stream, self.streams[stream].out.rest()))
    }

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

    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        let Some(out) = self.streams.get(stream).map(|stream| &stream.out) else {
            return Err(LocalError::NoSuchStream(stream));
        };
        let offered = out.rest();
        let is_bare_end = offered == 0 && out.ends_stream;
        if count > offered {
            return Err(LocalError::SentTooMuch {
                reported: count,
                offered,
            });
        }
        if count < offered {
            self.with_room.remove(stream);
        }
        if count > 0 {
            self.confirming.remove(stream);
        }
        if let Some((drafted, draft)) = self.draft {
            if drafted == stream {
                if count == 0 && !is_bare_end {
                    self.withdraw_draft(stream);
                    return Ok(false);
                }
                self.draft = None;
                if let (Some(_), Some(span)) =
                    (self.plain_bytes, &mut self.streams[stream].out.span)
                {
                    // Bytes without a frame need not stay together.
                    span.length = count;
                }
                self.begin(stream, draft);
            }
        }
        let out = &mut self.streams[stream].out;
        out.taken += count;
        if out.rest() > 0 || (offered == 0 && !is_bare_end) {
            return Ok(false);
        }
        let ends_stream = out.ends_stream;
        out.clear();
        if self.trusting {
            self.release_taken();
        }
        Ok(ends_stream)
    }

    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        if stream >= self.streams.len() {
            return Err(LocalError::NoSuchStream(stream));
        }
        if self.alive.contains(stream) {
            self.with_room.insert(stream);
        }
        Ok(())
    }

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

    /// Whether the stream's socket was full when last tried.
    pub fn is_blocked(&self, stream: usize) -> bool {
        !self.with_room.contains(stream)
    }

    /// The streams that are alive and whose sockets were full when last tried.
    pub fn blocked(&self) -> StreamSet {
        self.alive.without(self.with_room)
    }

    /// Those whose reports are late.
    pub(crate) fn late(&self) -> StreamSet {
        self.late
    }

    /// Application bytes in the queue: written, and in no frame that a socket has begun to take.
    pub fn queued_bytes(&self) -> usize {
        (self.buffer.end() - self.next_offset) as usize
    }

    /// Application bytes that were sent and that the peer has not acknowledged.
    pub fn unacknowledged_bytes(&self) -> usize {
        self.next_offset.saturating_sub(self.acknowledged) as usize
    }

    /// Bytes that were written and that the peer has not acknowledged.
    pub(crate) fn undelivered_bytes(&self) -> u64 {
        self.buffer.end().saturating_sub(self.acknowledged)
    }

    /// What the peer has acknowledged, the FIN included.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Count the first bytes of the queue as sent and acknowledged: they went with the hello.
    pub(crate) fn skip_early(&mut self, length: usize) {
        self.next_offset = length as u64;
        self.busy_since = self.next_offset;
        self.acknowledged = self.next_offset;
        self.buffer.release(self.next_offset);
    }

    /// Whether the peer has all bytes and knows that they are all.
    pub fn is_finished(&self) -> bool {
        self.ended && self.acknowledged == self.buffer.end() + 1
    }

    /// The first offset that may not be sent: what the peer grants, within what we are ready to keep.
    fn limit(&self) -> u64 {
        if self.trusting {
            return self.limit;
        }
        (self.limit).min(self.acknowledged.saturating_add(MAX_UNACKNOWLEDGED_BYTES))
    }

    /// What each stream has carried.
    pub fn sent(&self) -> impl Iterator<Item = Sent> + '_ {
        self.streams.iter().map(|stream| stream.sent)
    }
}
