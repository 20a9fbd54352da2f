//! Received bytes that are passed on without being copied.

use std::any::Any;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Memory of the shell's into which it read payload; nobody changes it any more.
pub trait Storage: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// For the shell to know its own again.
    fn as_any(&self) -> &dyn Any;
}

#[derive(Clone)]
enum Chunk {
    Own(Arc<Vec<u8>>),
    Shell(Arc<dyn Storage>),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shell(storage) => storage.bytes(),
        }
    }
}

/// A part of what was read from a socket; the memory lives as long as its slices.
#[derive(Clone)]
pub struct Slice {
    chunk: Chunk,
    range: Range<usize>,
}

impl Slice {
    /// The bytes `range` of a chunk.
    pub fn new(chunk: Arc<Vec<u8>>, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= chunk.len());
        Self {
            chunk: Chunk::Own(chunk),
            range,
        }
    }

    /// All of the shell's memory.
    pub fn of_storage(storage: Arc<dyn Storage>) -> Self {
        Self {
            range: 0..storage.bytes().len(),
            chunk: Chunk::Shell(storage),
        }
    }

    /// The shell's memory, if this is all of it.
    pub fn whole_storage(&self) -> Option<&dyn Storage> {
        match &self.chunk {
            Chunk::Shell(storage) if self.range == (0..storage.bytes().len()) => Some(&**storage),
            _ => None,
        }
    }

    /// A slice with a copy of its own.
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::new(Arc::new(bytes.to_vec()), 0..bytes.len())
    }

    /// This slice to be kept for long: if it is smaller than `least_bytes`, in memory of just its size, so that it does not
    /// hold a large chunk.
    pub fn kept(self, least_bytes: usize) -> Self {
        let length = self.len();
        self.kept_with_room(least_bytes, length)
    }

    /// As [`Slice::kept`]; a copy has room for `capacity` bytes, for those that are to be appended.
    pub fn kept_with_room(self, least_bytes: usize, capacity: usize) -> Self {
        let is_copy = matches!(&self.chunk, Chunk::Own(chunk) if chunk.len() == self.len());
        if self.len() >= least_bytes || is_copy {
            return self;
        }
        let mut copy = Vec::with_capacity(capacity);
        copy.extend_from_slice(&self);
        Self::new(Arc::new(copy), 0..self.len())
    }

    /// The bytes `range` of this slice, the memory shared.
    pub fn part(&self, range: Range<usize>) -> Self {
        debug_assert!(range.start <= range.end && range.end <= self.len());
        let start = self.range.start;
        Self {
            chunk: self.chunk.clone(),
            range: start + range.start..start + range.end,
        }
    }

    /// Append bytes: in place if the chunk is this slice's alone.
    pub fn append(&mut self, bytes: &[u8]) {
        if let Chunk::Own(chunk) = &mut self.chunk {
            if let Some(own) = Arc::get_mut(chunk) {
                own.truncate(self.range.end);
                own.extend_from_slice(bytes);
                self.range.end += bytes.len();
                return;
            }
        }
        *self = Self::new(
            Arc::new([self, bytes].concat()),
            0..self.len() + bytes.len(),
        );
    }
}

impl Deref for Slice {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.chunk.bytes()[self.range.clone()]
    }
}

impl AsRef<[u8]> for Slice {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Slice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Slice").field(&self.range).finish()
    }
}
