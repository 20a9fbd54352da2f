//! What drives all connections of the process: a thread that waits in a call, or one of the library's while none does.
//!
//! What a thread waits for then comes without another one being woken, which costs more than to carry it.

use std::future::{poll_fn, Future};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use std::{io, mem};

use tokio::runtime::{Builder, Runtime};

use crate::error::Failure;

/// The library's thread drives connections again once the application has not waited for as long.
const IDLE: Duration = Duration::from_millis(1);

struct Engine {
    runtime: Runtime,
    /// Threads of the application that wait now, and how often one has.
    waiting: AtomicUsize,
    waits: AtomicUsize,
    /// The library's thread: has it leave the runtime, or wakes it once nobody waits.
    driving: Mutex<Option<Waker>>,
    asleep: Mutex<Option<Thread>>,
}

/// Have this thread wait for something of a connection's.
pub(crate) fn wait<F: Future>(future: F) -> Result<F::Output, Failure> {
    static ENGINE: OnceLock<io::Result<Arc<Engine>>> = OnceLock::new();
    let engine = ENGINE.get_or_init(Engine::start).as_ref();
    let engine = engine.map_err(|error| Failure::new(error.kind(), error))?;
    let _waiting = Waiting::begin(engine);
    Ok(engine.runtime.block_on(future))
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
            driving: Mutex::new(None),
            asleep: Mutex::new(None),
        });
        let driven = Arc::clone(&engine);
        let thread = thread::Builder::new().name("mstcp".to_owned());
        thread.spawn(move || loop {
            driven
                .runtime
                .block_on(poll_fn(|context| driven.poll_relieved(context)));
            driven.sleep();
        })?;
        Ok(engine)
    }

    /// Ready once a thread of the application waits.
    fn poll_relieved(&self, context: &mut Context<'_>) -> Poll<()> {
        put(&self.driving, context.waker().clone());
        match self.waiting.load(Ordering::SeqCst) {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    }

    /// Sleep until none has waited for a moment.
    fn sleep(&self) {
        loop {
            let before = self.waits.load(Ordering::SeqCst);
            thread::sleep(IDLE);
            if self.waits.load(Ordering::SeqCst) != before {
                continue;
            }
            put(&self.asleep, thread::current());
            if self.waiting.load(Ordering::SeqCst) == 0 {
                return;
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
