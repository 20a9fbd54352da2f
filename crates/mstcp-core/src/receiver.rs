//! The streams' bytes to bytes in order, with bounded memory.
//!
//! Frame numbers rise on each stream, so a stream whose last frame is beyond the next one in order cannot bring that
//! one. When the reorder buffer is full such streams are not read, and TCP's own window holds the peer back; the
//! others are always read, since one of them brings the next frame. The buffer can pass its bound by what one read of
//! each stream brings, no more.

use crate::error::{Error, LocalError, RemoteError};
use crate::frame::{Frame, Parser};
use crate::reassembly::Reassembly;
use crate::scheduler::StreamSet;

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
    parser: Parser,
    last_number: Option<u64>,
    finished: bool,
    received: Received,
}

/// The receiving direction of a connection.
#[derive(Debug)]
pub struct Receiver {
    streams: Vec<Stream>,
    reassembly: Reassembly,
    reorder_limit_bytes: usize,
    frame_count: Option<u64>,
}

impl Receiver {
    /// A receiver of `stream_count` streams that holds about `reorder_limit_bytes` of frames that are ahead.
    pub fn new(
        stream_count: usize,
        frame_payload_bytes: usize,
        reorder_limit_bytes: usize,
    ) -> Self {
        let stream = |_| Stream {
            parser: Parser::new(frame_payload_bytes),
            last_number: None,
            finished: false,
            received: Received::default(),
        };
        Self {
            streams: (0..stream_count).map(stream).collect(),
            reassembly: Reassembly::default(),
            reorder_limit_bytes,
            frame_count: None,
        }
    }

    /// Take bytes of a stream; append to `out` the application bytes that are now in order.
    ///
    /// After a remote error the receiver must not be used again.
    pub fn on_received(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        if stream >= self.streams.len() {
            return Err(LocalError::NoSuchStream(stream).into());
        }
        self.take(stream, data, out)?;
        Ok(self.check_next_can_come()?)
    }

    /// Note that TCP ended a stream. Only after its FIN is that the proper end.
    pub fn on_stream_end(&mut self, stream: usize) -> Result<(), Error> {
        let from = self
            .streams
            .get(stream)
            .ok_or(LocalError::NoSuchStream(stream))?;
        if from.finished {
            Ok(())
        } else {
            Err(RemoteError::StreamTruncated(stream).into())
        }
    }

    /// The streams that should be read now.
    pub fn readable(&self) -> StreamSet {
        let full = self.reassembly.memory_bytes() >= self.reorder_limit_bytes;
        let mut readable = StreamSet::default();
        for (index, stream) in self.streams.iter().enumerate() {
            if !full || stream.may_bring(self.reassembly.next_number()) || stream.finished {
                readable.insert(index);
            }
        }
        readable
    }

    /// Whether all of the peer's bytes have been delivered.
    pub fn is_ended(&self) -> bool {
        self.frame_count == Some(self.reassembly.next_number())
    }

    /// The reorder buffer.
    pub fn reassembly(&self) -> &Reassembly {
        &self.reassembly
    }

    /// What each stream has brought.
    pub fn received(&self) -> impl Iterator<Item = Received> + '_ {
        self.streams.iter().map(|stream| stream.received)
    }

    fn take(&mut self, index: usize, data: &[u8], out: &mut Vec<u8>) -> Result<(), RemoteError> {
        let stream = &mut self.streams[index];
        let mut input = data;
        loop {
            let (consumed, frame) = stream.parser.next(input)?;
            input = &input[consumed..];
            let Some(frame) = frame else { break };
            match frame {
                _ if stream.finished => return Err(RemoteError::DataAfterFin),
                Frame::Data { number, payload } => {
                    if let Some(previous) =
                        stream.last_number.filter(|&previous| number <= previous)
                    {
                        return Err(RemoteError::NumberNotRising { number, previous });
                    }
                    if self.frame_count.is_some_and(|count| number >= count) {
                        return Err(RemoteError::BadFin);
                    }
                    stream.last_number = Some(number);
                    stream.received.frames += 1;
                    stream.received.bytes += payload.len() as u64;
                    if number > self.reassembly.next_number() {
                        stream.received.out_of_order_frames += 1;
                    }
                    self.reassembly.insert(number, payload, out);
                }
                Frame::Fin { frame_count } => {
                    let delivered = self.reassembly.next_number();
                    let last = self
                        .reassembly
                        .last_waiting()
                        .map_or(delivered, |number| number + 1);
                    if frame_count < last
                        || self.frame_count.is_some_and(|count| count != frame_count)
                    {
                        return Err(RemoteError::BadFin);
                    }
                    self.frame_count = Some(frame_count);
                    stream.finished = true;
                }
                Frame::UnknownControl => {}
            }
        }
        if stream.finished && stream.parser.in_frame() {
            return Err(RemoteError::DataAfterFin);
        }
        Ok(())
    }

    fn check_next_can_come(&self) -> Result<(), RemoteError> {
        let next = self.reassembly.next_number();
        if self.is_ended() || self.streams.iter().any(|stream| stream.may_bring(next)) {
            return Ok(());
        }
        Err(RemoteError::MissingFrame(next))
    }
}

impl Stream {
    fn may_bring(&self, number: u64) -> bool {
        !self.finished && self.last_number.map_or(true, |last| last < number)
    }
}
