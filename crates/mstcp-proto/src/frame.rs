//! Frames: their layout on a stream, and an incremental parser.
//!
//! Every frame begins with one 64-bit word in network byte order. Its two high bits name the kind:
//!
//! | bits 63-62 | kind | bits 61-0 | after the word |
//! |---|---|---|---|
//! | 00 | full-size data | offset | `frame_payload_bytes` of data |
//! | 01 | short data | offset | length (16 bits, at least 1), then the data |
//! | 10 | control | type (61-56), zero (55-16), length (15-0) | `length` bytes |
//! | 11 | long data | offset | length (32 bits, 1 to 1 MiB), then the data |
//!
//! So a full-size frame costs 8 bytes, a short one 10, a long one 12. The offset is the place of the frame's first byte
//! among the application's bytes, from 0, over all streams. Bytes that were lost with a stream can so be sent again in
//! frames of another size that suit another stream, and a receiver can use the part of a frame that it has.

use crate::control::Control;
use crate::error::RemoteError;

/// Bytes of a full-size frame's header: its 64-bit identifier.
pub const HEADER_BYTES: usize = 8;
/// Bytes of a short frame's header: identifier and 16 bits of length.
pub(crate) const SHORT_HEADER_BYTES: usize = 10;
/// Bytes of a long frame's header: identifier and 32 bits of length.
pub const LONG_HEADER_BYTES: usize = 12;
/// The greatest body of a control frame, in bytes.
pub const MAX_CONTROL_BYTES: usize = 1024;
/// The greatest number of application bytes in a full-size or short frame.
pub const MAX_PAYLOAD_BYTES: usize = u16::MAX as usize;
/// The greatest number of application bytes in a long frame.
pub(crate) const MAX_LONG_BYTES: usize = 1 << 20;
/// Offset and length of a frame are less than this together, as the bytes of a direction are.
pub(crate) const OFFSET_LIMIT: u64 = 1 << 62;

const KIND_SHIFT: u32 = 62;
const KIND_FULL: u64 = 0;
const KIND_SHORT: u64 = 1;
const KIND_CONTROL: u64 = 2;
const KIND_LONG: u64 = 3;
const TYPE_SHIFT: u32 = 56;
const TYPE_MASK: u64 = 0x3f;
const RESERVED_MASK: u64 = 0x00ff_ffff_ffff_0000;

/// What the parser finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed<'a> {
    /// Application bytes: a frame, or a part of one.
    Data {
        /// Offset of the first of these bytes.
        offset: u64,
        /// The bytes.
        payload: &'a [u8],
        /// Whether the frame begins with them.
        first: bool,
        /// Whether the frame ends with them.
        last: bool,
    },
    /// A whole control frame; none if its type is not known, which is to be skipped.
    Control(Option<Control>),
}

/// Append the header of a data frame with `length` application bytes, 1 to 1 MiB.
pub fn encode_data_header(
    out: &mut Vec<u8>,
    offset: u64,
    length: usize,
    frame_payload_bytes: usize,
) {
    debug_assert!((1..=MAX_LONG_BYTES).contains(&length) && offset < OFFSET_LIMIT);
    if length == frame_payload_bytes {
        out.extend_from_slice(&(KIND_FULL << KIND_SHIFT | offset).to_be_bytes());
    } else if length <= MAX_PAYLOAD_BYTES {
        out.extend_from_slice(&(KIND_SHORT << KIND_SHIFT | offset).to_be_bytes());
        out.extend_from_slice(&(length as u16).to_be_bytes());
    } else {
        out.extend_from_slice(&(KIND_LONG << KIND_SHIFT | offset).to_be_bytes());
        out.extend_from_slice(&(length as u32).to_be_bytes());
    }
}

/// Append a data frame.
pub fn encode_data(out: &mut Vec<u8>, offset: u64, payload: &[u8], frame_payload_bytes: usize) {
    encode_data_header(out, offset, payload.len(), frame_payload_bytes);
    out.extend_from_slice(payload);
}

