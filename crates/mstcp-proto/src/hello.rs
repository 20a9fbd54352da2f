//! The message that opens each stream: magic, length, the protobuf message `Hello` of `mstcp/proto/hello.proto`, and a proof
//! of 32 bytes over all of it.
//!
//! The codec is written by hand: a dozen fields do not pay for a code generator and its dependencies. The tests compare it
//! with Google's. Proofs are made and checked in [`crate::handshake`], over the bytes as they were sent: a hello is never
//! encoded again to check it, so that fields of later versions do no harm.

use crate::control::code;
use crate::error::RemoteError;
use crate::frame::MAX_PAYLOAD_BYTES;
use crate::MAX_STREAMS;

/// The first bytes on every stream. 0x93 begins no UTF-8 text, and no TLS, HTTP or SSH connection; the line end shows
/// a connection that translates text.
pub const MAGIC: [u8; 8] = *b"\x93MSTCP\r\n";
/// Bytes before the message: the magic and the message's length as 32 bits in network byte order.
pub const PREFIX_BYTES: usize = MAGIC.len() + 4;
/// The greatest length of the message, checked before anything is stored.
pub const MAX_BODY_BYTES: usize = 1 << 14;
/// The most application bytes that may come with the first hello.
pub const MAX_EARLY_BYTES: usize = 15 << 10;
/// The version of the protocol that this crate speaks.
pub const VERSION: u32 = 3;
/// The length of a nonce, in bytes.
pub const NONCE_BYTES: usize = 32;
/// The length of a proof, in bytes.
pub const PROOF_BYTES: usize = 32;
/// The highest priority value that a stream may have; 0 is used first.
pub const MAX_PRIORITY: u32 = 255;

const WIRE_VARINT: u64 = 0;
const WIRE_FIXED64: u64 = 1;
const WIRE_BYTES: u64 = 2;
const WIRE_FIXED32: u64 = 5;

/// What a stream says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hello {
    /// The highest version that the sender speaks; in an answer the one that both use.
    pub version: u32,
    /// The lowest version that the sender speaks; in an answer the same as `version`.
    pub least_version: u32,
    /// Random, the same on all streams of a connection.
    pub connection_id: [u8; 16],
    /// Which stream of the connection this is: 0 opens it; no id is used twice.
    pub stream_id: u32,
    /// How many streams the connection is meant to have.
    pub stream_count: u32,
    /// Application bytes in a full-size frame, both directions.
    pub frame_payload_bytes: u32,
    /// Random, another in every hello and answer.
    pub nonce: [u8; NONCE_BYTES],
    /// The client's first application bytes; on stream 0 only.
    pub early_data: Vec<u8>,
    /// In an answer: why the stream is refused, 0 if it is not; see [`crate::code`], one is added to each.
    pub refusal: u32,
    /// Streams of the lowest value that work are used, both directions; 0 to 255.
    pub priority: u32,
    /// 1: after the hellos the stream's bytes are in records, see [`crate::records`]; 0: they are not.
    pub records: u32,
}

impl Hello {
    /// The message alone, as protobuf's deterministic serialisation has it.
    pub fn encode_body(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96 + self.early_data.len());
        put_number(&mut out, 1, self.version);
        put_bytes(&mut out, 2, &self.connection_id);
        put_number(&mut out, 3, self.stream_id);
        put_number(&mut out, 4, self.stream_count);
        put_number(&mut out, 5, self.frame_payload_bytes);
        put_bytes(&mut out, 6, &self.nonce);
        put_bytes(&mut out, 7, &self.early_data);
        put_number(&mut out, 8, self.least_version);
        put_number(&mut out, 9, self.refusal);
        put_number(&mut out, 10, self.priority);
        put_number(&mut out, 11, self.records);
        out
    }

    /// Magic, length and message: what the proof is made of. The proof follows.
    pub fn encode(&self) -> Vec<u8> {
        framed(&self.encode_body())
    }

    /// Decode a message (without magic, length and proof) and check its values.
    pub fn decode_body(body: &[u8]) -> Result<Self, RemoteError> {
        if body.len() > MAX_BODY_BYTES {
            return Err(RemoteError::HelloTooLong(
                u32::try_from(body.len()).unwrap_or(u32::MAX),
            ));
        }
        let mut connection_id: &[u8] = &[];
        let mut nonce: &[u8] = &[];
        let mut hello = Self::default();
        let mut fields = Fields { rest: body };
        // Judged after the versions: what other versions have in these fields is not known here.
        let mut has_other_type = false;
        while let Some((tag, value)) = fields.next()? {
            match (tag, value) {
                (1, Value::Number(number)) => hello.version = number as u32,
                (2, Value::Bytes(bytes)) => connection_id = bytes,
                (3, Value::Number(number)) => hello.stream_id = number as u32,
                (4, Value::Number(number)) => hello.stream_count = number as u32,
                (5, Value::Number(number)) => hello.frame_payload_bytes = number as u32,
                (6, Value::Bytes(bytes)) => nonce = bytes,
                (7, Value::Bytes(bytes)) => hello.early_data = bytes.to_vec(),
                (8, Value::Number(number)) => hello.least_version = number as u32,
                (9, Value::Number(number)) => hello.refusal = number as u32,
                (10, Value::Number(number)) => hello.priority = number as u32,
                (11, Value::Number(number)) => hello.records = number as u32,
                (1 | 8 | 9, _) => return Err(OTHER_TYPE),
                (2..=11, _) => has_other_type = true,
                _ => {}
            }
        }
        if hello.version < VERSION || hello.least_version > VERSION {
            return Err(RemoteError::UnsupportedVersion {
                least: hello.least_version,
                highest: hello.version,
            });
        }
        if has_other_type {
            return Err(OTHER_TYPE);
        }
        hello.connection_id = connection_id
            .try_into()
            .map_err(|_| RemoteError::BadHello("connection_id is not 16 bytes long"))?;
        hello.nonce = nonce
            .try_into()
            .map_err(|_| RemoteError::BadHello("the nonce is not 32 bytes long"))?;
        hello.check()?;
        Ok(hello)
    }

    fn check(&self) -> Result<(), RemoteError> {
        let is_wrong = [
            (
                !(1..=MAX_STREAMS as u32).contains(&self.stream_count),
                "stream_count is not 1 to 64",
            ),
            (
                !(1..=MAX_PAYLOAD_BYTES as u32).contains(&self.frame_payload_bytes),
                "frame_payload_bytes is not 1 to 65535",
            ),
            (
                self.early_data.len() > MAX_EARLY_BYTES,
                "early_data is longer than 15360 bytes",
            ),
            (
                self.stream_id != 0 && !self.early_data.is_empty(),
                "early_data is on a stream that joins",
            ),
            (self.priority > MAX_PRIORITY, "the priority is above 255"),
            (self.records > 1, "records is not 0 or 1"),
        ];
        match is_wrong.iter().find(|(wrong, _)| *wrong) {
            Some((_, problem)) => Err(RemoteError::BadHello(problem)),
            None => Ok(()),
        }
    }
}

