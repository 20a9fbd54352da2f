//! The event queue: a 4-ary heap in the total order of (time, sequence).
//!
//! An entry is 16 bytes, so the four children of a node fill one cache line. The queue stays short because a link, a
//! timer or a source has at most one entry each: a link keeps what is on its way in a queue of its own, in order.

use crate::time::Nanos;

/// What an event is for: a kind and an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The first packet on this link arrives.
    Link(u32),
    /// The timer of this endpoint.
    Timer(u32),
    /// The next write of this flow's application.
    Source(u32),
    /// This entry of the run's schedule (links going down and up, samples).
    Schedule(u32),
    /// A frame begins or ends on this shared medium.
    Medium(u32),
    /// The protocol over the connections of this flow has something to do.
    Flow(u32),
}

/// The most targets of each kind.
pub const MAX_TARGETS: usize = 1 << INDEX_BITS;

const INDEX_BITS: u32 = 22;
const TARGET_BITS: u32 = INDEX_BITS + 3;

impl Target {
    fn code(self) -> u64 {
        let (kind, index) = match self {
            Self::Link(index) => (0, index),
            Self::Timer(index) => (1, index),
            Self::Source(index) => (2, index),
            Self::Schedule(index) => (3, index),
            Self::Medium(index) => (4, index),
            Self::Flow(index) => (5, index),
        };
        kind << INDEX_BITS | u64::from(index)
    }

    fn decode(code: u64) -> Self {
        let index = (code & (MAX_TARGETS as u64 - 1)) as u32;
        match code >> INDEX_BITS & 7 {
            0 => Self::Link(index),
            1 => Self::Timer(index),
            2 => Self::Source(index),
            3 => Self::Schedule(index),
            4 => Self::Medium(index),
            _ => Self::Flow(index),
        }
    }
}

/// A place in the order of events: the time, and among events of one time the order in which they were scheduled.
///
/// Time, sequence and target in one number, so that a comparison is one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event(u128);

impl Event {
    /// After every event.
    pub(crate) const NEVER: Self = Self(u128::MAX);

    /// When it happens.
    pub fn time(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }

    /// What it is for.
    pub fn target(self) -> Target {
        Target::decode(self.0 as u64)
    }
}

/// The events to come.
#[derive(Debug)]
pub struct EventQueue {
    /// The heap, followed by `PADDING` entries that are never first: so every inner node has four children to compare.
    heap: Vec<Event>,
    scheduled: u64,
}

const PADDING: usize = 3;

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            heap: vec![Event::NEVER; PADDING],
            scheduled: 0,
        }
    }
}

impl EventQueue {
    /// Give an event its place in the order without putting it into the queue yet.
    pub fn reserve(&mut self, time: Nanos, target: Target) -> Event {
        // 2^39 events are 18 hours of computing.
        let key = self.scheduled << TARGET_BITS | target.code();
        self.scheduled += 1;
        Event(u128::from(time) << 64 | u128::from(key))
    }

    /// Schedule an event.
    pub fn schedule(&mut self, time: Nanos, target: Target) {
        let event = self.reserve(time, target);
        self.push(event);
    }

    /// Put a reserved event into the queue.
    pub fn push(&mut self, event: Event) {
        let last = self.len();
        self.heap.push(Event::NEVER);
        self.sift_up(last, event);
    }

    /// The first event.
    pub fn peek(&self) -> Option<Event> {
        Some(self.heap[0]).filter(|&event| event != Event::NEVER)
    }

    /// Take the first event out.
    pub fn pop(&mut self) -> Option<Event> {
        let first = self.peek()?;
        self.heap.pop();
        let len = self.len();
        let last = std::mem::replace(&mut self.heap[len], Event::NEVER);
        if len > 0 {
            self.replace_first(last);
        }
        Some(first)
    }

    /// Take the first event out and put another in: one pass where `pop` and `push` would take two.
    #[inline]
    pub fn replace_first(&mut self, event: Event) {
        let len = self.len();
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let first = hole * 4 + 1;
            if first >= len {
                break;
            }
            let children: &[Event; 4] = heap[first..first + 4].try_into().expect("padded");
            // Without branches: which child is the least cannot be predicted.
            let left = usize::from(children[1] < children[0]);
            let right = 2 + usize::from(children[3] < children[2]);
            let least = if children[right] < children[left] {
                right
            } else {
                left
            };
            if children[least] >= event {
                break;
            }
            heap[hole] = children[least];
            hole = first + least;
        }
        heap[hole] = event;
    }

    /// How many events are in the queue.
    pub fn len(&self) -> usize {
        self.heap.len() - PADDING
    }

    /// Whether nothing is to come.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Put `event` in the place `hole` and restore the order above it.
    fn sift_up(&mut self, mut hole: usize, event: Event) {
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.heap[parent] <= event {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = event;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RngCore, SeedableRng, SplitMix64};
    use std::collections::BTreeSet;

    #[test]
    fn events_of_one_time_come_in_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        for index in 0..100 {
            queue.schedule(5, Target::Source(index));
        }
        for index in 0..100 {
            assert_eq!(queue.pop().map(Event::target), Some(Target::Source(index)));
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn targets_survive() {
        let top = MAX_TARGETS as u32 - 1;
        for target in [
            Target::Link(top),
            Target::Timer(0),
            Target::Source(top),
            Target::Schedule(9),
            Target::Medium(top),
            Target::Flow(top),
        ] {
            let event = EventQueue::default().reserve(u64::MAX - 1, target);
            assert_eq!(event.target(), target);
        }
    }

    /// The heap against a sorted set through a long random history.
    #[test]
    fn the_heap_is_a_sorted_set() {
        let mut rng = SplitMix64::seed_from_u64(3);
        let (mut queue, mut model) = (EventQueue::default(), BTreeSet::new());
        for step in 0..200_000u64 {
            let time = rng.next_u64() % 1000 + step / 100;
            match rng.next_u64() % 5 {
                0..=1 => {
                    let event = queue.reserve(time, Target::Link((time % 7) as u32));
                    queue.push(event);
                    model.insert(event);
                }
                2 if !model.is_empty() => {
                    let event = queue.reserve(time, Target::Timer(1));
                    queue.replace_first(event);
                    model.pop_first();
                    model.insert(event);
                }
                _ => assert_eq!(queue.pop(), model.pop_first()),
            }
            assert_eq!(queue.peek(), model.first().copied());
            assert_eq!(queue.len(), model.len());
        }
    }
}
