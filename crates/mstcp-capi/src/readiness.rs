//! Descriptors that are readable while one direction of a connection is ready, for poll(2) and its kind.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::{eventfd, EventfdFlags};

/// An eventfd that a waker sets.
struct EventFdWaker(OwnedFd);

impl Wake for EventFdWaker {
    fn wake(self: Arc<Self>) {
        // It is set already if this fails.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}

/// A descriptor, once somebody has asked for it.
#[derive(Default)]
pub(crate) struct Readiness(OnceLock<Arc<EventFdWaker>>);

impl Readiness {
    /// Make the descriptor; [`Readiness::arm`] then keeps it up to date.
    pub(crate) fn descriptor(&self) -> std::io::Result<RawFd> {
        if self.0.get().is_none() {
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            // Another thread may have been faster.
            let _ = self.0.set(Arc::new(EventFdWaker(event)));
        }
        let event = self.0.get().map(|event| event.0.as_raw_fd());
        event.ok_or_else(|| std::io::Error::other("there is no descriptor"))
    }

    /// Have the descriptor say whether `poll` is ready, now and whenever that becomes so.
    pub(crate) fn arm(&self, poll: impl FnOnce(&mut Context<'_>) -> Poll<()>) {
        let Some(event) = self.0.get() else {
            return;
        };
        // Nothing is in it if this fails.
        let _ = rustix::io::read(&event.0, &mut [0_u8; 8]);
        let waker = Waker::from(Arc::clone(event));
        if poll(&mut Context::from_waker(&waker)).is_ready() {
            waker.wake();
        }
    }
}

struct NoopWaker;

impl Wake for NoopWaker {
    fn wake(self: Arc<Self>) {}
}

/// Poll once, and have nobody woken.
pub(crate) fn once<R>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<R>) -> Poll<R> {
    poll(&mut Context::from_waker(&Waker::from(Arc::new(NoopWaker))))
}
