//! The application's bytes from the write until the peer has them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::slice::Slice;

/// Bytes that the application keeps unchanged until they are dropped here.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Copied writes are gathered in segments of about this size.
const SEGMENT_BYTES: usize = 1 << 16;

enum Data {
    Copied(Vec<u8>),
    Shared(SharedBytes),
    Slice(Slice),
}

impl Data {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Copied(bytes) => bytes,
            Self::Shared(bytes) => (**bytes).as_ref(),
            Self::Slice(slice) => slice,
        }
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

#[derive(Debug)]
struct Segment {
    start: u64,
    data: Data,
}

/// Bytes by their offsets, in segments: small writes are copied together, large ones only referred to.
#[derive(Debug, Default)]
pub struct SendBuffer {
    segments: VecDeque<Segment>,
    end: u64,
}

impl SendBuffer {
    /// Offset of the next byte to be written.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Append a copy.
    pub fn push_copy(&mut self, bytes: &[u8]) {
        let end = self.end;
        self.end += bytes.len() as u64;
        if let Some(Segment {
            data: Data::Copied(last),
            ..
        }) = self.segments.back_mut()
        {
            if last.len() + bytes.len() <= SEGMENT_BYTES {
                last.extend_from_slice(bytes);
                return;
            }
        }
        if !bytes.is_empty() {
            self.segments.push_back(Segment {
                start: end,
                data: Data::Copied(bytes.to_vec()),
            });
        }
    }

    /// Append without copying.
    pub fn push_shared(&mut self, bytes: SharedBytes) {
        self.push(Data::Shared(bytes));
    }

    /// Append without copying, nor memory of its own.
    pub fn push_slice(&mut self, slice: Slice) {
        self.push(Data::Slice(slice));
    }

    fn push(&mut self, data: Data) {
        let start = self.end;
        self.end += data.bytes().len() as u64;
        if self.end > start {
            self.segments.push_back(Segment { start, data });
        }
    }

    /// Drop the segments that lie wholly before `offset`. The memory of the last is kept for the next write.
    pub fn release(&mut self, offset: u64) {
        let last = self.segments.len() == 1;
        while let Some(first) = self.segments.front_mut() {
            if first.start + first.data.bytes().len() as u64 > offset {
                break;
            }
            match &mut first.data {
                Data::Copied(bytes) if last => {
                    bytes.clear();
                    first.start = self.end;
                    break;
                }
                _ => {
                    self.segments.pop_front();
                }
            }
        }
    }

    /// Pass the bytes from `offset` on to `take`, in as many pieces as they lie in.
    pub fn pieces<'a>(&'a self, offset: u64, length: usize, mut take: impl FnMut(&'a [u8])) {
        let (mut offset, mut rest) = (offset, length);
        let first = self
            .segments
            .partition_point(|segment| segment.start <= offset);
        for segment in self.segments.range(first.saturating_sub(1)..) {
            if rest == 0 {
                break;
            }
            let from = (offset - segment.start) as usize;
            let count = (segment.data.bytes().len() - from).min(rest);
            take(&segment.data.bytes()[from..from + count]);
            offset += count as u64;
            rest -= count;
        }
        debug_assert_eq!(rest, 0);
    }
}
