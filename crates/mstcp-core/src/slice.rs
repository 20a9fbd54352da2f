//! Received bytes that are passed on without being copied.

use std::ops::{Deref, Range};
use std::sync::Arc;

/// A part of a chunk that was read from a socket; the chunk lives as long as its slices.
#[derive(Debug, Clone)]
pub struct Slice {
    chunk: Arc<Vec<u8>>,
    range: Range<usize>,
}

impl Slice {
    /// The bytes `range` of a chunk.
    pub fn new(chunk: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= chunk.len());
        Self { chunk, range }
    }

    /// A slice with a copy of its own.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::new(Arc::new(bytes.to_vec()), 0..bytes.len())
    }

    /// The bytes `range` of this slice, the chunk shared.
    pub fn part(&self, range: Range<usize>) -> Self {
        let start = self.range.start;
        Self::new(
            Arc::clone(&self.chunk),
            start + range.start..start + range.end,
        )
    }

    /// Append bytes: in place if the chunk is this slice's alone.
    pub fn append(&mut self, bytes: &[u8]) {
        match Arc::get_mut(&mut self.chunk) {
            Some(own) => {
                own.truncate(self.range.end);
                own.extend_from_slice(bytes);
                self.range.end += bytes.len();
            }
            None => {
                *self = Self::new(
                    Arc::new([self, bytes].concat()),
                    0..self.len() + bytes.len(),
                )
            }
        }
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.chunk[self.range.clone()]
    }
}
