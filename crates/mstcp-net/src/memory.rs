//! Where bytes are read to: chunks that all connections share, and blocks that stay with their payload.

use std::any::Any;
use std::convert::Infallible;
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex, Once, PoisonError};

use mstcp_proto::Storage;

/// What one system call reads at most.
pub const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that are kept for later reads.
const SPARE_CHUNKS: usize = 8;

static SPARE: Mutex<Vec<Arc<Vec<u8>>>> = Mutex::new(Vec::new());

/// Makes the blocks that the payload of large frames is read to, and stays in.
pub trait Memory {
    /// A block that nobody else sees.
    type Block;
    /// Why there is none.
    type Error;

    /// Make a block of this many bytes.
    fn block(&mut self, length: usize) -> Result<Self::Block, Self::Error>;

    /// Its bytes, to be written to.
    fn buffer(block: &mut Self::Block) -> &mut [MaybeUninit<u8>];

    /// Cut it to its first `length` bytes, 1 at least, which have been written. Nobody changes it any more.
    fn finish(
        &mut self,
        block: Self::Block,
        length: usize,
    ) -> Result<Arc<dyn Storage>, Self::Error>;

    /// Make a system call; other threads may use the interpreter meanwhile, where there is one.
    fn call<R: Send>(&self, call: impl FnOnce() -> R + Send) -> R {
        call()
    }
}

/// Blocks of this library's own.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnMemory;

struct OwnBlock(Box<[u8]>);

impl Storage for OwnBlock {
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Memory for OwnMemory {
    type Block = Vec<u8>;
    type Error = Infallible;

    fn block(&mut self, length: usize) -> Result<Self::Block, Infallible> {
        Ok(Vec::with_capacity(length))
    }

    fn buffer(block: &mut Self::Block) -> &mut [MaybeUninit<u8>] {
        block.spare_capacity_mut()
    }

    fn finish(
        &mut self,
        mut block: Self::Block,
        length: usize,
    ) -> Result<Arc<dyn Storage>, Infallible> {
        debug_assert!(length <= block.capacity());
        // SAFETY: this many bytes have been written, within the capacity.
        unsafe { block.set_len(length) };
        Ok(Arc::new(OwnBlock(block.into_boxed_slice())))
    }
}

/// Have the C library keep memory that is freed, up to some megabytes: else it gives the blocks of a fast transfer back to
/// the system, and gets them again page by page for the next.
///
/// glibc does so by itself once a block was freed that was as large (mallopt(3), M_MMAP_THRESHOLD).
pub fn keep_freed_memory() {
    const BLOCK_BYTES: usize = 16 << 20;
    static ONCE: Once = Once::new();
    ONCE.call_once(|| drop(std::hint::black_box(Vec::<u8>::with_capacity(BLOCK_BYTES))));
}

/// A chunk that nobody else has; its bytes are whatever they were.
pub(crate) fn take_chunk() -> Arc<Vec<u8>> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    spare.unwrap_or_else(|| Arc::new(vec![0; CHUNK_BYTES]))
}

/// Keep a chunk for later, if nothing refers to it.
pub(crate) fn give_chunk_back(chunk: Arc<Vec<u8>>) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < SPARE_CHUNKS && Arc::strong_count(&chunk) == 1 {
        spare.push(chunk);
    }
}

/// Chunks of a connection that slices still refer to.
#[derive(Default)]
pub(crate) struct InUse(Vec<Arc<Vec<u8>>>);

impl InUse {
    /// Note a chunk that was read to; it is given back as soon as nothing refers to it.
    pub(crate) fn note(&mut self, chunk: Arc<Vec<u8>>) {
        if Arc::strong_count(&chunk) == 1 {
            give_chunk_back(chunk);
        } else {
            self.0.push(chunk);
        }
    }

    /// Give back what nothing refers to any more.
    pub(crate) fn reclaim(&mut self) {
        let mut index = 0;
        while index < self.0.len() {
            if Arc::strong_count(&self.0[index]) == 1 {
                give_chunk_back(self.0.swap_remove(index));
            } else {
                index += 1;
            }
        }
    }
}
