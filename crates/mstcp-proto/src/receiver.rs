//! The streams' bytes to bytes in order, and what is to be acknowledged.
//!
//! The peer may send up to a limit that follows what the application took; so all streams are always read, whatever
//! waits, and memory is bounded by the window.

mod acknowledging;

use std::sync::Arc;

use crate::budget::{Budget, Reservation};
use crate::control::Control;
use crate::error::{Error, LocalError, RemoteError};
use crate::frame::{Expected, Parsed, Parser, OFFSET_LIMIT};
use crate::handshake::{self, Proof};
use crate::hello::MAGIC;
use crate::reassembly::{Reassembly, PIECE_OVERHEAD_BYTES, SHARED_PIECE_BYTES};
use crate::scheduler::StreamSet;
use crate::slice::Slice;

/// What a peer may send before it heard of a window.
pub const INITIAL_WINDOW_BYTES: usize = 1 << 18;
/// What it may send at first, where the receiver holds so much: a window that turns out to hold the peer up grows.
const FIRST_WINDOW_BYTES: usize = 1 << 24;
/// The longest that an acknowledgement waits, in nanoseconds.
pub const ACK_DELAY_NS: u64 = 50_000_000;
/// An ACK is sent once this many bytes have come since the last, or a quarter of the window if that is less.
pub const ACK_BYTES: u64 = 1 << 20;
/// And at first once this many bytes and a quarter of all before have come.
const FIRST_ACK_BYTES: u64 = 1 << 13;

/// How many bytes have to come for an ACK to be sent at once, after this many have come: at first the sender is to learn what the
/// streams carry.
pub(crate) fn ack_bytes(arrived_bytes: u64) -> u64 {
    (arrived_bytes / 4).clamp(FIRST_ACK_BYTES, ACK_BYTES)
}

/// This many pieces may wait however small the window is.
pub(crate) const MIN_PIECES: usize = 1024;

/// What one stream has brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Received {
    /// Data frames.
    pub frames: u64,
    /// Application bytes in them (no headers).
    pub bytes: u64,
    /// Frames that arrived before an earlier one.
    pub out_of_order_frames: u64,
}

#[derive(Debug)]
struct Stream {
    id: u32,
    parser: Parser,
    alive: bool,
    /// The peer said that nothing follows.
    last: bool,
    /// The proof that its first frame must be, if that has not come.
    unconfirmed: Option<Proof>,
    /// ACK frames received on it, and those told to the peer.
    acks: u64,
    acks_told: u64,
    received: Received,
    last_offset: u64,
    /// Complete frames among `received.frames` that carry the stream's id, and those reported to the peer.
    complete: u64,
    told: u64,
}

impl Stream {
    fn new(id: u32, frame_payload_bytes: usize) -> Self {
        Self {
            id,
            parser: Parser::new(frame_payload_bytes),
            alive: true,
            last: false,
            unconfirmed: None,
            acks: 0,
            acks_told: 0,
            received: Received::default(),
            last_offset: 0,
            complete: 0,
            told: 0,
        }
    }
}

/// The receiving direction of a connection.
#[derive(Debug, Default)]
pub struct Receiver {
    streams: Vec<Stream>,
    frame_payload_bytes: usize,
    reassembly: Reassembly,
    window_bytes: usize,
    reorder_limit_bytes: usize,
    /// When it was looked at last whether the window is to grow, and what the application had taken then.
    grown: (u64, u64),
    total_bytes: Option<u64>,
    /// What the application took, and the limit that was told to the peer.
    consumed: u64,
    told_limit: u64,
    told_received: u64,
    /// Bytes of data frames that have come, and how many had when the last acknowledgement was made.
    arrived_bytes: u64,
    told_arrived_bytes: u64,
    ack_now: bool,
    ack_at_ns: Option<u64>,
    latest: usize,
    /// A CONFIRM is awaited on the stream that opened the connection, and none has come on any.
    is_unconfirmed: bool,
    /// Data is used before the CONFIRM of its stream.
    takes_unconfirmed: bool,
    /// Part of what the process may promise; none: the window is this connection's alone.
    share: Option<Reservation>,
    /// See [`Receiver::trust_streams`].
    trusting: bool,
    /// Plain TCP: bytes as they are.
    plain: Option<HelloDetection>,
}

