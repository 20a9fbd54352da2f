//! Frames: their layout on a stream, and an incremental parser.
//!
//! Every frame begins with one 64-bit word in network byte order. Its two high bits name the kind:
//!
//! | bits 63-62 | kind | bits 61-0 | after the word |
//! |---|---|---|---|
//! | 00 | full-size data | frame number | `frame_payload_bytes` of data |
//! | 01 | short data | frame number | length (16 bits, 1 to `frame_payload_bytes` - 1), then the data |
//! | 10 | control | type (61-56), zero (55-16), length (15-0) | `length` bytes |
//! | 11 | not in use, an error | | |
//!
//! So a full-size frame costs 8 bytes, a short one 10. Data frames are numbered from 0 in the order of the
//! application's bytes, across all streams. Frames are numbered rather than bytes because a frame is what will be
//! re-sent: whole, unchanged, and small enough for every stream of the connection. A copy is then known by its number
//! alone, with no partial overlaps to resolve, and what is missing is a bitmap.
//!
//! Control frames of unknown type are skipped, so that later versions can add types. Type 1 is FIN: 8 bytes, the number
//! of data frames that the sender has sent over all streams. It is the last frame on every stream.

use crate::error::RemoteError;

/// Bytes of a full-size frame's header: its 64-bit identifier.
pub const HEADER_BYTES: usize = 8;
/// Bytes of a short frame's header: identifier and length.
pub const SHORT_HEADER_BYTES: usize = 10;
/// The greatest body of a control frame, in bytes.
pub const MAX_CONTROL_BYTES: usize = 1024;
/// The greatest number of application bytes in a full-size frame.
pub const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize;
/// Frame numbers are below this.
pub const NUMBER_LIMIT: u64 = 1 << 62;

const KIND_SHIFT: u32 = 62;
const KIND_FULL: u64 = 0;
const KIND_SHORT: u64 = 1;
const KIND_CONTROL: u64 = 2;
const TYPE_SHIFT: u32 = 56;
const TYPE_MASK: u64 = 0x3f;
const TYPE_FIN: u64 = 1;
const FIN_BODY_BYTES: usize = 8;

/// One frame as the parser finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Application bytes.
    Data {
        /// Place of the frame in the order of the connection, from 0.
        number: u64,
        /// Its application bytes.
        payload: &'a [u8],
    },
    /// The last frame of a stream.
    Fin {
        /// How many data frames the peer sent over all streams.
        frame_count: u64,
    },
    /// A control frame of a type that this version does not know; to be skipped.
    UnknownControl,
}

/// Append a data frame to `out`. `payload` is not empty and at most `frame_payload_bytes` long.
pub fn encode_data(out: &mut Vec<u8>, number: u64, payload: &[u8], frame_payload_bytes: usize) {
    debug_assert!(
        !payload.is_empty() && payload.len() <= frame_payload_bytes && number < NUMBER_LIMIT
    );
    if payload.len() == frame_payload_bytes {
        out.extend_from_slice(&(KIND_FULL << KIND_SHIFT | number).to_be_bytes());
    } else {
        out.extend_from_slice(&(KIND_SHORT << KIND_SHIFT | number).to_be_bytes());
        out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
    }
    out.extend_from_slice(payload);
}

/// Append a FIN frame to `out`.
pub fn encode_fin(out: &mut Vec<u8>, frame_count: u64) {
    let word = KIND_CONTROL << KIND_SHIFT | TYPE_FIN << TYPE_SHIFT | FIN_BODY_BYTES as u64;
    out.extend_from_slice(&word.to_be_bytes());
    out.extend_from_slice(&frame_count.to_be_bytes());
}

#[derive(Debug, Clone, Copy)]
struct Header {
    kind: u64,
    word: u64,
    header_bytes: usize,
    body_bytes: usize,
}

