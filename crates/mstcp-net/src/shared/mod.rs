//! A connection that an event loop and the threads which wait for it drive in turn.
//!
//! A thread that waits polls the sockets itself: it *leads*. What comes then needs no other thread to reach it. A second thread
//! that waits (one may read while another writes) follows: it sleeps until the leader has something for it or leaves.
//! Meanwhile the loop stands by. It takes the connection back when no thread has used it for a while, and applies the driver's
//! actions: what streams come and go, and the end.
//!
//! Threads ask the loop by a [`LoopWaker`], which takes no lock of an interpreter and cannot be interrupted halfway.

mod loop_waker;
mod reading;
mod threads;
mod wake;

use rustix::io::Errno;
use std::ops::{Deref, DerefMut};
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use mstcp_proto::{Connection, LocalError};

use crate::driver::Driver;
use crate::inbox::ReadTarget;

pub use loop_waker::{LoopWaker, Requests};
pub use threads::ThreadUse;
pub use wake::Readiness;

use reading::ReadTurn;
use threads::{Half, Threads};
use wake::{Interest, PollSet, Ready};

/// The shell's monotonic clock, read on.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    then_ns: u64,
    then: Instant,
}

impl Clock {
    /// The clock that shows `now_ns` now.
    pub fn new(now_ns: u64) -> Self {
        let then = Instant::now();
        Self {
            then_ns: now_ns,
            then,
        }
    }

    fn now_ns(&self) -> u64 {
        self.then_ns + self.then.elapsed().as_nanos() as u64
    }
}

/// What a thread waits for.
#[derive(Debug)]
pub enum WaitFor<'a> {
    /// Bytes, to be received here.
    Bytes(ReadTarget<'a>),
    /// Bytes, to be copied here and received later.
    Peek(ReadTarget<'a>),
    /// Room: no more than `most` queued; once it had to wait, no more than `few`. The driver pauses above its own limit likewise:
    /// a wish for that much, refused, is followed by [`crate::driver::Action::ResumeWriting`].
    Room {
        /// Bytes that may be queued.
        most: usize,
        /// Bytes that may be left when the wait ends.
        few: usize,
    },
}

impl WaitFor<'_> {
    fn side(&self) -> Half {
        match self {
            Self::Bytes(_) | Self::Peek(_) => Half::Reader,
            Self::Room { .. } => Half::Writer,
        }
    }
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitOutcome {
    /// This many bytes came, or there is room.
    Done(usize),
    /// All of the peer's bytes have been received.
    Ended,
    /// The connection is closed.
    Over,
    /// Nothing, in time.
    TimedOut,
    /// See [`SharedDriver::dismiss`].
    Dismissed,
}

/// Why a wait failed.
#[derive(Debug)]
pub enum WaitError<E> {
    /// The system refused what is needed to wait: an errno.
    System(Errno),
    /// A misuse of the core.
    Core(LocalError),
    /// What the caller's own check raised.
    Interrupted(E),
}

impl<E> From<LocalError> for WaitError<E> {
    fn from(error: LocalError) -> Self {
        Self::Core(error)
    }
}

struct State {
    driver: Driver,
    /// None: threads never use it, as with asyncio. Boxed, for such connections to stay small.
    threads: Option<Box<Threads>>,
}

/// See the module.
pub struct SharedDriver(Mutex<State>);

/// The connection, for one thread at a time. Those that wait are woken, where that concerns them, when this is dropped.
pub struct DriverGuard<'a>(MutexGuard<'a, State>);

impl SharedDriver {
    /// Share a connection.
    pub fn new(driver: Driver) -> Self {
        let threads = None;
        Self(Mutex::new(State { driver, threads }))
    }

