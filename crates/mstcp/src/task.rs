//! The task of a connection, which applies what its driver says; and what the application's handles share with it.

use std::future::{poll_fn, Future};
use std::io;
use std::os::fd::AsRawFd;
use std::pin::{pin, Pin};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mstcp_net::{Action, Driver, Error, Event, SocketId, StreamSocket};
use tokio::io::unix::AsyncFd;
use tokio::sync::broadcast;
use tokio::time::Sleep;

/// Events that a subscriber may be behind.
const MAX_EVENTS: usize = 64;
/// A socket without room is tried again after this time, in case the system does not report it writable.
const RETRY: Duration = Duration::from_millis(10);
/// Passes over the sockets before other tasks have their turn.
const MAX_PASSES: usize = 16;

/// The process's monotonic clock.
pub(crate) fn now_ns() -> u64 {
    origin().elapsed().as_nanos() as u64
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

/// A change of the sockets that the task watches.
enum WatchChange {
    Watch(SocketId, StreamSocket, bool, bool),
    Unwatch(SocketId),
}

/// A connection, for its task and the application's handles.
pub(crate) struct Shared(Mutex<State>);

pub(crate) struct State {
    pub(crate) driver: Driver,
    pub(crate) is_open: bool,
    /// Who waits for bytes, for room, and for the connection to open or to end.
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    waiting: Vec<Waker>,
    task: Option<Waker>,
    /// The application has been woken, and is to have its turn.
    has_woken: bool,
    /// When the task wakes by itself.
    armed_ns: Option<u64>,
    changes: Vec<WatchChange>,
    pub(crate) events: broadcast::Sender<Event>,
}

impl Shared {
    /// Drive a connection by a task of its own.
    pub(crate) fn spawn(driver: Driver) -> Arc<Self> {
        let shared = Arc::new(Self(Mutex::new(State {
            driver,
            is_open: false,
            reader: None,
            writer: None,
            waiting: Vec::new(),
            task: None,
            has_woken: false,
            armed_ns: None,
            changes: Vec::new(),
            events: broadcast::Sender::new(MAX_EVENTS),
        })));
        shared.with(|_| ());
        tokio::spawn(run(Arc::clone(&shared)));
        shared
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Do something with the driver, and what follows from that.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state);
        state.apply();
        let is_sooner = match (state.driver.timeout_ns(), state.armed_ns) {
            (Some(due_ns), Some(armed_ns)) => due_ns < armed_ns,
            (due_ns, armed_ns) => due_ns.is_some() && armed_ns.is_none(),
        };
        if is_sooner || !state.changes.is_empty() {
            if let Some(task) = state.task.take() {
                task.wake();
            }
        }
        result
    }

    /// Wait until `ready` says that it is; called again after the connection opens or ends.
    pub(crate) async fn until<R>(&self, mut ready: impl FnMut(&State) -> Option<R>) -> R {
        poll_fn(|context| {
            self.with(|state| match ready(state) {
                Some(result) => Poll::Ready(result),
                None => {
                    state.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            })
        })
        .await
    }
}

impl State {
    /// Do what the driver says.
    fn apply(&mut self) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Watch {
                    socket,
                    descriptor,
                    for_bytes,
                    for_room,
                } => {
                    let change = WatchChange::Watch(socket, descriptor, for_bytes, for_room);
                    self.changes.push(change);
                }
                Action::Unwatch { socket } => self.changes.push(WatchChange::Unwatch(socket)),
                Action::Opened => {
                    self.is_open = true;
                    self.waiting.drain(..).for_each(Waker::wake);
                }
                Action::Deliver => {
                    self.has_woken |= self.reader.take().map(Waker::wake).is_some();
                }
                Action::ResumeWriting => {
                    self.has_woken |= self.writer.take().map(Waker::wake).is_some();
                }
                // Nobody may be listening.
                Action::Event(event) => drop(self.events.send(event)),
                Action::Ended(_) => {
                    let waiting = self.waiting.drain(..);
                    let others = self.reader.take().into_iter().chain(self.writer.take());
                    waiting.chain(others).for_each(Waker::wake);
                }
                // A writer that finds no room waits; further actions do not concern this shell.
                _ => {}
            }
        }
    }

    /// Why the connection is over, if it was not closed.
    pub(crate) fn error(&self) -> Option<Error> {
        self.driver.result()?.as_ref().err().cloned()
    }
}

/// Have the runtime tell of a socket.
pub(crate) fn register<S: AsRawFd>(descriptor: S) -> io::Result<AsyncFd<S>> {
    // SAFETY: the descriptor is owned by what is registered, which always shows the same one.
    #[allow(unsafe_code)]
    Ok(unsafe { AsyncFd::register(descriptor) }?)
}

