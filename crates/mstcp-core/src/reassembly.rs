//! Frames in any order to bytes in order.

use std::collections::btree_map::Entry;
use std::collections::BTreeMap;

/// What a waiting frame costs beside its bytes, so that many tiny frames cannot pass the bound on memory.
pub const FRAME_OVERHEAD_BYTES: usize = 64;

/// The reorder buffer of a connection: holds the frames that are ahead of the next one.
#[derive(Debug, Default)]
pub struct Reassembly {
    next_number: u64,
    waiting: BTreeMap<u64, Box<[u8]>>,
    waiting_bytes: usize,
    max_waiting_bytes: usize,
    out_of_order_frames: u64,
}

impl Reassembly {
    /// Take a frame; append to `out` the bytes that are now in order. A frame that came before is dropped.
    pub fn insert(&mut self, number: u64, payload: &[u8], out: &mut Vec<u8>) {
        if number < self.next_number {
            return;
        }
        if number > self.next_number {
            if let Entry::Vacant(place) = self.waiting.entry(number) {
                place.insert(payload.into());
                self.out_of_order_frames += 1;
                self.waiting_bytes += payload.len();
                self.max_waiting_bytes = self.max_waiting_bytes.max(self.waiting_bytes);
            }
            return;
        }
        out.extend_from_slice(payload);
        self.next_number += 1;
        while let Some(entry) = self.waiting.first_entry() {
            if *entry.key() != self.next_number {
                break;
            }
            let payload = entry.remove();
            self.waiting_bytes -= payload.len();
            out.extend_from_slice(&payload);
            self.next_number += 1;
        }
    }

    /// Number of the frame whose bytes come next: how many frames have been delivered.
    pub fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Number of the last frame that waits.
    pub fn last_waiting(&self) -> Option<u64> {
        self.waiting.last_key_value().map(|(number, _)| *number)
    }

    /// Memory that the waiting frames take, in bytes, their overhead included.
    pub fn memory_bytes(&self) -> usize {
        self.waiting_bytes + self.waiting.len() * FRAME_OVERHEAD_BYTES
    }

    /// Application bytes that wait.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The most application bytes that ever waited.
    pub fn max_waiting_bytes(&self) -> usize {
        self.max_waiting_bytes
    }

    /// Frames that arrived before an earlier one.
    pub fn out_of_order_frames(&self) -> u64 {
        self.out_of_order_frames
    }
}
