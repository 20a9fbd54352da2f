//! All worker threads of the process: how many there may be, and how they end before the process is copied.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread;
use std::time::Duration;

use super::SharedEndpoint;

/// There are no more workers than this for each processor, however many connections have them.
const MOST_PER_PROCESSOR: usize = 2;

#[derive(Debug)]
struct Registry {
    connections: Vec<Weak<SharedEndpoint>>,
    /// The process is being copied: none begins.
    is_closed: bool,
}

/// How many workers run.
static COUNT: AtomicUsize = AtomicUsize::new(0);

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    connections: Vec::new(),
    is_closed: false,
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker that runs.
#[derive(Debug)]
pub(super) struct Registered(());

impl Drop for Registered {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many processors this process may use.
pub(super) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Start workers of a connection, and return how many could be.
pub(super) fn start<W>(connection: &Weak<SharedEndpoint>, workers: Vec<W>) -> usize
where
    W: FnOnce(Registered) + Send + 'static,
{
    let mut registry = match REGISTRY.try_lock() {
        Ok(registry) => registry,
        Err(TryLockError::Poisoned(registry)) => registry.into_inner(),
        // In a copied process it may be locked for ever.
        Err(TryLockError::WouldBlock) => return 0,
    };
    if registry.is_closed {
        return 0;
    }
    let most = MOST_PER_PROCESSOR * processors();
    let mut started = 0;
    let masked = MaskedSignals::new();
    for worker in workers {
        if COUNT.load(Ordering::Acquire) >= most {
            break;
        }
        COUNT.fetch_add(1, Ordering::AcqRel);
        let registered = Registered(());
        let builder = thread::Builder::new().name("mstcp-io".to_owned());
        if builder
            .stack_size(1 << 17)
            .spawn(move || worker(registered))
            .is_err()
        {
            break;
        }
        started += 1;
    }
    drop(masked);
    registry
        .connections
        .retain(|other| other.strong_count() > 0);
    registry.connections.push(Weak::clone(connection));
    started
}

/// End all workers, and have none begin until [`open`].
pub fn close() {
    let connections = {
        let mut registry = registry();
        registry.is_closed = true;
        std::mem::take(&mut registry.connections)
    };
    for connection in connections {
        if let Some(shared) = connection.upgrade() {
            shared.end_workers();
        }
    }
    while COUNT.load(Ordering::Acquire) > 0 {
        thread::sleep(Duration::from_micros(50));
    }
}

/// Let workers begin again.
pub fn open() {
    registry().is_closed = false;
}

/// Workers take no signals: the application's threads are to be interrupted by them.
struct MaskedSignals(libc::sigset_t);

impl MaskedSignals {
    fn new() -> Self {
        // SAFETY: all zeros is a valid set; the calls write the sets that they are given.
        unsafe {
            let (mut all, mut old): (libc::sigset_t, libc::sigset_t) =
                (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
            Self(old)
        }
    }
}

impl Drop for MaskedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}
