//! Fair queuing with controlled delay (FQ-CoDel, RFC 8290; CoDel, RFC 8289), with the constants of RFC 8290, 5.2.

use std::collections::{HashMap, VecDeque};

use crate::time::{Nanos, MILLISECOND};

const TARGET: Nanos = 5 * MILLISECOND;
const INTERVAL: Nanos = 100 * MILLISECOND;
/// A queue of no more than this is never taken for a standing one.
const MIN_BYTES: u64 = 1500;
/// Packets in all queues together.
const LIMIT_PACKETS: usize = 10_240;

/// The queues of a device, one for each flow.
#[derive(Debug)]
pub struct FqCodel<T> {
    quantum_bytes: i64,
    queues: HashMap<u32, Queue<T>>,
    /// Flows that have just begun, which come first.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: usize,
}

#[derive(Debug)]
struct Queue<T> {
    held: VecDeque<QueuedPacket<T>>,
    bytes: u64,
    deficit: i64,
    codel: Codel,
    /// It is among the new or the old flows.
    listed: bool,
}

#[derive(Debug)]
struct QueuedPacket<T> {
    item: T,
    bytes: u32,
    since: Nanos,
}

/// CoDel's state (RFC 8289, 5.3).
#[derive(Debug, Default)]
struct Codel {
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    /// About one over the root of `count`.
    root: f64,
}

impl<T> FqCodel<T> {
    /// Empty queues; a flow may send `quantum_bytes` before it is the next one's turn.
    pub fn new(quantum_bytes: u32) -> Self {
        Self {
            quantum_bytes: i64::from(quantum_bytes),
            queues: HashMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
        }
    }

    /// Take a packet of `flow` in; what has to go for it, if all is full: the oldest packet of the longest queue.
    pub fn enqueue(&mut self, now: Nanos, flow: u32, bytes: u32, item: T) -> Option<T> {
        let queue = self.queues.entry(flow).or_insert_with(|| Queue {
            held: VecDeque::new(),
            bytes: 0,
            deficit: 0,
            codel: Codel::default(),
            listed: false,
        });
        let since = now;
        queue.held.push_back(QueuedPacket { item, bytes, since });
        queue.bytes += u64::from(bytes);
        self.packets += 1;
        if !queue.listed {
            queue.listed = true;
            queue.deficit = self.quantum_bytes;
            self.new.push_back(flow);
        }
        (self.packets > LIMIT_PACKETS)
            .then(|| self.drop_from_longest())
            .flatten()
    }

    /// The packet whose turn it is; what CoDel drops in front of it is added to `dropped`.
    pub fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<T>) -> Option<T> {
        loop {
            let is_new = !self.new.is_empty();
            let flow = *self.new.front().or_else(|| self.old.front())?;
            let queue = self.queues.get_mut(&flow).expect("a listed flow");
            if queue.deficit <= 0 {
                queue.deficit += self.quantum_bytes;
                self.take_first(is_new);
                self.old.push_back(flow);
                continue;
            }
            let before = queue.held.len();
            let next = queue.dequeue(now, dropped);
            self.packets -= before - queue.held.len();
            if let Some(held) = next {
                queue.deficit -= i64::from(held.bytes);
                return Some(held.item);
            }
            // RFC 8290, 4.2: a new queue that has run empty waits for its turn among the old ones, so that none is starved.
            queue.listed = is_new && !self.old.is_empty();
            if queue.listed {
                self.old.push_back(flow);
            }
            self.take_first(is_new);
        }
    }

    /// Remove all packets for which `goes` is true.
    pub fn remove(&mut self, goes: impl Fn(&T) -> bool) -> Vec<T> {
        let mut gone = Vec::new();
        for queue in self.queues.values_mut() {
            let (out, held) = std::mem::take(&mut queue.held)
                .into_iter()
                .partition::<VecDeque<_>, _>(|held| goes(&held.item));
            queue.held = held;
            for held in out {
                queue.bytes -= u64::from(held.bytes);
                gone.push(held.item);
            }
        }
        self.packets -= gone.len();
        gone
    }

    fn take_first(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front();
        } else {
            self.old.pop_front();
        }
    }

    fn drop_from_longest(&mut self) -> Option<T> {
        // Ties go to the flow with the least number: the order of a hash map must not show.
        let longest = self
            .queues
            .iter_mut()
            .max_by_key(|(flow, queue)| (queue.bytes, u32::MAX - **flow));
        self.packets -= 1;
        longest
            .and_then(|(_, queue)| queue.pop())
            .map(|held| held.item)
    }
}

impl<T> Queue<T> {
    fn pop(&mut self) -> Option<QueuedPacket<T>> {
        let held = self.held.pop_front()?;
        self.bytes -= u64::from(held.bytes);
        Some(held)
    }

    /// RFC 8289, 5.5: the next packet, and whether it may be dropped.
    fn next(&mut self, now: Nanos) -> (Option<QueuedPacket<T>>, bool) {
        let Some(held) = self.pop() else {
            self.codel.first_above = None;
            return (None, false);
        };
        if now - held.since < TARGET || self.bytes <= MIN_BYTES {
            self.codel.first_above = None;
            return (Some(held), false);
        }
        let since = *self.codel.first_above.get_or_insert(now + INTERVAL);
        (Some(held), now >= since)
    }

    /// RFC 8289, 5.4.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<T>) -> Option<QueuedPacket<T>> {
        let (mut held, mut is_late) = self.next(now);
        if self.codel.dropping {
            self.codel.dropping = is_late;
            while self.codel.dropping && now >= self.codel.drop_next {
                dropped.extend(held.take().map(|held| held.item));
                self.codel.count_up_to(self.codel.count + 1);
                (held, is_late) = self.next(now);
                self.codel.dropping = is_late;
                if is_late {
                    self.codel.drop_next = self.codel.after(self.codel.drop_next);
                }
            }
        } else if is_late {
            dropped.extend(held.take().map(|held| held.item));
            held = self.next(now).0;
            self.codel.begin(now);
        }
        held
    }
}

impl Codel {
    /// Begin to drop; soon after the last time, as often as then.
    fn begin(&mut self, now: Nanos) {
        self.dropping = true;
        let drops = self.count - self.last_count;
        let is_soon = now.saturating_sub(self.drop_next) < 16 * INTERVAL;
        if drops > 1 && is_soon {
            self.count_up_to(drops);
        } else {
            self.count = 1;
            self.root = 1.0;
        }
        self.last_count = self.count;
        self.drop_next = self.after(now);
    }

    /// The root follows by one step of Newton's method, as in Linux and ns-3: 1/2 at 2.
    fn count_up_to(&mut self, count: u32) {
        self.count = count;
        self.root *= (3.0 - f64::from(count) * self.root * self.root) / 2.0;
    }

    /// The control law: the interval over the root of the number of drops.
    fn after(&self, time: Nanos) -> Nanos {
        time + (INTERVAL as f64 * self.root) as Nanos
    }
}