/// Append a control frame.
pub fn encode_control(out: &mut Vec<u8>, control: &Control) {
    let place = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let kind = control.encode_body(out);
    let length = (out.len() - place - HEADER_BYTES) as u64;
    debug_assert!(length as usize <= MAX_CONTROL_BYTES);
    let word = KIND_CONTROL << KIND_SHIFT | kind << TYPE_SHIFT | length;
    out[place..place + HEADER_BYTES].copy_from_slice(&word.to_be_bytes());
}

#[derive(Debug)]
enum State {
    /// Within a header, or between frames.
    Header,
    /// Within the bytes of a data frame.
    Data {
        offset: u64,
        rest: usize,
        first: bool,
    },
    /// Within the body of a control frame.
    Control { kind: u64, wanted: usize },
}

/// Cuts the bytes of one stream into frames, however they arrive. Keeps headers and control frames, never data.
#[derive(Debug)]
pub struct Parser {
    frame_payload_bytes: usize,
    state: State,
    kept: Vec<u8>,
    /// Bytes of header and of payload of the data frame that began last.
    latest: (usize, usize),
}

/// What is likely to come next on a stream; see [`Parser::expected`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expected {
    /// What is left of the payload of a frame.
    pub payload_bytes: usize,
    /// What is left of the header after it, if that is like the last.
    pub header_bytes: usize,
}

/// Some of a frame's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PayloadPart {
    /// Offset of the first byte.
    pub offset: u64,
    /// Whether the frame begins with it.
    pub first: bool,
    /// Whether the frame ends with it.
    pub last: bool,
}

impl Parser {
    /// A parser at the beginning of a stream (after the hello) whose full-size frames carry `frame_payload_bytes`.
    pub fn new(frame_payload_bytes: usize) -> Self {
        debug_assert!((1..=MAX_PAYLOAD_BYTES).contains(&frame_payload_bytes));
        Self {
            frame_payload_bytes,
            state: State::Header,
            kept: Vec::new(),
            latest: (0, 0),
        }
    }

    /// What is likely to come next, where frames are of `least_bytes` or more: a shell can then have the payload read to
    /// where it is to stay.
    pub fn expected(&self, least_bytes: usize) -> Option<Expected> {
        let (header_bytes, payload_bytes) = self.latest;
        if payload_bytes < least_bytes {
            return None;
        }
        match self.state {
            State::Data { rest, .. } => Some(Expected {
                payload_bytes: rest,
                header_bytes,
            }),
            State::Header if self.kept.len() < header_bytes => Some(Expected {
                payload_bytes: 0,
                header_bytes: header_bytes - self.kept.len(),
            }),
            _ => None,
        }
    }

    /// Take from the front of `input`: how many bytes were consumed, and what they bring. Data is the last of the
    /// bytes consumed.
    ///
    /// With nothing found all of `input` was consumed. After an error the parser must not be used again.
    pub fn next<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<(usize, Option<Parsed<'a>>), RemoteError> {
        let mut at = 0;
        loop {
            match self.state {
                State::Header => {
                    if !self.header(input, &mut at)? {
                        return Ok((at, None));
                    }
                }
                State::Data { rest, .. } => {
                    let take = rest.min(input.len() - at);
                    let payload = &input[at..at + take];
                    let parsed = self.skip(take).map(|part| Parsed::Data {
                        offset: part.offset,
                        payload,
                        first: part.first,
                        last: part.last,
                    });
                    return Ok((at + take, parsed));
                }
                State::Control { kind, wanted } => {
                    if !self.fill(wanted, input, &mut at) {
                        return Ok((at, None));
                    }
                    let control = Control::decode(kind, &self.kept)?;
                    self.kept.clear();
                    self.state = State::Header;
                    return Ok((at, Some(Parsed::Control(control))));
                }
            }
        }
    }