/// How a plain connection began.
#[derive(Debug)]
enum HelloDetection {
    /// It is no MSTCP hello.
    Decided,
    /// These bytes may be the beginning of one.
    Open(Vec<u8>),
}

impl Receiver {
    /// A receiver of streams 0 to `stream_count` - 1 that holds about `reorder_limit_bytes` of what is ahead, 256 KiB at
    /// least.
    pub fn new(
        stream_count: usize,
        frame_payload_bytes: usize,
        reorder_limit_bytes: usize,
    ) -> Self {
        Self {
            streams: (0..stream_count)
                .map(|id| Stream::new(id as u32, frame_payload_bytes))
                .collect(),
            frame_payload_bytes,
            window_bytes: reorder_limit_bytes.clamp(INITIAL_WINDOW_BYTES, FIRST_WINDOW_BYTES),
            reorder_limit_bytes,
            told_limit: INITIAL_WINDOW_BYTES as u64,
            ack_now: true,
            ..Self::default()
        }
    }

    /// A receiver of bytes as they are from one stream, which is read no more while `limit_bytes` wait for the application.
    /// Unless `is_decided` a hello is refused, though it comes late.
    pub(crate) fn plain(frame_payload_bytes: usize, limit_bytes: usize, is_decided: bool) -> Self {
        let mut receiver = Self::new(1, frame_payload_bytes, limit_bytes);
        receiver.trust_streams();
        receiver.plain = Some(match is_decided {
            true => HelloDetection::Decided,
            false => HelloDetection::Open(Vec::new()),
        });
        receiver
    }

    /// See [`crate::Connection::set_frame_payload_bytes`].
    pub(crate) fn set_frame_payload_bytes(&mut self, frame_payload_bytes: usize) {
        self.frame_payload_bytes = frame_payload_bytes;
        for stream in &mut self.streams {
            stream.parser = Parser::new(frame_payload_bytes);
        }
    }

    /// Let the peer send without bound, and hold back streams that are ahead while much waits.
    pub(crate) fn trust_streams(&mut self) {
        self.trusting = true;
        self.told_limit = OFFSET_LIMIT;
    }

    pub fn share_budget(&mut self, budget: Arc<Budget>) {
        self.share = Some(Reservation::new(budget));
    }

    /// Give back to the budget what was promised: the peer can send nothing more.
    pub fn leave_budget(&mut self) {
        self.share = None;
    }