impl Header {
    /// Decode the header at the start of `bytes`; None if it is not complete yet.
    fn decode(bytes: &[u8], frame_payload_bytes: usize) -> Result<Option<Self>, RemoteError> {
        let Some(word) = bytes.get(..HEADER_BYTES) else {
            return Ok(None);
        };
        let word = be_u64(word);
        let kind = word >> KIND_SHIFT;
        let (header_bytes, body_bytes, limit) = match kind {
            KIND_FULL => (HEADER_BYTES, frame_payload_bytes, frame_payload_bytes),
            KIND_SHORT => {
                let Some(length) = bytes.get(HEADER_BYTES..SHORT_HEADER_BYTES) else {
                    return Ok(None);
                };
                let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                (SHORT_HEADER_BYTES, length, frame_payload_bytes - 1)
            }
            KIND_CONTROL => (HEADER_BYTES, (word & 0xffff) as usize, MAX_CONTROL_BYTES),
            _ => return Err(RemoteError::UnknownFrameKind),
        };
        if body_bytes > limit || (body_bytes == 0 && kind == KIND_SHORT) {
            return Err(RemoteError::BadFrameLength {
                length: body_bytes,
                limit,
            });
        }
        Ok(Some(Self {
            kind,
            word,
            header_bytes,
            body_bytes,
        }))
    }

    fn frame_bytes(&self) -> usize {
        self.header_bytes + self.body_bytes
    }

    /// Make the frame of a complete encoding.
    fn frame<'a>(&self, encoded: &'a [u8]) -> Result<Frame<'a>, RemoteError> {
        let body = &encoded[self.header_bytes..self.frame_bytes()];
        if self.kind != KIND_CONTROL {
            return Ok(Frame::Data {
                number: self.word & (NUMBER_LIMIT - 1),
                payload: body,
            });
        }
        match self.word >> TYPE_SHIFT & TYPE_MASK {
            TYPE_FIN if body.len() != FIN_BODY_BYTES => Err(RemoteError::BadFin),
            TYPE_FIN => Ok(Frame::Fin {
                frame_count: be_u64(body),
            }),
            _ => Ok(Frame::UnknownControl),
        }
    }
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Cuts the bytes of one stream into frames, however they arrive. Holds at most one frame.
#[derive(Debug)]
pub struct Parser {
    frame_payload_bytes: usize,
    partial: Vec<u8>,
    partial_done: bool,
}

impl Parser {
    /// A parser at the beginning of a stream (after the hello) whose full-size frames carry `frame_payload_bytes`.
    pub fn new(frame_payload_bytes: usize) -> Self {
        debug_assert!((1..=MAX_PAYLOAD_BYTES).contains(&frame_payload_bytes));
        Self {
            frame_payload_bytes,
            partial: Vec::new(),
            partial_done: false,
        }
    }

    /// Take the next frame from the front of `input`: how many bytes were consumed, and the frame if it is complete.
    ///
    /// Without a frame all of `input` was consumed. After an error the parser must not be used again.
    pub fn next<'a>(
        &'a mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Frame<'a>>), RemoteError> {
        if self.partial_done {
            self.partial.clear();
            self.partial_done = false;
        }
        if !self.partial.is_empty() {
            return self.complete_partial(input);
        }
        match Header::decode(input, self.frame_payload_bytes)? {
            // The usual case: a whole frame lies in the input and need not be copied.
            Some(header) if input.len() >= header.frame_bytes() => {
                Ok((header.frame_bytes(), Some(header.frame(input)?)))
            }
            _ => {
                self.partial.extend_from_slice(input);
                Ok((input.len(), None))
            }
        }
    }

    /// Whether a frame has begun and not ended.
    pub fn in_frame(&self) -> bool {
        !self.partial.is_empty() && !self.partial_done
    }

    fn complete_partial(
        &mut self,
        input: &[u8],
    ) -> Result<(usize, Option<Frame<'_>>), RemoteError> {
        let mut consumed = 0;
        loop {
            let header = Header::decode(&self.partial, self.frame_payload_bytes)?;
            let wanted = match header {
                Some(header) => header.frame_bytes(),
                None if self.partial.len() < HEADER_BYTES => HEADER_BYTES,
                None => SHORT_HEADER_BYTES,
            };
            let take = (wanted - self.partial.len()).min(input.len() - consumed);
            self.partial
                .extend_from_slice(&input[consumed..consumed + take]);
            consumed += take;
            if self.partial.len() < wanted {
                return Ok((consumed, None));
            }
            if let Some(header) = header {
                self.partial_done = true;
                return Ok((consumed, Some(header.frame(&self.partial)?)));
            }
        }
    }
}