/// The answer to a hello of versions that are not spoken here: it names those that are, and nothing else. Nothing proves it:
/// its proof is 32 zeros.
pub fn encode_version_refusal() -> Vec<u8> {
    let mut body = Vec::with_capacity(8);
    put_number(&mut body, 1, VERSION);
    put_number(&mut body, 8, VERSION);
    put_number(&mut body, 9, u32::from(code::UNSUPPORTED_VERSION) + 1);
    let mut out = framed(&body);
    out.extend_from_slice(&[0; PROOF_BYTES]);
    out
}

/// A message with what goes before it.
fn framed(body: &[u8]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(body);
    out
}

/// Check the magic and return how many bytes follow: message and proof.
pub fn rest_bytes(prefix: &[u8; PREFIX_BYTES]) -> Result<usize, RemoteError> {
    if prefix[..MAGIC.len()] != MAGIC {
        return Err(RemoteError::BadMagic);
    }
    let length = u32::from_be_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
    if length as usize > MAX_BODY_BYTES {
        return Err(RemoteError::HelloTooLong(length));
    }
    Ok(length as usize + PROOF_BYTES)
}

/// The bytes that a proof is made of, the message in them, and the proof.
pub type SplitHello<'a> = (&'a [u8], &'a [u8], &'a [u8; PROOF_BYTES]);

/// A whole hello as it came: the bytes that the proof is made of, the message, and the proof.
pub fn split(opening: &[u8]) -> Result<SplitHello<'_>, RemoteError> {
    let prefix: &[u8; PREFIX_BYTES] = opening
        .get(..PREFIX_BYTES)
        .and_then(|prefix| prefix.try_into().ok())
        .ok_or(TRUNCATED)?;
    if opening.len() != PREFIX_BYTES + rest_bytes(prefix)? {
        return Err(TRUNCATED);
    }
    let (proved, proof) = opening.split_at(opening.len() - PROOF_BYTES);
    let proof = proof.try_into().map_err(|_| TRUNCATED)?;
    Ok((proved, &proved[PREFIX_BYTES..], proof))
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(out: &mut Vec<u8>, tag: u64, value: u32) {
    // proto3 leaves default values out.
    if value != 0 {
        put_varint(out, tag << 3 | WIRE_VARINT);
        put_varint(out, u64::from(value));
    }
}

fn put_bytes(out: &mut Vec<u8>, tag: u64, value: &[u8]) {
    if !value.is_empty() {
        put_varint(out, tag << 3 | WIRE_BYTES);
        put_varint(out, value.len() as u64);
        out.extend_from_slice(value);
    }
}

enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Skipped,
}

struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, RemoteError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        if key > u64::from(u32::MAX) || key >> 3 == 0 {
            return Err(RemoteError::BadHello("a field has no valid number"));
        }
        let value = match key & 7 {
            WIRE_VARINT => Value::Number(self.varint()?),
            WIRE_FIXED64 => self.take(8).map(|_| Value::Skipped)?,
            WIRE_FIXED32 => self.take(4).map(|_| Value::Skipped)?,
            WIRE_BYTES => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| TRUNCATED)?;
                Value::Bytes(self.take(length)?)
            }
            _ => return Err(RemoteError::BadHello("a field has an unknown wire type")),
        };
        Ok(Some((key >> 3, value)))
    }

    fn varint(&mut self) -> Result<u64, RemoteError> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.take(1)?[0];
            if shift == 63 && byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(RemoteError::BadHello("a number is longer than 64 bits"))
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], RemoteError> {
        if count > self.rest.len() {
            return Err(TRUNCATED);
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }
}

const OTHER_TYPE: RemoteError = RemoteError::BadHello("a field has another type");
const TRUNCATED: RemoteError = RemoteError::BadHello("the message is cut short");
