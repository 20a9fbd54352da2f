//! Threads that send and read the large frames of a connection, several streams at once.
//!
//! A connection is driven by one thread, which is enough until copying to and from the kernel takes all of that thread's time. Then
//! worker threads take the sockets over: each has some of the streams, waits for them itself, and has the connection locked only
//! while it asks what is next and tells what came of it, never during a system call that copies. What the application waits for
//! is told to its threads, or to the loop by the bell. When nothing large moves any more the workers end.

use rustix::io::Errno;
use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::io::IoSlice;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::{Arc, Weak};

use mstcp_proto::{Error, StreamSet};

use super::hiring;
use super::registry::{self, Registered};
use super::wake::{Interest, PollSet, Ready, Wake};
use super::{Clock, Locked, SharedEndpoint, State};
use crate::endpoint::Endpoint;
use crate::inbox::{Count, Fetched, Plan};
use crate::memory::{SpareBlock, SpareMemory};
use crate::sys;

/// Workers end that have moved nothing for so long, in nanoseconds.
const IDLE_NS: u64 = 20_000_000;
/// And where they need not have begun: none was held up for so long.
const UNNEEDED_NS: u64 = 500_000_000;
/// A worker is held up that waits for a processor for so much of its time.
const HELD_UP: f64 = 0.1;

/// What is known of a connection's workers, while it is locked.
#[derive(Debug)]
pub(super) struct Workers {
    seats: Vec<Seat>,
    is_ending: bool,
    /// When anything was moved last, and a worker was held up last.
    moved_ns: u64,
    held_up_ns: u64,
}

/// One worker.
#[derive(Debug)]
struct Seat {
    wake: Arc<Wake>,
    is_waiting: bool,
    is_signalled: bool,
    has_left: bool,
    /// What it waits for.
    interest: Interest,
}

impl Workers {
    /// Start so many; none where the system has no threads or descriptors left, or the process is about to be copied.
    pub(super) fn start(shared: &Weak<SharedEndpoint>, count: usize, now_ns: u64) -> Option<Self> {
        let wakes: Result<Vec<_>, Errno> = (0..count).map(|_| Wake::new().map(Arc::new)).collect();
        let wakes = wakes.ok()?;
        let clock = Clock::new(now_ns);
        let workers = wakes.iter().enumerate().map(|(seat, wake)| {
            let mut worker = Worker {
                shared: Weak::clone(shared),
                seat,
                clock,
                wake: Arc::clone(wake),
                hands: HashMap::new(),
                readable: StreamSet::default(),
                has_sent: false,
            };
            move |registered: Registered| {
                while worker.pass() {}
                drop(worker);
                drop(registered);
            }
        });
        let started = registry::start(shared, workers.collect());
        let seats = wakes.into_iter().map(|wake| Seat {
            wake,
            is_waiting: false,
            is_signalled: false,
            has_left: false,
            interest: Interest::default(),
        });
        (started > 0).then(|| Self {
            seats: seats.take(started).collect(),
            is_ending: false,
            moved_ns: now_ns,
            held_up_ns: now_ns,
        })
    }

    /// The streams of a worker, of those that there are.
    fn streams_of(&self, seat: usize, all: StreamSet) -> StreamSet {
        let mut streams = StreamSet::default();
        for stream in all.iter().filter(|slot| slot % self.seats.len() == seat) {
            streams.insert(stream);
        }
        streams
    }

    /// Have all of them end.
    pub(super) fn end(&mut self) {
        self.is_ending = true;
    }

    /// What a worker has to wait for.
    fn interest_of(&self, seat: usize, endpoint: &Endpoint) -> Interest {
        let own = |streams| self.streams_of(seat, streams);
        Interest {
            readable: own(endpoint.core.readable()),
            writable: own(endpoint.core.blocked()).without(endpoint.being_sent()),
            due_ns: endpoint.timeout_ns(),
        }
    }