    /// Go on after this many bytes of a frame's payload, which the caller has; none if there are none.
    pub(crate) fn skip(&mut self, count: usize) -> Option<PayloadPart> {
        let State::Data {
            offset,
            rest,
            first,
        } = self.state
        else {
            return None;
        };
        debug_assert!(count <= rest);
        if count == 0 {
            return None;
        }
        let last = count == rest;
        self.state = if last {
            State::Header
        } else {
            State::Data {
                offset: offset + count as u64,
                rest: rest - count,
                first: false,
            }
        };
        Some(PayloadPart {
            offset,
            first,
            last,
        })
    }

    /// The payload that comes next, if the header before it has come: its offset, and how many bytes are left of it.
    pub(crate) fn payload(&self) -> Option<(u64, usize)> {
        match self.state {
            State::Data { offset, rest, .. } => Some((offset, rest)),
            _ => None,
        }
    }

    /// Keep bytes until there are `wanted`; false if the input ends before.
    fn fill(&mut self, wanted: usize, input: &[u8], at: &mut usize) -> bool {
        let take = (wanted - self.kept.len()).min(input.len() - *at);
        self.kept.extend_from_slice(&input[*at..*at + take]);
        *at += take;
        self.kept.len() == wanted
    }

    /// Read a header and go into its frame; false if the input ends before.
    fn header(&mut self, input: &[u8], at: &mut usize) -> Result<bool, RemoteError> {
        // Nearly always: the whole header of a full-size frame.
        if let (true, Some(bytes)) = (self.kept.is_empty(), input.get(*at..*at + HEADER_BYTES)) {
            let word = be(bytes);
            if word >> KIND_SHIFT == KIND_FULL {
                *at += HEADER_BYTES;
                self.begin_data(word, HEADER_BYTES, self.frame_payload_bytes)?;
                return Ok(true);
            }
        }
        if self.kept.len() < HEADER_BYTES && !self.fill(HEADER_BYTES, input, at) {
            return Ok(false);
        }
        let word = be(&self.kept[..HEADER_BYTES]);
        let kind = word >> KIND_SHIFT;
        let header_bytes = match kind {
            KIND_SHORT => SHORT_HEADER_BYTES,
            KIND_LONG => LONG_HEADER_BYTES,
            _ => HEADER_BYTES,
        };
        if self.kept.len() < header_bytes && !self.fill(header_bytes, input, at) {
            return Ok(false);
        }
        let (length, limit) = match kind {
            KIND_FULL => (self.frame_payload_bytes, self.frame_payload_bytes),
            KIND_CONTROL => ((word & 0xffff) as usize, MAX_CONTROL_BYTES),
            KIND_SHORT => (be(&self.kept[HEADER_BYTES..]) as usize, MAX_PAYLOAD_BYTES),
            _ => (be(&self.kept[HEADER_BYTES..]) as usize, MAX_LONG_BYTES),
        };
        if length > limit || (length == 0 && kind != KIND_CONTROL) {
            return Err(RemoteError::BadFrameLength { length, limit });
        }
        self.kept.clear();
        if kind != KIND_CONTROL {
            self.begin_data(word, header_bytes, length)?;
        } else if word & RESERVED_MASK != 0 {
            return Err(RemoteError::ReservedBits);
        } else {
            self.state = State::Control {
                kind: word >> TYPE_SHIFT & TYPE_MASK,
                wanted: length,
            };
        }
        Ok(true)
    }

    /// Go into a data frame.
    fn begin_data(
        &mut self,
        word: u64,
        header_bytes: usize,
        length: usize,
    ) -> Result<(), RemoteError> {
        let offset = word & (OFFSET_LIMIT - 1);
        if offset + length as u64 >= OFFSET_LIMIT {
            return Err(RemoteError::BeyondWindow {
                offset,
                limit: OFFSET_LIMIT,
            });
        }
        self.latest = (header_bytes, length);
        self.state = State::Data {
            offset,
            rest: length,
            first: true,
        };
        Ok(())
    }
}

/// The number that bytes in network order stand for; 8 at most.
pub(crate) fn be(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |word, byte| word << 8 | u64::from(*byte))
}