struct Watched {
    socket: SocketId,
    descriptor: AsyncFd<StreamSocket>,
    for_bytes: bool,
    for_room: bool,
}

struct Task {
    shared: Arc<Shared>,
    watched: Vec<Watched>,
}

async fn run(shared: Arc<Shared>) {
    let watched = Vec::new();
    let mut task = Task { shared, watched };
    let mut timer = pin!(tokio::time::sleep(Duration::ZERO));
    poll_fn(|context| task.poll(context, timer.as_mut())).await;
}

impl Task {
    fn poll(&mut self, context: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        if timer.as_mut().poll(context).is_ready() {
            self.retry();
            shared.with(|state| state.driver.due(now_ns()));
        }
        for _ in 0..MAX_PASSES {
            let is_over = self.change(context);
            if is_over {
                return Poll::Ready(());
            }
            if !self.pass(context) && self.arm(context, timer.as_mut()) {
                return Poll::Pending;
            }
            // What came is in the processor's cache now.
            if std::mem::take(&mut shared.lock().has_woken) {
                break;
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Watch what is to be watched; true if the connection is over.
    fn change(&mut self, context: &mut Context<'_>) -> bool {
        let mut state = self.shared.lock();
        if !(state.task.as_ref()).is_some_and(|task| task.will_wake(context.waker())) {
            state.task = Some(context.waker().clone());
            state.driver.set_waker(context.waker());
        }
        if state.driver.is_called() {
            state.driver.due(now_ns());
            state.apply();
        }
        let changes = std::mem::take(&mut state.changes);
        let is_over = state.driver.result().is_some();
        drop(state);
        for change in changes {
            match change {
                WatchChange::Watch(socket, descriptor, for_bytes, for_room) => {
                    self.watch(socket, descriptor, for_bytes, for_room);
                }
                WatchChange::Unwatch(socket) => self.watched.retain(|one| one.socket != socket),
            }
        }
        is_over
    }

    fn watch(
        &mut self,
        socket: SocketId,
        descriptor: StreamSocket,
        for_bytes: bool,
        for_room: bool,
    ) {
        if let Some(one) = self.watched.iter_mut().find(|one| one.socket == socket) {
            (one.for_bytes, one.for_room) = (for_bytes, for_room);
            return;
        }
        match register(descriptor) {
            Ok(descriptor) => self.watched.push(Watched {
                socket,
                descriptor,
                for_bytes,
                for_room,
            }),
            Err(_) => {
                // The system has no room for it: the driver finds it without an answer, and tries again.
            }
        }
    }

    /// Read and write each socket that is ready once; true if one was.
    fn pass(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_progress = false;
        for one in &self.watched {
            let Watched {
                socket, descriptor, ..
            } = one;
            // What is cleared is polled again in the next pass. The end of a socket cannot be cleared: it is the driver's to let it go.
            let readable = |state: &mut State| state.driver.readable(now_ns(), *socket);
            if one.for_bytes {
                if let Poll::Ready(Ok(mut guard)) = descriptor.poll_read_ready(context) {
                    has_progress = true;
                    if self.shared.with(readable) {
                        guard.clear_ready();
                    }
                }
            }
            if !one.for_room {
                continue;
            }
            if let Poll::Ready(Ok(mut guard)) = descriptor.poll_write_ready(context) {
                has_progress = true;
                let writable = |state: &mut State| state.driver.writable(now_ns(), *socket);
                if self.shared.with(writable) {
                    guard.clear_ready();
                }
            }
        }
        has_progress
    }

    /// Try sockets that had no room.
    fn retry(&mut self) {
        for one in self.watched.iter().filter(|one| one.for_room) {
            let writable = |state: &mut State| state.driver.writable(now_ns(), one.socket);
            self.shared.with(writable);
        }
    }

    /// Have the timer wake the task when something is due; false if that is now, or there is something new to watch.
    fn arm(&mut self, context: &mut Context<'_>, mut timer: Pin<&mut Sleep>) -> bool {
        let mut state = self.shared.lock();
        if !state.changes.is_empty() || state.driver.result().is_some() {
            return false;
        }
        let retry = self.watched.iter().any(|one| one.for_room);
        let retry_ns = retry.then(|| now_ns() + RETRY.as_nanos() as u64);
        let due_ns = state.driver.timeout_ns().into_iter().chain(retry_ns).min();
        if state.task.is_none() {
            state.task = Some(context.waker().clone());
        }
        state.armed_ns = due_ns;
        drop(state);
        let Some(due_ns) = due_ns else {
            return true;
        };
        let due = origin() + Duration::from_nanos(due_ns);
        if timer.deadline().into_std() != due {
            timer.as_mut().reset(due.into());
        }
        if timer.poll(context).is_pending() {
            return true;
        }
        self.retry();
        self.shared.with(|state| state.driver.due(now_ns()));
        false
    }
}