    /// Wake those that have something to do.
    pub(super) fn signal(&mut self, endpoint: &Endpoint, is_over: bool) {
        for seat in 0..self.seats.len() {
            let interest = self.seats[seat].interest;
            if !self.seats[seat].is_waiting || self.seats[seat].is_signalled {
                continue;
            }
            let must_end = self.is_ending || is_over;
            let has_due = !self.streams_of(seat, endpoint.due()).is_empty();
            if must_end || has_due || !interest.covers(&self.interest_of(seat, endpoint)) {
                self.seats[seat].is_signalled = true;
                self.seats[seat].wake.signal();
            }
        }
    }
}

/// A worker's own descriptor of a stream's socket: the shell may close its own at any time.
#[derive(Debug)]
struct Hand {
    incarnation: u32,
    socket: OwnedFd,
    /// It ended or broke: the loop sees to it.
    is_done: bool,
}

/// What a worker does next, the connection not being locked.
enum Task {
    Send(usize),
    Read(usize, Plan, SpareMemory),
    Wait(PollSet, u64),
}

struct Worker {
    shared: Weak<SharedEndpoint>,
    seat: usize,
    clock: Clock,
    wake: Arc<Wake>,
    hands: HashMap<usize, Hand>,
    readable: StreamSet,
    /// Sending and reading take turns.
    has_sent: bool,
}

impl Worker {
    /// Do one thing; false at the end.
    fn pass(&mut self) -> bool {
        let Some(shared) = self.shared.upgrade() else {
            return false;
        };
        let mut locked = shared.lock();
        let now_ns = self.clock.now_ns();
        let goes_on = locked.has_work(now_ns) && locked.transmit_all(now_ns).is_ok();
        let Some(task) = goes_on.then(|| self.next(&mut locked, now_ns)).flatten() else {
            self.hands.clear();
            locked.leave_seat(self.seat, now_ns);
            return false;
        };
        match task {
            Task::Send(stream) => self.send(locked, &shared, stream),
            Task::Read(stream, plan, memory) => self.read(locked, &shared, (stream, plan), memory),
            Task::Wait(set, for_ns) => {
                drop(locked);
                drop(shared);
                self.wait(set, for_ns);
            }
        }
        true
    }

    fn next(&mut self, locked: &mut Locked<'_>, now_ns: u64) -> Option<Task> {
        let alive = locked.core.alive();
        let streams = locked.workers()?.streams_of(self.seat, alive);
        self.take_hands(locked, streams).ok()?;
        let idle = |slot: &usize| self.hands.get(slot).is_some_and(|hand| !hand.is_done);
        let due = locked.due().and(streams).iter().find(idle);
        let readable = self.readable.and(streams).and(locked.core.readable());
        let readable = readable.iter().find(idle);
        match (due, readable) {
            (Some(stream), None) => Some(Task::Send(stream)),
            (Some(stream), Some(_)) if !self.has_sent => Some(Task::Send(stream)),
            (_, Some(stream)) => {
                let plan = locked.begin_read(stream);
                let spare = plan.is_whole_block().then(|| locked.take_spare());
                Some(Task::Read(stream, plan, SpareMemory(spare.flatten())))
            }
            (None, None) => self.begin_wait(locked, now_ns),
        }
    }

    /// Have a descriptor of each of the streams, and of no other; the error is an errno.
    fn take_hands(&mut self, locked: &mut Locked<'_>, streams: StreamSet) -> Result<(), Errno> {
        self.hands.retain(|slot, hand| {
            streams.contains(*slot) && hand.incarnation == locked.incarnation(*slot)
        });
        for slot in streams.iter() {
            if let Entry::Vacant(place) = self.hands.entry(slot) {
                place.insert(Hand {
                    incarnation: locked.incarnation(slot),
                    socket: sys::duplicate(locked.sockets().descriptor(slot))?,
                    is_done: false,
                });
            }
        }
        Ok(())
    }

    fn descriptor(&self, stream: usize) -> RawFd {
        let hand = self.hands.get(&stream);
        hand.map_or(-1, |hand| hand.socket.as_raw_fd())
    }

    fn incarnation(&self, stream: usize) -> u32 {
        self.hands.get(&stream).map_or(0, |hand| hand.incarnation)
    }

