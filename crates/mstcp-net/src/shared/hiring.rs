//! When worker threads begin to drive a connection: where one thread is not enough for what it carries.

use std::cell::Cell;
use std::sync::Weak;

use super::{registry, SharedEndpoint};
use crate::endpoint::Endpoint;

/// So many bytes of large frames must have moved since it was looked at last, and where it is not said how many workers there are
/// to be, within
const LEAST_BYTES: u64 = 4 << 20;
/// so long, in nanoseconds.
const WINDOW_NS: u64 = 50_000_000;
/// A thread is saturated that runs, or waits for a processor, for so much of its time,
const SATURATED: f64 = 0.8;
/// and held up by others where it waits for so much.
const HELD_UP: f64 = 0.2;

/// How many workers a connection may have, and what it has carried.
#[derive(Debug, Default)]
pub(super) struct Hiring {
    connection: Weak<SharedEndpoint>,
    /// None: as many as seem to pay.
    most: Option<usize>,
    is_allowed: bool,
    /// Also for what is received.
    receives: bool,
    seen_bytes: u64,
    seen_ns: u64,
}

impl Hiring {
    pub(super) fn allow(
        &mut self,
        connection: Weak<SharedEndpoint>,
        most: Option<usize>,
        receives: bool,
    ) {
        self.connection = connection;
        self.receives = receives;
        self.most = most;
        self.is_allowed = most != Some(0);
    }

    /// Whether workers are there only where one thread is held up.
    pub(super) fn is_automatic(&self) -> bool {
        self.most.is_none()
    }

    pub(super) fn connection(&self) -> &Weak<SharedEndpoint> {
        &self.connection
    }

    /// How many workers are to begin now.
    pub(super) fn wanted(&mut self, endpoint: &Endpoint, now_ns: u64) -> usize {
        let streams = endpoint.core.alive();
        if !self.is_allowed || endpoint.core.is_plain() || !streams.is_several() {
            return 0;
        }
        let elapsed_ns = now_ns.saturating_sub(self.seen_ns);
        let moved_bytes = self.moved_bytes(endpoint) - self.seen_bytes;
        let streams = streams.iter().count();
        if let Some(most) = self.most {
            return match moved_bytes < LEAST_BYTES {
                true => 0,
                false => most.min(streams),
            };
        }
        if elapsed_ns < WINDOW_NS {
            return 0;
        }
        self.look(endpoint, now_ns);
        let is_much = moved_bytes >= LEAST_BYTES && elapsed_ns <= 4 * WINDOW_NS;
        let count = registry::processors().min(streams);
        match is_much && count > 1 && is_held_up(now_ns) {
            true => count,
            false => 0,
        }
    }

    /// Count from now on: also when workers end, who begin again only where much is to be moved.
    pub(super) fn look(&mut self, endpoint: &Endpoint, now_ns: u64) {
        (self.seen_bytes, self.seen_ns) = (self.moved_bytes(endpoint), now_ns);
    }

    fn moved_bytes(&self, endpoint: &Endpoint) -> u64 {
        let large = endpoint.large();
        match self.receives {
            true => large.sent_bytes + large.received_bytes,
            false => large.sent_bytes,
        }
    }
}

/// What the scheduler gave a thread, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    now_ns: u64,
    run_ns: u64,
    waited_ns: u64,
}

thread_local! {
    static SEEN: Cell<Share> = const { Cell::new(Share { now_ns: 0, run_ns: 0, waited_ns: 0 }) };
}

/// How much of the time since it was asked last this thread has run, and has waited for a processor that others had. To be asked
/// often: it looks at times only, and tells nothing where it does not.
pub(super) fn shares(now_ns: u64) -> Option<(f64, f64)> {
    if now_ns.saturating_sub(SEEN.get().now_ns) < WINDOW_NS {
        return None;
    }
    let (run_ns, waited_ns) = schedule()?;
    let now = Share {
        now_ns,
        run_ns,
        waited_ns,
    };
    let then = SEEN.replace(now);
    let elapsed_ns = now_ns.saturating_sub(then.now_ns);
    let share = |now: u64, then: u64| now.saturating_sub(then) as f64 / elapsed_ns as f64;
    (elapsed_ns <= 4 * WINDOW_NS)
        .then(|| (share(run_ns, then.run_ns), share(waited_ns, then.waited_ns)))
}

/// Whether this thread wants more of the processors than others leave to it.
fn is_held_up(now_ns: u64) -> bool {
    shares(now_ns).is_some_and(|(runs, waits)| runs + waits >= SATURATED && waits >= HELD_UP)
}

/// How long this thread has run, and waited for a processor, in nanoseconds; none where the system does not say.
fn schedule() -> Option<(u64, u64)> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut numbers = told.split_ascii_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}
