//! How threads tell a loop which connections want it.

use rustix::io::Errno;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use super::wake::Wake;

/// Wakes an event loop, and names the connections that want it. One serves all connections of a loop.
#[derive(Debug)]
pub struct LoopWaker {
    wake: Wake,
    pending: Mutex<Vec<u64>>,
}

impl LoopWaker {
    /// Make one; the error is an errno.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            wake: Wake::new()?,
            pending: Mutex::default(),
        })
    }

    /// What the loop watches: readable once a connection has called it.
    pub fn descriptor(&self) -> RawFd {
        self.wake.descriptor()
    }

    /// Return which connections have called since the last call.
    pub fn take(&self) -> Vec<u64> {
        self.wake.clear();
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn wake(&self, id: u64) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        pending.push(id);
        if pending.len() == 1 {
            self.wake.signal();
        }
    }
}

/// What a connection wants of its loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Requests {
    /// Watch the sockets no more: threads have them.
    pub stand_by: bool,
    /// See to what threads came upon; see [`super::SharedEndpoint::claim`].
    pub attend: bool,
    /// Look again from time to time whether threads still use the connection.
    pub watch: bool,
}

impl Requests {
    pub(super) fn is_empty(self) -> bool {
        self == Self::default()
    }
}
