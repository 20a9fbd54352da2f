//! When the kernel wakes the reader of a socket: for much of a large frame at once, not for each piece of it.
//!
//! Waking a thread costs the sender's core tens of microseconds where both ends are on one machine, more than copying what
//! it is woken for. A reader knows how much of a frame is still to come, so it has the kernel wait for that.

use crate::sys;

/// What is awaited of the rest of a frame.
const MAX_BYTES: usize = 1 << 18;
/// A rest below this is not waited for.
const MIN_BYTES: usize = 1 << 17;
/// Where a read brings less than this, the path is slow, and its bytes are worth having as they come.
const SLOW_READ_BYTES: usize = 1 << 16;
/// How long to wait for more, in nanoseconds: a path may become slow within a frame.
const MAX_WAIT_NS: u64 = 20_000_000;
/// A stream's first bytes are acknowledged at once: what answers them would have the kernel wait with an odd segment, and the
/// sender's window grow by less than it brought.
const FIRST_BYTES: usize = 1 << 17;
/// A read of less brings reports: those are acknowledged with the data that a sender has, not by packets of their own beside it.
const MIN_DATA_BYTES: usize = 256;

/// What one socket's reader waits for.
#[derive(Debug, Clone, Copy)]
pub struct LowWaterMark {
    bytes: usize,
    /// Since nothing was read, until when to wait; None: from the next check on.
    until_ns: Option<u64>,
    /// How many of its first bytes have come.
    first_bytes: usize,
}

impl Default for LowWaterMark {
    fn default() -> Self {
        Self {
            bytes: 1,
            until_ns: None,
            first_bytes: 0,
        }
    }
}

impl LowWaterMark {
    /// Decide what to wait for after a read of `count` bytes, where `rest` are left of a frame.
    pub fn on_read(&mut self, descriptor: i32, count: usize, rest: usize) {
        self.until_ns = None;
        if count >= MIN_DATA_BYTES && self.first_bytes < FIRST_BYTES {
            self.first_bytes += count;
            sys::acknowledge(descriptor);
        }
        self.set(
            descriptor,
            match count < SLOW_READ_BYTES || rest < MIN_BYTES {
                true => 1,
                false => rest.min(MAX_BYTES),
            },
        );
    }

    /// Wait no longer where it has been too long.
    pub fn check(&mut self, descriptor: i32, now_ns: u64) {
        if self.bytes > 1 && *self.until_ns.get_or_insert(now_ns + MAX_WAIT_NS) <= now_ns {
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