    /// Take bytes of a stream: append to `out` what is now in order, and to `controls` what is for the other direction.
    ///
    /// `shared` is `data` in memory that may be kept; without it what must wait is copied. After a remote error the receiver
    /// must not be used again.
    pub fn on_received(
        &mut self,
        stream: usize,
        data: &[u8],
        shared: Option<&Slice>,
        out: &mut Vec<Slice>,
        controls: &mut Vec<Control>,
    ) -> Result<(), Error> {
        let state = self.streams.get(stream);
        if !state.ok_or(LocalError::NoSuchStream(stream))?.alive {
            return Ok(()); // it was given up, and the shell does not know yet
        }
        if self.plain.is_some() {
            return Ok(self.on_plain(stream, data, shared, out)?);
        }
        let mut at = 0;
        while at < data.len() {
            let (consumed, parsed) = self.streams[stream].parser.next(&data[at..])?;
            at += consumed;
            match parsed {
                None => return Ok(()),
                Some(parsed) if self.needs_confirm(stream, &parsed) => {
                    self.check_confirm(stream, &parsed)?;
                }
                Some(_) if self.streams[stream].last => {
                    return Err(RemoteError::DataAfterLast.into())
                }
                Some(Parsed::Data {
                    offset,
                    payload,
                    first,
                    last,
                }) => {
                    let range = at - payload.len()..at;
                    self.note_data(stream, offset, payload.len(), first, last)?;
                    if !self.reassembly.extend_last(offset, payload) {
                        let piece = match shared {
                            Some(whole) => whole.part(range),
                            None => Slice::copy_of(payload),
                        };
                        self.reassembly.insert(offset, piece, out);
                    }
                    let most = self.window_bytes / PIECE_OVERHEAD_BYTES + MIN_PIECES;
                    if self.reassembly.pieces() > most && !self.trusting {
                        return Err(RemoteError::TooManyPieces.into());
                    }
                }
                Some(Parsed::Control(Some(Control::Fin { total_bytes }))) => {
                    self.on_fin(total_bytes)?;
                }
                Some(Parsed::Control(Some(Control::Last))) => {
                    self.streams[stream].last = true;
                    // The peer waits for what it has not been told of.
                    self.ack_now = true;
                }
                Some(Parsed::Control(Some(Control::Confirm(_)))) => {
                    return Err(RemoteError::UnexpectedConfirm.into());
                }
                Some(Parsed::Control(Some(control))) => {
                    self.streams[stream].acks += u64::from(matches!(control, Control::Ack { .. }));
                    controls.push(control);
                }
                Some(Parsed::Control(None)) => {}
            }
        }
        Ok(())
    }

    /// Take bytes of a plain connection, unless they are a late hello.
    fn on_plain(
        &mut self,
        stream: usize,
        data: &[u8],
        shared: Option<&Slice>,
        out: &mut Vec<Slice>,
    ) -> Result<(), RemoteError> {
        let piece = match &mut self.plain {
            Some(HelloDetection::Open(opening)) => {
                opening.extend_from_slice(data);
                if opening.starts_with(&MAGIC) {
                    return Err(RemoteError::LateHello);
                }
                if MAGIC.starts_with(opening) {
                    return Ok(());
                }
                Slice::copy_of(&std::mem::take(opening))
            }
            _ => shared.cloned().unwrap_or_else(|| Slice::copy_of(data)),
        };
        self.plain = Some(HelloDetection::Decided);
        self.deliver_plain(stream, piece, out)
    }

    /// Take what may have been the beginning of a hello, now that nothing follows.
    pub(crate) fn release_opening(&mut self, out: &mut Vec<Slice>) {
        if let Some(HelloDetection::Open(opening)) = &mut self.plain {
            let piece = Slice::copy_of(&std::mem::take(opening));
            self.plain = Some(HelloDetection::Decided);
            // Its bytes are few.
            let _ = self.deliver_plain(0, piece, out);
        }
    }

    fn deliver_plain(
        &mut self,
        stream: usize,
        piece: Slice,
        out: &mut Vec<Slice>,
    ) -> Result<(), RemoteError> {
        if !piece.is_empty() {
            let offset = self.reassembly.next_offset();
            self.note_data(stream, offset, piece.len(), false, false)?;
            self.reassembly.insert(offset, piece, out);
        }
        Ok(())
    }

    pub fn next_in_place(&self, slot: usize) -> usize {
        let Some(stream) = self.streams.get(slot) else {
            return 0;
        };
        if let Some(opening) = &self.plain {
            let is_open = stream.alive && matches!(opening, HelloDetection::Decided);
            return if is_open { usize::MAX } else { 0 };
        }
        let is_simple = stream.alive && !stream.last && stream.unconfirmed.is_none();
        match stream.parser.payload() {
            Some((offset, rest)) if is_simple && offset == self.reassembly.next_offset() => {
                rest.min(self.reassembly.gap_bytes())
            }
            _ => 0,
        }
    }

    pub fn expects_payload(&self, slot: usize) -> bool {
        let expects = |expected: Expected| expected.payload_bytes > 0;
        self.plain.is_none() && self.expected(slot).is_some_and(expects)
    }