    /// Wait for the connection: a thread that has it gives it back within about a millisecond.
    pub fn lock(&self) -> DriverGuard<'_> {
        DriverGuard(self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The connection, unless another thread has it.
    pub fn try_lock(&self) -> Option<DriverGuard<'_>> {
        match self.0.try_lock() {
            Ok(state) => Some(DriverGuard(state)),
            Err(TryLockError::Poisoned(state)) => Some(DriverGuard(state.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Have a wish fulfilled. `between` is called after each wait that brought something, but not that, or was interrupted.
    ///
    /// # Errors
    /// See [`WaitError`].
    pub fn wait<E>(
        &self,
        wait_for: &mut WaitFor<'_>,
        clock: &Clock,
        until_ns: Option<u64>,
        mut between: impl FnMut() -> Result<(), E>,
    ) -> Result<WaitOutcome, WaitError<E>> {
        let side = wait_for.side();
        let result = loop {
            match self.turn(wait_for, clock, until_ns) {
                Ok(None) => {
                    if let Err(error) = between() {
                        break Err(WaitError::Interrupted(error));
                    }
                }
                Ok(Some(outcome)) => break Ok(outcome),
                Err(error) => break Err(error),
            }
        };
        self.lock().leave(side, clock.now_ns());
        result
    }

    /// Have a wish fulfilled as far as that needs no wait; the loop goes on driving the connection.
    pub fn attempt(
        &self,
        wait_for: &mut WaitFor<'_>,
        now_ns: u64,
    ) -> Result<WaitOutcome, LocalError> {
        let mut locked = self.lock();
        let outcome = locked.fulfil(wait_for, now_ns)?;
        if let Some(threads) = &mut locked.0.threads {
            let is_held = threads.is_out && threads.leader.is_none();
            if is_held || matches!(outcome, Some(WaitOutcome::Done(1..))) {
                threads.request(|requests| requests.attend = true);
            }
        }
        Ok(outcome.unwrap_or(WaitOutcome::TimedOut))
    }

    /// Write by `write`, and send. A caller that does not wait leaves the rest to the loop.
    pub fn write(
        &self,
        now_ns: u64,
        waits: bool,
        write: impl FnOnce(&mut Connection) -> Result<(), LocalError>,
    ) -> Result<(), LocalError> {
        let mut locked = self.lock();
        write(locked.core())?;
        if let Some(threads) = &mut locked.0.threads {
            if waits {
                threads.take_out(now_ns);
            } else {
                threads.request(|requests| requests.attend = true);
            }
        }
        locked.settle_all(now_ns);
        if let Some(threads) = &mut locked.0.threads {
            threads.leave(now_ns);
        }
        Ok(())
    }

    /// Wait once; none: nothing to return yet.
    fn turn<E>(
        &self,
        wait_for: &mut WaitFor<'_>,
        clock: &Clock,
        until_ns: Option<u64>,
    ) -> Result<Option<WaitOutcome>, WaitError<E>> {
        let side = wait_for.side();
        let mut locked = self.lock();
        let now_ns = clock.now_ns();
        let Some(threads) = &mut locked.0.threads else {
            return Ok(Some(WaitOutcome::Over));
        };
        threads.take_out(now_ns);
        let is_dismissed = threads.place(side).is_dismissed;
        if let Some(outcome) = locked.fulfil(wait_for, now_ns)? {
            return Ok(Some(outcome));
        }
        if is_dismissed {
            return Ok(Some(WaitOutcome::Dismissed));
        }
        if until_ns.is_some_and(|until_ns| until_ns <= now_ns) {
            return Ok(Some(WaitOutcome::TimedOut));
        }
        let (mut set, due_ns) = locked.begin_wait(side).map_err(WaitError::System)?;
        let until_ns = match (until_ns, due_ns) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        drop(locked);
        let ready = set.wait(until_ns.map(|until_ns| until_ns.saturating_sub(now_ns)));
        let mut locked = self.lock();
        locked.end_wait(side, ready, wait_for, clock.now_ns())
    }

    /// Allow threads to drive the connection; `id` is what it rings the loop's loop_waker with.
    pub fn hand_over(&self, loop_waker: Arc<LoopWaker>, id: u64) {
        self.lock().0.threads = Some(Box::new(Threads::new(loop_waker, id)));
    }

    /// Have a thread that waits for bytes, or for room, return to its caller, and none wait any more.
    pub fn dismiss(&self, readers: bool, writers: bool) {
        if let Some(threads) = &mut self.lock().0.threads {
            for (side, is_meant) in [(Half::Reader, readers), (Half::Writer, writers)] {
                if is_meant {
                    threads.place(side).is_dismissed = true;
                    threads.signal(side);
                }
            }
        }
    }

    /// A descriptor that is readable while bytes are in order, or something has ended, for `select` and its kind; an errno if the
    /// system has none left, or threads may not use the connection.
    pub fn readable_descriptor(&self) -> Result<RawFd, Errno> {
        let mut locked = self.lock();
        let threads = locked.0.threads.as_mut().ok_or(Errno::BADF)?;
        if threads.readiness.is_none() {
            threads.readiness = Some(Readiness::new()?);
        }
        let descriptor = threads.readiness.as_ref().map(Readiness::descriptor);
        descriptor.ok_or(Errno::BADF)
    }

    /// What the loop is asked for.
    pub fn take_requests(&self) -> Requests {
        let mut locked = self.lock();
        let threads = locked.0.threads.as_mut();
        threads.map_or_else(Requests::default, |threads| threads.take_requests())
    }
}

impl Deref for DriverGuard<'_> {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        &self.0.driver
    }
}

impl DerefMut for DriverGuard<'_> {
    fn deref_mut(&mut self) -> &mut Driver {
        &mut self.0.driver
    }
}

impl Drop for DriverGuard<'_> {
    fn drop(&mut self) {
        let State { driver, threads } = &mut *self.0;
        let Some(threads) = threads else {
            return;
        };
        if driver.result().is_some() {
            threads.is_out = false;
        }
        for side in Half::BOTH {
            if threads.place(side).is_waiting && concerns(threads, driver, side) {
                threads.signal(side);
            }
        }
        let is_over = driver.result().is_some();
        let has_end = is_over || threads.place(Half::Reader).is_dismissed || driver.is_ended();
        if let Some(readiness) = &mut threads.readiness {
            readiness.set(has_end || driver.ready_bytes() > 0);
        }
    }
}

