//! How threads tell a loop which connections want it.

use rustix::io::Errno;
use std::os::fd::RawFd;
use std::sync::{Mutex, PoisonError};

use super::wake::Wake;

/// Wakes an event loop, and says which connections rang. One bell serves all connections of a loop.
#[derive(Debug)]
pub struct Bell {
    wake: Wake,
    rung: Mutex<Vec<u64>>,
}

impl Bell {
    /// Make one; the error is an errno.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            wake: Wake::new()?,
            rung: Mutex::default(),
        })
    }

    /// What the loop watches: readable when somebody has rung.
    pub fn descriptor(&self) -> RawFd {
        self.wake.descriptor()
    }

    /// Which connections have rung since this was asked last.
    pub fn take(&self) -> Vec<u64> {
        self.wake.clear();
        std::mem::take(&mut *self.rung.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn ring(&self, id: u64) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        rung.push(id);
        if rung.len() == 1 {
            self.wake.signal();
        }
    }
}

/// A connection's string to the bell: what it wants of the loop.
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
