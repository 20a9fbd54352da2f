//! When the kernel wakes the reader of a socket: for much of a large frame at once, not for each piece of it.
//!
//! Waking a thread costs the sender's core tens of microseconds where both ends are on one machine, more than copying what
//! it is woken for. A reader knows how much of a frame is still to come, so it has the kernel wait for that.

use crate::sys;

/// What is awaited of the rest of a frame.
const MOST_BYTES: usize = 1 << 18;
/// A rest below this is not waited for.
const LEAST_BYTES: usize = 1 << 17;
/// Where a read brings less than this, the path is slow, and its bytes are worth having as they come.
const MUCH_BYTES: usize = 1 << 16;
/// A path may become slow within a frame: then what has come is read after so long.
const PATIENCE_NS: u64 = 20_000_000;
/// A stream's first bytes are acknowledged at once: what answers them would have the kernel wait with an odd segment, and the
/// sender's window grow by less than it brought.
const FIRST_BYTES: usize = 1 << 17;
/// A read of less brings reports: those are acknowledged with the data that a sender has, not by packets of their own beside it.
const LEAST_DATA_BYTES: usize = 256;

/// What one socket's reader waits for.
#[derive(Debug, Clone, Copy)]
pub struct Awaiting {
    bytes: usize,
    /// Since nothing was read, until when to wait; None: from the next check on.
    until_ns: Option<u64>,
    /// Of its first bytes those that have come.
    first_bytes: usize,
}

impl Default for Awaiting {
    fn default() -> Self {
        Self {
            bytes: 1,
            until_ns: None,
            first_bytes: 0,
        }
    }
}

impl Awaiting {
    /// Decide what to wait for after a read of `count` bytes, where `rest` are left of a frame.
    pub fn on_read(&mut self, descriptor: i32, count: usize, rest: usize) {
        self.until_ns = None;
        if count >= LEAST_DATA_BYTES && self.first_bytes < FIRST_BYTES {
            self.first_bytes += count;
            sys::acknowledge(descriptor);
        }
        self.set(
            descriptor,
            match count < MUCH_BYTES || rest < LEAST_BYTES {
                true => 1,
                false => rest.min(MOST_BYTES),
            },
        );
    }

    /// Wait no longer where it has been too long.
    pub fn check(&mut self, descriptor: i32, now_ns: u64) {
        if self.bytes > 1 && *self.until_ns.get_or_insert(now_ns + PATIENCE_NS) <= now_ns {
            self.set(descriptor, 1);
        }
    }

    /// When to check, once that is known.
    pub fn due_ns(&self) -> Option<u64> {
        self.until_ns.filter(|_| self.bytes > 1)
    }

    fn set(&mut self, descriptor: i32, bytes: usize) {
        if bytes != self.bytes {
            self.bytes = bytes;
            sys::set_awaited(descriptor, bytes);
        }
    }
}