    fn send(&mut self, mut locked: Locked<'_>, shared: &SharedEndpoint, stream: usize) {
        self.has_sent = true;
        let pieces = locked.begin_send(stream);
        drop(locked);
        let offered = pieces.iter().map(|piece| piece.len()).sum();
        let slices = pieces.iter().take(sys::MAX_PIECES);
        let slices: Vec<_> = slices.map(|piece| IoSlice::new(piece)).collect();
        let result = sys::send(self.descriptor(stream), &slices);
        drop(slices);
        drop(pieces);
        let mut locked = shared.lock();
        if locked.is_still(stream, self.incarnation(stream)) {
            let now_ns = self.clock.now_ns();
            let is_done = !locked.settle_send(stream, offered, result, now_ns);
            self.note_done(stream, is_done);
        }
    }

    fn read(
        &mut self,
        locked: Locked<'_>,
        shared: &SharedEndpoint,
        (stream, plan): (usize, Plan),
        mut memory: SpareMemory,
    ) {
        self.has_sent = false;
        drop(locked);
        let Ok(fetched) = plan.read(&mut memory, self.descriptor(stream));
        let mut locked = shared.lock();
        if let Some(spare) = memory.0 {
            locked.add_spare(spare);
        }
        if !locked.is_still(stream, self.incarnation(stream)) {
            self.readable.remove(stream);
            return;
        }
        let now_ns = self.clock.now_ns();
        let (has_more, is_done) = locked.settle_read(stream, fetched, now_ns);
        if !has_more {
            self.readable.remove(stream);
        }
        self.note_done(stream, is_done);
    }

    fn note_done(&mut self, stream: usize, is_done: bool) {
        if let Some(hand) = self.hands.get_mut(&stream) {
            hand.is_done |= is_done;
        }
    }

    fn begin_wait(&mut self, locked: &mut Locked<'_>, now_ns: u64) -> Option<Task> {
        let State { endpoint, loan } = &mut *locked.0;
        let workers = loan.as_mut()?.workers.as_mut()?;
        let interest = workers.interest_of(self.seat, endpoint);
        let seat = &mut workers.seats[self.seat];
        seat.interest = interest;
        seat.is_waiting = true;
        let is_done = |slot| self.hands.get(&slot).map_or(true, |hand| hand.is_done);
        let set = PollSet::of(self.wake.descriptor(), &interest, |slot| {
            if is_done(slot) {
                -1
            } else {
                self.descriptor(slot)
            }
        });
        let due_ns = interest
            .due_ns
            .map_or(IDLE_NS, |due_ns| due_ns.saturating_sub(now_ns));
        Some(Task::Wait(set, due_ns.min(IDLE_NS)))
    }

    fn wait(&mut self, mut set: PollSet, for_ns: u64) {
        let Ready {
            readable,
            writable,
            is_woken,
            ..
        } = set.wait(Some(for_ns));
        let Some(shared) = self.shared.upgrade() else {
            return;
        };
        let mut locked = shared.lock();
        self.readable = readable;
        for stream in writable.and(locked.core.alive()).iter() {
            // The stream is there.
            let _ = locked.on_writable(stream);
        }
        if let Some(workers) = locked.workers() {
            let seat = &mut workers.seats[self.seat];
            seat.is_waiting = false;
            if std::mem::take(&mut seat.is_signalled) || is_woken {
                self.wake.clear();
            }
        }
    }
}

