//! What drives all connections of the process: a thread that waits in a call, or one of the library's while none does.
//!
//! What a thread waits for then comes without another one being woken, which costs more than to carry it.

use std::future::{poll_fn, Future};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use std::{io, mem};

use tokio::runtime::{Builder, Runtime};
use tokio::task;

use crate::error::CError;

/// How long connections stay where they are while no thread of the application waits. Then the next call drives them once; where
/// none comes for as long again, the library's thread does.
const IDLE: Duration = Duration::from_millis(4);

static ENGINE: OnceLock<io::Result<Arc<Engine>>> = OnceLock::new();

struct Engine {
    runtime: Runtime,
    /// Threads of the application that wait now, and how often one has.
    waiting: AtomicUsize,
    waits: AtomicUsize,
    /// Nobody has waited for a moment.
    is_idle: AtomicBool,
    /// The library's thread: has it leave the runtime, or wakes it once nobody waits.
    driving: Mutex<Option<Waker>>,
    asleep: Mutex<Option<Thread>>,
}

/// Have this thread wait for something of a connection's.
pub(crate) fn wait<F: Future>(future: F) -> Result<F::Output, CError> {
    let engine = ENGINE.get_or_init(Engine::start).as_ref();
    let engine = engine.map_err(|error| CError::new(error.kind(), error))?;
    Ok(engine.wait(future))
}

/// Have this thread, whose call did not have to wait, drive the connections where it is time.
pub(crate) fn pass() {
    let Some(Ok(engine)) = ENGINE.get() else {
        return;
    };
    if engine.is_idle.swap(false, Ordering::Relaxed) {
        // The first has tasks woken, the second has them run.
        engine.wait(async {
            task::yield_now().await;
            task::yield_now().await;
        });
    }
}

/// A thread of the application that waits.
struct Waiting<'a>(&'a Engine);

impl<'a> Waiting<'a> {
    fn begin(engine: &'a Engine) -> Self {
        engine.waits.fetch_add(1, Ordering::SeqCst);
        engine.waiting.fetch_add(1, Ordering::SeqCst);
        if let Some(driving) = take(&engine.driving) {
            driving.wake();
        }
        Self(engine)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
        if let Some(thread) = take(&self.0.asleep) {
            thread.unpark();
        }
    }
}

impl Engine {
    fn start() -> io::Result<Arc<Self>> {
        let engine = Arc::new(Self {
            runtime: Builder::new_current_thread().enable_all().build()?,
            waiting: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
            is_idle: AtomicBool::new(false),
            driving: Mutex::new(None),
            asleep: Mutex::new(None),
        });
        let driven = Arc::clone(&engine);
        let thread = thread::Builder::new().name("mstcp".to_owned());
        thread.spawn(move || {
            let mut before = 0;
            loop {
                let relieved = poll_fn(|context| driven.poll_relieved(before, context));
                driven.runtime.block_on(relieved);
                before = driven.sleep();
            }
        })?;
        Ok(engine)
    }

    fn wait<F: Future>(&self, future: F) -> F::Output {
        let _waiting = Waiting::begin(self);
        self.runtime.block_on(future)
    }

    /// Ready once a thread of the application has waited, even if what it waited for came meanwhile: it will wait again.
    fn poll_relieved(&self, before: usize, context: &mut Context<'_>) -> Poll<()> {
        put(&self.driving, context.waker().clone());
        if self.waits.load(Ordering::SeqCst) == before {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }

    /// Sleep until none has waited for a moment; return how often one had.
    fn sleep(&self) -> usize {
        loop {
            let before = self.waits.load(Ordering::SeqCst);
            thread::sleep(IDLE);
            let has_waited = self.waits.load(Ordering::SeqCst) != before;
            let was_idle = self.is_idle.swap(!has_waited, Ordering::Relaxed);
            if has_waited || !was_idle {
                continue;
            }
            put(&self.asleep, thread::current());
            if self.waiting.load(Ordering::SeqCst) == 0 {
                return before;
            }
            thread::park();
        }
    }
}

fn put<T>(place: &Mutex<Option<T>>, value: T) {
    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    mem::take(&mut *place.lock().unwrap_or_else(PoisonError::into_inner))
}