/// Whether a thread that waits has something to do.
fn concerns(threads: &Threads, driver: &Driver, side: Half) -> bool {
    if driver.result().is_some() {
        return true;
    }
    let is_fulfilled = match side {
        Half::Reader => driver.ready_bytes() > 0 || driver.is_ended(),
        Half::Writer => driver.queued_bytes() <= threads.few_bytes,
    };
    let must_act = match threads.leader {
        Some(leader) => leader == side && !threads.interest.covers(&interest(driver)),
        None => threads.next_leader.map_or(true, |next| next == side),
    };
    is_fulfilled || must_act
}

/// What a leader has to wait for.
fn interest(driver: &Driver) -> Interest {
    let (readable, writable) = driver.interest();
    Interest {
        readable,
        writable,
        due_ns: driver.timeout_ns(),
    }
}

impl DriverGuard<'_> {
    /// Whether threads have the sockets, and the loop is to stand by.
    pub fn is_out(&self) -> bool {
        self.0
            .threads
            .as_ref()
            .is_some_and(|threads| threads.is_out)
    }

    /// How threads use the connection; the loop has one back that they have not used for `idle_ns`.
    pub fn look(&mut self, now_ns: u64, idle_ns: u64) -> ThreadUse {
        let threads = self.0.threads.as_mut();
        threads.map_or(ThreadUse::Idle, |threads| threads.look(now_ns, idle_ns))
    }

    /// Take the connection, unless a thread leads just now; true if the loop has it.
    pub fn claim(&mut self) -> bool {
        let Some(threads) = &mut self.0.threads else {
            return true;
        };
        threads.is_out &= threads.leader.is_some();
        !threads.is_out
    }

    fn leave(&mut self, side: Half, now_ns: u64) {
        if let Some(threads) = &mut self.0.threads {
            if threads.next_leader == Some(side) {
                threads.next_leader = None;
            }
            threads.leave(now_ns);
        }
    }

    fn is_over(&self) -> bool {
        self.0.threads.is_none() || self.result().is_some()
    }

    /// What is to be returned for a wish now, if anything.
    fn fulfil(
        &mut self,
        wait_for: &mut WaitFor<'_>,
        now_ns: u64,
    ) -> Result<Option<WaitOutcome>, LocalError> {
        match wait_for {
            WaitFor::Bytes(target) => {
                if self.ready_bytes() > 0 {
                    self.endpoint().take_into(target);
                    self.note_taken_elsewhere();
                    self.settle_all(now_ns);
                }
                if target.filled() > 0 {
                    return Ok(Some(WaitOutcome::Done(target.filled())));
                }
                if self.is_ended() {
                    return Ok(Some(WaitOutcome::Ended));
                }
            }
            WaitFor::Peek(target) => {
                self.endpoint().peek_into(target);
                if target.filled() > 0 {
                    return Ok(Some(WaitOutcome::Done(target.filled())));
                }
                if self.is_ended() {
                    return Ok(Some(WaitOutcome::Ended));
                }
            }
            WaitFor::Room { most, few } => {
                if !self.is_over() && self.queued_bytes() <= *most {
                    return Ok(Some(WaitOutcome::Done(0)));
                }
                *most = *few;
                if let Some(threads) = &mut self.0.threads {
                    threads.few_bytes = *few;
                }
            }
        }
        Ok(self.is_over().then_some(WaitOutcome::Over))
    }

    /// Begin to wait: as the leader, if there is none and nothing for the loop to see to first.
    fn begin_wait(&mut self, side: Half) -> Result<(PollSet, Option<u64>), Errno> {
        let State { driver, threads } = &mut *self.0;
        let threads = threads.as_mut().ok_or(Errno::BADF)?;
        let wake = threads.begin_wait(side)?;
        let mut wanted = Interest::default();
        if threads.leader.is_none() {
            threads.leader = Some(side);
            threads.next_leader = Some(side);
            wanted = interest(driver);
            threads.interest = wanted;
        }
        let set = PollSet::new(wake, &wanted, driver.endpoint().sockets());
        Ok((set, wanted.due_ns))
    }

    /// End a wait; a leader sees to the sockets.
    fn end_wait<E>(
        &mut self,
        side: Half,
        ready: Ready,
        wait_for: &mut WaitFor<'_>,
        now_ns: u64,
    ) -> Result<Option<WaitOutcome>, WaitError<E>> {
        let Some(threads) = &mut self.0.threads else {
            return Ok(Some(WaitOutcome::Over));
        };
        let leads = threads.leader == Some(side);
        threads.end_wait(side, ready.is_woken, now_ns);
        if ready.is_interrupted {
            // Nothing may be taken: what the caller's check raises would lose it.
            return Ok(None);
        }
        if leads && self.result().is_none() {
            self.serve(ready, wait_for, now_ns);
        }
        Ok(self.fulfil(wait_for, now_ns)?)
    }

    /// Read and send.
    fn serve(&mut self, ready: Ready, wait_for: &mut WaitFor<'_>, now_ns: u64) {
        let (readable, _) = self.interest();
        for stream in ready.writable.iter() {
            self.note_room(stream);
        }
        if ready.is_late {
            self.due(now_ns);
        }
        let State { driver, threads } = &mut *self.0;
        if let Some(threads) = threads {
            let is_awaited = threads.place(Half::Reader).is_waiting;
            let mut reading = ReadTurn::new(driver, now_ns, ready.readable.and(readable));
            match wait_for {
                WaitFor::Bytes(target) => reading.read_for(target, &mut threads.passes),
                WaitFor::Peek(_) | WaitFor::Room { .. } => reading.read_all(is_awaited),
            }
        }
        self.settle_all(now_ns);
    }

    /// Send, and tell the loop of what concerns it.
    fn settle_all(&mut self, now_ns: u64) {
        self.settle(now_ns);
        let State { driver, threads } = &mut *self.0;
        if let (Some(threads), true) = (threads, driver.has_news()) {
            threads.request(|requests| requests.attend = true);
        }
    }
}
