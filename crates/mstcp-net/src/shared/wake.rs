//! Waits for sockets, and wakes a thread that waits.

use rustix::io::Errno;

use crate::sys::last_errno;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use mstcp_proto::StreamSet;

use crate::policy::StreamSockets;

/// Ends a thread's wait from another thread.
#[derive(Debug)]
pub(super) struct Wake {
    read: OwnedFd,
    #[cfg(not(target_os = "linux"))]
    write: OwnedFd,
}

impl Wake {
    /// Make one; the error is an errno.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> Result<Self, Errno> {
        use rustix::event::{eventfd, EventfdFlags};
        let read = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { read })
    }

    /// Make one; the error is an errno.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn new() -> Result<Self, Errno> {
        let pair = std::os::unix::net::UnixStream::pair();
        let (read, write) =
            pair.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let (read, write) = (OwnedFd::from(read), OwnedFd::from(write));
        rustix::io::ioctl_fionbio(&read, true)?;
        rustix::io::ioctl_fionbio(&write, true)?;
        Ok(Self { read, write })
    }

    /// End the wait, or the next.
    pub(super) fn signal(&self) {
        #[cfg(target_os = "linux")]
        let end = &self.read;
        #[cfg(not(target_os = "linux"))]
        let end = &self.write;
        // What is full has ended the wait already.
        let _ = rustix::io::write(end, &1_u64.to_ne_bytes());
    }

    /// Forget what was signalled.
    pub(super) fn clear(&self) {
        // Nothing was if this fails.
        let _ = rustix::io::read(&self.read, &mut [0_u8; 64]);
    }

    pub(super) fn descriptor(&self) -> RawFd {
        self.read.as_raw_fd()
    }
}

/// A descriptor that is readable as long as something is there, for `select` and its kind.
#[derive(Debug)]
pub struct Readiness {
    wake: Wake,
    is_set: bool,
}

impl Readiness {
    /// Make one that is not readable; the error is an errno.
    pub fn new() -> Result<Self, Errno> {
        Ok(Self {
            wake: Wake::new()?,
            is_set: false,
        })
    }

    /// The descriptor; nothing is to be read from it.
    pub fn descriptor(&self) -> RawFd {
        self.wake.descriptor()
    }

    /// Make it readable, or not.
    pub fn set(&mut self, is_set: bool) {
        if std::mem::replace(&mut self.is_set, is_set) != is_set {
            match is_set {
                true => self.wake.signal(),
                false => self.wake.clear(),
            }
        }
    }
}

/// What a leader waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Interest {
    pub(super) readable: StreamSet,
    pub(super) writable: StreamSet,
    pub(super) due_ns: Option<u64>,
}

impl Interest {
    /// Whether one who waits for this notices the other in time.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_early = |due_ns| self.due_ns.is_some_and(|own_ns| own_ns <= due_ns);
        self.readable == other.readable
            && self.writable == other.writable
            && other.due_ns.map_or(true, is_early)
    }
}

/// What has come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Ready {
    pub(super) readable: StreamSet,
    pub(super) writable: StreamSet,
    pub(super) is_woken: bool,
    pub(super) is_interrupted: bool,
    /// Nothing came in time.
    pub(super) is_late: bool,
}

/// The descriptors of a wait.
#[derive(Debug, Default)]
pub(super) struct PollSet {
    entries: Vec<libc::pollfd>,
    streams: Vec<usize>,
}

impl PollSet {
    /// Wait for a wake-up, and for a leader also for the streams' sockets.
    pub(super) fn new(wake: RawFd, interest: &Interest, sockets: &StreamSockets) -> Self {
        Self::of(wake, interest, |stream| sockets.descriptor(stream))
    }

    /// As above, of other descriptors; those below 0 are not waited for.
    pub(super) fn of(
        wake: RawFd,
        interest: &Interest,
        descriptor: impl Fn(usize) -> RawFd,
    ) -> Self {
        let mut set = Self::default();
        set.push(wake, libc::POLLIN, usize::MAX);
        for stream in interest.readable.or(interest.writable).iter() {
            let mut events = 0;
            if interest.readable.contains(stream) {
                events |= libc::POLLIN;
            }
            if interest.writable.contains(stream) {
                events |= libc::POLLOUT;
            }
            set.push(descriptor(stream), events, stream);
        }
        set
    }

    fn push(&mut self, fd: RawFd, events: i16, stream: usize) {
        self.entries.push(libc::pollfd {
            fd,
            events,
            revents: 0,
        });
        self.streams.push(stream);
    }

    /// Wait for this many nanoseconds at most; none: for ever.
    pub(super) fn wait(&mut self, for_ns: Option<u64>) -> Ready {
        let milliseconds = for_ns.map_or(-1, |ns| {
            i32::try_from(ns.div_ceil(1_000_000)).unwrap_or(i32::MAX)
        });
        // SAFETY: the entries are ours and as many as said.
        let count = unsafe {
            libc::poll(
                self.entries.as_mut_ptr(),
                self.entries.len() as libc::nfds_t,
                milliseconds,
            )
        };
        let mut ready = Ready {
            is_interrupted: count < 0 && last_errno() == Errno::INTR,
            is_late: count == 0,
            ..Ready::default()
        };
        if count <= 0 {
            return ready;
        }
        for (entry, stream) in self.entries.iter().zip(&self.streams) {
            let broken = entry.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
            if *stream == usize::MAX {
                ready.is_woken |= entry.revents != 0;
                continue;
            }
            if broken || entry.revents & libc::POLLIN != 0 {
                ready.readable.insert(*stream);
            }
            if broken || entry.revents & libc::POLLOUT != 0 {
                ready.writable.insert(*stream);
            }
        }
        ready
    }
}
