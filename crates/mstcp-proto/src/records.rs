//! Authentication of every byte of a stream without TLS: for who shares a secret and has no certificates.
//!
//! After its hellos each direction of a stream is a sequence of records: a length of 32 bits, this many bytes, and a tag of 16 bytes:
//! the beginning of HMAC(key, number || length || bytes), where the number counts the direction's records from 0 (64 bits). The
//! keys are of one stream and direction ([`crate::handshake`]), so a record is good once, at its place, and nowhere else.
//! Nothing is encrypted.

use crate::error::RemoteError;
use crate::handshake::{hmac, is_same_tag, Proof};

/// The most bytes of a record.
pub const MAX_RECORD_BYTES: usize = 1 << 16;
const LENGTH_BYTES: usize = 4;
const TAG_BYTES: usize = 16;
/// What a record costs beside its bytes.
pub const RECORD_OVERHEAD_BYTES: usize = LENGTH_BYTES + TAG_BYTES;

/// The keys of a stream's two directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordKeys {
    /// Key of what the client sends.
    pub client: Proof,
    /// Key of what the server sends.
    pub server: Proof,
}

fn tag(key: &Proof, number: u64, length: [u8; LENGTH_BYTES], bytes: &[u8]) -> [u8; TAG_BYTES] {
    let digest: Proof = hmac(key, &[&number.to_be_bytes(), &length, bytes]);
    std::array::from_fn(|place| digest[place])
}

/// Makes the records of one direction.
#[derive(Debug, Clone)]
pub struct RecordWriter {
    key: Proof,
    number: u64,
}

impl RecordWriter {
    /// A writer of the records of `key`, from the first on.
    pub fn new(key: Proof) -> Self {
        Self { key, number: 0 }
    }

    /// Append `bytes` as records to `out`.
    pub fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        for piece in bytes.chunks(MAX_RECORD_BYTES) {
            let length = (piece.len() as u32).to_be_bytes();
            out.extend_from_slice(&length);
            out.extend_from_slice(piece);
            out.extend_from_slice(&tag(&self.key, self.number, length, piece));
            self.number += 1;
        }
    }
}

/// Takes the records of one direction.
#[derive(Debug, Clone)]
pub struct RecordReader {
    key: Proof,
    number: u64,
    /// The beginning of a record.
    begun: Vec<u8>,
}

impl RecordReader {
    /// A reader of the records of `key`, from the first on.
    pub fn new(key: Proof) -> Self {
        let (number, begun) = (0, Vec::new());
        Self { key, number, begun }
    }

    /// Take bytes of the stream; append what whole records carry to `out`. After an error the stream must not be used.
    pub fn read(&mut self, data: &[u8], out: &mut Vec<u8>) -> Result<(), RemoteError> {
        self.begun.extend_from_slice(data);
        let mut taken = 0;
        while let Some(record) = self.check(&self.begun[taken..])? {
            out.extend_from_slice(&self.begun[taken + LENGTH_BYTES..][..record]);
            taken += record + RECORD_OVERHEAD_BYTES;
            self.number += 1;
        }
        self.begun.drain(..taken);
        Ok(())
    }

    /// How many bytes the first record of `data` carries; none while it is not whole.
    fn check(&self, data: &[u8]) -> Result<Option<usize>, RemoteError> {
        let Some(length) = data.get(..LENGTH_BYTES) else {
            return Ok(None);
        };
        let length = [length[0], length[1], length[2], length[3]];
        let bytes = u32::from_be_bytes(length) as usize;
        if !(1..=MAX_RECORD_BYTES).contains(&bytes) {
            return Err(RemoteError::BadRecord);
        }
        let Some(rest) = data.get(LENGTH_BYTES..bytes + RECORD_OVERHEAD_BYTES) else {
            return Ok(None);
        };
        let (carried, received) = rest.split_at(bytes);
        match is_same_tag(&tag(&self.key, self.number, length, carried), received) {
            true => Ok(Some(bytes)),
            false => Err(RemoteError::BadRecord),
        }
    }
}