    pub fn on_in_place(
        &mut self,
        slot: usize,
        count: usize,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        let stream = self.streams.get_mut(slot);
        let stream = stream.ok_or(LocalError::NoSuchStream(slot))?;
        if self.plain.is_some() {
            let offset = self.reassembly.next_offset();
            self.note_data(slot, offset, count, false, false)?;
            self.reassembly.advance(count, out);
            return Ok(());
        }
        if let Some(part) = stream.parser.skip(count) {
            self.note_data(slot, part.offset, count, part.first, part.last)?;
            self.reassembly.advance(count, out);
        }
        Ok(())
    }

    /// Have the first frame on a stream be a CONFIRM with this proof.
    pub fn expect_confirm(&mut self, slot: usize, proof: Proof) -> Result<(), LocalError> {
        let stream = self.streams.get_mut(slot);
        let stream = stream.ok_or(LocalError::NoSuchStream(slot))?;
        stream.unconfirmed = Some(proof);
        self.is_unconfirmed |= stream.id == 0;
        Ok(())
    }

    /// Use data before the CONFIRM of its stream: where there is no secret that proves nothing.
    pub(crate) fn take_unconfirmed(&mut self) {
        self.takes_unconfirmed = true;
    }

    fn needs_confirm(&self, slot: usize, parsed: &Parsed<'_>) -> bool {
        let stream = &self.streams[slot];
        let is_early = self.takes_unconfirmed && matches!(parsed, Parsed::Data { .. });
        stream.unconfirmed.is_some() && !is_early
    }

    /// Whether the peer has not yet shown that the hello which opened the connection was its own.
    pub(crate) fn is_unconfirmed(&self) -> bool {
        self.is_unconfirmed
    }

    /// Whether a stream's CONFIRM is awaited.
    pub(crate) fn awaits_confirm(&self, slot: usize) -> bool {
        (self.streams.get(slot)).is_some_and(|stream| stream.unconfirmed.is_some())
    }

    fn check_confirm(&mut self, slot: usize, parsed: &Parsed<'_>) -> Result<(), RemoteError> {
        let stream = &mut self.streams[slot];
        match (parsed, stream.unconfirmed) {
            (Parsed::Control(Some(Control::Confirm(proof))), Some(wanted))
                if handshake::is_same(proof, &wanted) =>
            {
                stream.unconfirmed = None;
                self.is_unconfirmed = false;
                Ok(())
            }
            _ => Err(RemoteError::NotConfirmed),
        }
    }

    /// Take the client's first bytes, which came with its hello.
    pub fn on_early(&mut self, early: &[u8], out: &mut Vec<Slice>) {
        if !early.is_empty() {
            self.reassembly.insert(0, Slice::copy_of(early), out);
            self.ack_now = true;
        }
    }

    /// Begin to receive on a stream in place `slot`, a new place or that of a dead stream.
    pub fn add_stream(&mut self, slot: usize, id: u32) {
        // What told the peer of all that has come may have been lost with another stream.
        self.ack_now |= self.streams.iter().any(|stream| !stream.alive);
        let mut stream = Stream::new(id, self.frame_payload_bytes);
        if let Some(before) = self.streams.get_mut(slot) {
            stream.received = before.received;
            *before = stream;
        } else {
            self.streams.push(stream);
        }
    }

    /// Which acknowledgements have come since this was asked last.
    pub(crate) fn take_seen(&mut self) -> Vec<(u32, u64)> {
        let mut seen = Vec::new();
        for stream in self.streams.iter_mut().filter(|stream| stream.alive) {
            if stream.acks > stream.acks_told {
                stream.acks_told = stream.acks;
                seen.push((stream.id, stream.acks));
            }
        }
        seen
    }

    /// Whether acknowledgements have come that the peer was not told of.
    pub(crate) fn has_seen(&self) -> bool {
        let mut alive = self.streams.iter().filter(|stream| stream.alive);
        alive.any(|stream| stream.acks > stream.acks_told)
    }

