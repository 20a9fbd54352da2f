//! The socket of a stream, closed by the driver or by its shell.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// A stream's socket; clones are the same one.
#[derive(Debug, Clone)]
pub struct StreamSocket(Owner);

#[derive(Debug, Clone)]
enum Owner {
    Here(Arc<OwnedFd>),
    Shell(RawFd),
}

impl StreamSocket {
    /// Have the shell close it from now on; false: it does already, or somebody else has a clone.
    pub(crate) fn release(&mut self) -> bool {
        let released = Self(Owner::Shell(self.as_raw_fd()));
        match std::mem::replace(self, released) {
            Self(Owner::Here(socket)) => match Arc::try_unwrap(socket) {
                Ok(socket) => drop(socket.into_raw_fd()),
                Err(socket) => {
                    *self = socket.into();
                    return false;
                }
            },
            Self(Owner::Shell(_)) => return false,
        }
        true
    }
}

impl From<Arc<OwnedFd>> for StreamSocket {
    fn from(socket: Arc<OwnedFd>) -> Self {
        Self(Owner::Here(socket))
    }
}

impl AsRawFd for StreamSocket {
    fn as_raw_fd(&self) -> RawFd {
        match &self.0 {
            Owner::Here(socket) => socket.as_raw_fd(),
            Owner::Shell(descriptor) => *descriptor,
        }
    }
}

impl AsFd for StreamSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.0 {
            Owner::Here(socket) => socket.as_fd(),
            // SAFETY: the shell closes it once the driver has said `Action::Unwatch`.
            Owner::Shell(descriptor) => unsafe { BorrowedFd::borrow_raw(*descriptor) },
        }
    }
}
