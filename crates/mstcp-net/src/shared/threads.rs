//! State of a connection that threads may drive: who waits, who polls, what they want of the loop.

use rustix::io::Errno;
use std::sync::Arc;

use super::loop_waker::{LoopWaker, Requests};
use super::wake::{Interest, Readiness, Wake};

/// Which of a connection's two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// The one that waits for bytes.
    Reader,
    /// The one that waits for room.
    Writer,
}

impl Half {
    pub(super) const BOTH: [Self; 2] = [Self::Reader, Self::Writer];
}

/// What is known of one of the two threads.
#[derive(Debug, Default)]
pub(super) struct ThreadState {
    /// Made when it waits for the first time.
    pub(super) wake: Option<Wake>,
    pub(super) is_waiting: bool,
    pub(super) is_signalled: bool,
    /// Nobody waits there any more.
    pub(super) is_dismissed: bool,
}

/// How threads use a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadUse {
    /// Not recently: the loop has it back.
    Idle,
    /// Recently.
    Recent,
    /// A thread waits, and has for a while: it says when it leaves.
    Waiting,
}

/// A connection that threads may drive.
pub(super) struct Threads {
    loop_waker: Arc<LoopWaker>,
    id: u64,
    requests: Requests,
    /// Whether threads have the sockets, not the loop.
    pub(super) is_out: bool,
    /// The thread that polls the sockets now, and what it waits for.
    pub(super) leader: Option<Half>,
    pub(super) interest: Interest,
    /// The thread that is about to poll them again: no other is woken for that.
    pub(super) next_leader: Option<Half>,
    places: [ThreadState; 2],
    /// What may be queued when a writer that waits goes on.
    pub(super) few_bytes: usize,
    /// See [`super::reading::ReadTurn::read_for`].
    pub(super) passes: u8,
    used_ns: u64,
    /// How many waits there were, and had been when the loop looked last.
    waits: u64,
    seen_waits: u64,
    is_unwatched: bool,
    /// Made when the application asks for its descriptor.
    pub(super) readiness: Option<Readiness>,
}

impl Threads {
    pub(super) fn new(loop_waker: Arc<LoopWaker>, id: u64) -> Self {
        Self {
            loop_waker,
            id,
            requests: Requests::default(),
            is_out: false,
            leader: None,
            interest: Interest::default(),
            next_leader: None,
            places: [ThreadState::default(), ThreadState::default()],
            few_bytes: 0,
            passes: 0,
            used_ns: 0,
            waits: 0,
            seen_waits: 0,
            is_unwatched: false,
            readiness: None,
        }
    }

    pub(super) fn place(&mut self, side: Half) -> &mut ThreadState {
        &mut self.places[side as usize]
    }

    /// Ask something of the loop.
    pub(super) fn request(&mut self, ask: impl FnOnce(&mut Requests)) {
        let was_empty = self.requests.is_empty();
        ask(&mut self.requests);
        if was_empty {
            self.loop_waker.wake(self.id);
        }
    }

    pub(super) fn take_requests(&mut self) -> Requests {
        std::mem::take(&mut self.requests)
    }

    /// Have threads drive the connection from now on.
    pub(super) fn take_out(&mut self, now_ns: u64) {
        self.used_ns = now_ns;
        if !self.is_out {
            self.is_out = true;
            self.is_unwatched = false;
            self.request(|requests| requests.stand_by = true);
        }
    }

    /// Note that a thread's call returns.
    pub(super) fn leave(&mut self, now_ns: u64) {
        self.used_ns = now_ns;
        if std::mem::take(&mut self.is_unwatched) {
            self.request(|requests| requests.watch = true);
        }
        if self.readiness.is_some() && self.is_out {
            // Who waits by `select` is told by the loop, which has to watch the sockets for that.
            self.request(|requests| requests.attend = true);
        }
    }

    /// Note that a thread waits, and return the descriptor that ends its wait; the error is an errno.
    pub(super) fn begin_wait(&mut self, side: Half) -> Result<i32, Errno> {
        self.waits += 1;
        let place = self.place(side);
        if place.wake.is_none() {
            place.wake = Some(Wake::new()?);
        }
        place.is_waiting = true;
        Ok(place.wake.as_ref().map_or(-1, Wake::descriptor))
    }

    pub(super) fn end_wait(&mut self, side: Half, is_woken: bool, now_ns: u64) {
        self.used_ns = now_ns;
        let place = self.place(side);
        place.is_waiting = false;
        if is_woken || place.is_signalled {
            if let Some(wake) = &place.wake {
                wake.clear();
            }
        }
        place.is_signalled = false;
        if self.leader == Some(side) {
            self.leader = None;
        }
    }

    /// Wake a thread that waits.
    pub(super) fn signal(&mut self, side: Half) {
        let place = self.place(side);
        if place.is_waiting && !std::mem::replace(&mut place.is_signalled, true) {
            if let Some(wake) = &place.wake {
                wake.signal();
            }
        }
    }

    /// How threads use it; an idle one is the loop's again.
    pub(super) fn look(&mut self, now_ns: u64, idle_ns: u64) -> ThreadUse {
        if self.leader.is_some() {
            let is_long = self.seen_waits == self.waits;
            self.seen_waits = self.waits;
            self.is_unwatched = is_long;
            return if is_long {
                ThreadUse::Waiting
            } else {
                ThreadUse::Recent
            };
        }
        if !self.is_out || now_ns.saturating_sub(self.used_ns) >= idle_ns {
            self.is_out = false;
            return ThreadUse::Idle;
        }
        ThreadUse::Recent
    }
}