    /// Whether the peer may be waiting for room: it has filled nearly all that it was told of.
    pub(crate) fn may_block(&self) -> bool {
        self.reassembly.last_end() + (self.window_bytes / 8) as u64 >= self.told_limit
    }

    /// Note that a stream is gone; true if the peer had ended it properly.
    pub fn on_stream_end(&mut self, slot: usize) -> Result<bool, LocalError> {
        let stream = self
            .streams
            .get_mut(slot)
            .ok_or(LocalError::NoSuchStream(slot))?;
        stream.alive = false;
        self.ack_now = true;
        if self.plain.is_some() {
            self.total_bytes = Some(self.reassembly.next_offset());
            return Ok(true);
        }
        Ok(stream.last)
    }

    pub fn on_consumed(&mut self, bytes: usize) {
        self.consumed += bytes as u64;
        self.note_promise();
    }

    pub fn expected(&self, stream: usize) -> Option<Expected> {
        if let Some(opening) = &self.plain {
            return matches!(opening, HelloDetection::Decided).then_some(Expected {
                payload_bytes: usize::MAX,
                header_bytes: 0,
            });
        }
        let stream = self.streams.get(stream)?;
        stream.parser.expected(SHARED_PIECE_BYTES)
    }

    /// The streams that should be read now.
    pub fn readable(&self) -> StreamSet {
        if self.plain.is_some() {
            let waiting = self.arrived_bytes - self.consumed.min(self.arrived_bytes);
            let is_open = self.streams[0].alive && waiting < self.reorder_limit_bytes as u64;
            return match is_open {
                true => StreamSet::only(0),
                false => StreamSet::default(),
            };
        }
        let full = self.trusting && self.reassembly.waiting_bytes() >= self.reorder_limit_bytes;
        let mut readable = StreamSet::default();
        for (index, stream) in self.streams.iter().enumerate() {
            // Trusted streams carry rising offsets: one that is ahead cannot bring what is missing.
            let ahead = stream.last_offset > self.reassembly.next_offset();
            if stream.alive && !(full && ahead) {
                readable.insert(index);
            }
        }
        readable
    }

    /// Whether the peer said that nothing follows on a stream.
    pub fn has_last(&self, slot: usize) -> bool {
        self.streams.get(slot).is_some_and(|stream| stream.last)
    }

    /// The stream that brought something last.
    pub fn latest(&self) -> usize {
        self.latest
    }

    /// Whether all of the peer's bytes have been delivered.
    pub fn is_ended(&self) -> bool {
        self.total_bytes == Some(self.reassembly.next_offset())
    }

    /// The reorder buffer.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }

    /// What each stream has brought.
    pub fn received(&self) -> impl Iterator<Item = Received> + '_ {
        self.streams.iter().map(|stream| stream.received)
    }

    fn note_data(
        &mut self,
        index: usize,
        offset: u64,
        length: usize,
        first: bool,
        last: bool,
    ) -> Result<(), RemoteError> {
        let end = offset + length as u64;
        let limit = self.told_limit;
        if end > limit {
            return Err(RemoteError::BeyondWindow { offset, limit });
        }
        if self.total_bytes.is_some_and(|total| end > total) {
            return Err(RemoteError::BadFin);
        }
        self.latest = index;
        let ahead = offset > self.reassembly.next_offset();
        self.arrived_bytes += length as u64;
        let stream = &mut self.streams[index];
        stream.received.bytes += length as u64;
        stream.complete += u64::from(last);
        stream.last_offset = offset;
        if first {
            stream.received.frames += 1;
            stream.received.out_of_order_frames += u64::from(ahead);
        }
        Ok(())
    }

    fn on_fin(&mut self, total_bytes: u64) -> Result<(), RemoteError> {
        if total_bytes < self.reassembly.last_end()
            || self.total_bytes.is_some_and(|total| total != total_bytes)
        {
            return Err(RemoteError::BadFin);
        }
        self.total_bytes = Some(total_bytes);
        self.ack_now = true;
        Ok(())
    }
}