impl Locked<'_> {
    fn workers(&mut self) -> Option<&mut Workers> {
        self.0.loan.as_mut()?.workers.as_mut()
    }

    /// Whether workers have the sockets.
    pub fn has_workers(&self) -> bool {
        self.0
            .loan
            .as_ref()
            .is_some_and(|loan| loan.workers.is_some())
    }

    fn take_spare(&mut self) -> Option<Box<dyn SpareBlock>> {
        self.0.loan.as_mut()?.spare.pop()
    }

    /// Have workers read to a block.
    pub fn add_spare(&mut self, block: Box<dyn SpareBlock>) {
        if let Some(loan) = &mut self.0.loan {
            if loan.workers.is_some() {
                loan.spare.push(block);
            }
        }
    }

    /// How many blocks workers have left; none without workers.
    pub fn spare_blocks(&self) -> Option<usize> {
        let loan = self.0.loan.as_ref()?;
        loan.workers.is_some().then_some(loan.spare.len())
    }

    /// Whether workers are to go on.
    fn has_work(&mut self, now_ns: u64) -> bool {
        let is_given_up = self.core.closed_by_peer().is_some();
        let Some(loan) = &mut self.0.loan else {
            return false;
        };
        let must_end = loan.is_over || is_given_up || loan.findings.refused.is_some();
        let Some(workers) = &mut loan.workers else {
            return false;
        };
        if hiring::shares(now_ns).is_some_and(|(_, waits)| waits >= HELD_UP) {
            workers.held_up_ns = now_ns;
        }
        let is_idle = now_ns.saturating_sub(workers.moved_ns) >= IDLE_NS;
        let has_room = now_ns.saturating_sub(workers.held_up_ns) >= UNNEEDED_NS;
        let is_unneeded = loan.hiring.is_automatic() && has_room;
        workers.is_ending |= must_end || is_idle || is_unneeded;
        !workers.is_ending
    }

    /// Note that a worker ends; with the last the loop or the application's threads have the sockets again.
    fn leave_seat(&mut self, seat: usize, now_ns: u64) {
        let State { endpoint, loan } = &mut *self.0;
        let Some(loan) = loan else {
            return;
        };
        if let Some(workers) = &mut loan.workers {
            workers.is_ending = true;
            workers.seats[seat].has_left = true;
            if workers.seats.iter().any(|seat| !seat.has_left) {
                return;
            }
        }
        loan.workers = None;
        loan.hiring.look(endpoint, now_ns);
        loan.spare.clear();
        endpoint.share_work(false);
        loan.request(|requests| requests.attend = true);
    }

    /// Whether a stream is there that was before, and its socket may be asked things.
    fn is_still(&self, stream: usize, incarnation: u32) -> bool {
        !self.is_over()
            && self.core.alive().contains(stream)
            && self.incarnation(stream) == incarnation
    }

    fn note_moved(&mut self, now_ns: u64) {
        if let Some(workers) = self.workers() {
            workers.moved_ns = now_ns;
        }
    }

    /// Note what a socket took of a frame; false if the stream broke.
    fn settle_send(&mut self, stream: usize, offered: usize, result: Count, now_ns: u64) -> bool {
        let count = result.unwrap_or(0);
        if count > 0 {
            self.note_moved(now_ns);
        }
        // What is reported was offered.
        let _ = self.finish_send(stream, offered, count);
        match result {
            Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
            Err(errno) => {
                self.found(|findings| findings.broken.push((stream, errno)));
                false
            }
        }
    }

    /// Take what was read; whether there may be more, and whether the stream ended or broke.
    fn settle_read(&mut self, stream: usize, fetched: Fetched, now_ns: u64) -> (bool, bool) {
        match self.finish_read(stream, fetched) {
            Ok((_, Ok(0))) => {
                self.found(|findings| findings.ended.insert(stream));
                (false, true)
            }
            Ok((asked, Ok(count))) => {
                self.note_moved(now_ns);
                (count >= asked, false)
            }
            Ok((_, Err(Errno::AGAIN | Errno::INTR))) => (false, false),
            Ok((_, Err(errno))) => {
                self.found(|findings| findings.broken.push((stream, errno)));
                (false, true)
            }
            Err(error) => {
                self.refuse(error);
                (false, true)
            }
        }
    }

    fn refuse(&mut self, error: Error) {
        self.found(|findings| findings.refused = Some(error));
    }

    /// Note what is the loop's to act on.
    fn found(&mut self, note: impl FnOnce(&mut super::Findings)) {
        if let Some(loan) = &mut self.0.loan {
            note(&mut loan.findings);
            loan.request(|requests| requests.attend = true);
        }
    }
}
