//! Memory that is read to before it is known what comes, shared by all connections.

use std::sync::{Arc, Mutex, PoisonError};

/// What one system call reads at most.
pub const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that are kept for later reads.
const SPARE_CHUNKS: usize = 32;

static SPARE: Mutex<Vec<Arc<Vec<u8>>>> = Mutex::new(Vec::new());

/// A chunk that nobody else has; its bytes are whatever they were.
pub fn take() -> Arc<Vec<u8>> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    spare.unwrap_or_else(|| Arc::new(vec![0; CHUNK_BYTES]))
}

/// Keep a chunk for later, if nothing refers to it.
pub fn give_back(chunk: Arc<Vec<u8>>) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < SPARE_CHUNKS && Arc::strong_count(&chunk) == 1 {
        spare.push(chunk);
    }
}

/// Chunks of a connection that slices still refer to.
#[derive(Default)]
pub struct Lent(Vec<Arc<Vec<u8>>>);

impl Lent {
    /// Note a chunk that was read to; it is given back as soon as nothing refers to it.
    pub fn lend(&mut self, chunk: Arc<Vec<u8>>) {
        if Arc::strong_count(&chunk) == 1 {
            give_back(chunk);
        } else {
            self.0.push(chunk);
        }
    }

    /// Give back what nothing refers to any more.
    pub fn reclaim(&mut self) {
        let mut index = 0;
        while index < self.0.len() {
            if Arc::strong_count(&self.0[index]) == 1 {
                give_back(self.0.swap_remove(index));
            } else {
                index += 1;
            }
        }
    }
}
