//! The event queue: a 4-ary heap in the total order of (time, sequence), and buckets of time for what is far off.
//!
//! An entry is 16 bytes, so the four children of a node fill one cache line. The queue stays short because a link, a
//! timer or a source has at most one entry each: a link keeps what is on its way in a queue of its own, in order.
//!
//! With thousands of them a heap outgrows the nearest cache, and each event would wait for memory several times. Then the heap holds the
//! present bucket alone, and each later bucket is unordered until its time comes (a calendar queue; Brown 1988).

use crate::time::Nanos;

/// What an event is for: a kind and an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTarget {
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

impl EventTarget {
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
#[repr(Rust, packed(8))]
pub struct Event(u128);

impl Event {
    /// After every event.
    pub(crate) const NEVER: Self = Self(u128::MAX);

    /// Before all events of this time.
    fn before(time: Nanos) -> Self {
        Self(u128::from(time) << 64)
    }

    /// When it happens.
    pub fn time(self) -> Nanos {
        (self.0 >> 64) as Nanos
    }

    /// What it is for.
    pub fn target(self) -> EventTarget {
        EventTarget::decode(self.0 as u64)
    }
}

/// The events to come.
#[derive(Debug)]
pub struct EventQueue {
    /// What comes before `horizon`: the heap, followed by `PADDING` entries that are never first, so that every inner node has four
    /// children to compare.
    heap: Vec<Event>,
    horizon: Event,
    /// What comes from there on.
    calendar: Calendar,
    /// The heap holds no more, unless it has to: then time is divided again.
    heap_max: usize,
    scheduled: u64,
    /// A bucket has come into the heap.
    opened: bool,
}

const PADDING: usize = 3;
/// Events of a heap that the nearest cache holds beside all else.
const HEAP_MAX: usize = 2048;
/// Events that a bucket is made for, and those with which time is divided again: what they need stays in the second cache.
const BUCKET_EVENTS: u64 = 128;
const BUCKET_EVENTS_MAX: usize = 4 * BUCKET_EVENTS as usize;
const BUCKETS: u64 = 1024;

/// Buckets of equal width from some time on, and what comes after the last.
#[derive(Debug, Default)]
struct Calendar {
    /// Logarithm to base 2 of the width in nanoseconds.
    shift: u32,
    /// The number of the first bucket: time by width. No bucket before `next` has events.
    first: u64,
    next: u64,
    buckets: Vec<Vec<Event>>,
    in_buckets: usize,
    beyond: Vec<Event>,
}

impl Calendar {
    fn len(&self) -> usize {
        self.in_buckets + self.beyond.len()
    }

    fn push(&mut self, event: Event) {
        let place = (event.time() >> self.shift) - self.first;
        if place < BUCKETS {
            self.buckets[place as usize].push(event);
            self.in_buckets += 1;
        } else {
            self.beyond.push(event);
        }
    }

    /// Divide the time from the first of these events on, so that buckets fit their rate; where the calendar begins.
    fn divide(&mut self, events: &mut [Event]) -> Event {
        let quarter = events.len() / 4;
        let (_, &mut later, _) = events.select_nth_unstable(quarter);
        let first = events[..=quarter]
            .iter()
            .min()
            .map_or(0, |event| event.time());
        let width = (later.time() - first) * BUCKET_EVENTS / quarter.max(1) as u64;
        self.shift = width.max(1).ilog2();
        self.first = first >> self.shift;
        self.next = 0;
        self.buckets.resize_with(BUCKETS as usize, Vec::new);
        Event::before(self.first << self.shift)
    }

    /// The next bucket with events, and where it ends.
    fn take(&mut self) -> Option<(Vec<Event>, Event)> {
        if self.in_buckets == 0 {
            return None;
        }
        while self.buckets[self.next as usize].is_empty() {
            self.next += 1;
        }
        let bucket = std::mem::take(&mut self.buckets[self.next as usize]);
        self.in_buckets -= bucket.len();
        self.next += 1;
        let end = Event::before((self.first + self.next) << self.shift);
        Some((bucket, end))
    }

    /// Give the memory of a bucket back that was taken last.
    fn keep(&mut self, mut bucket: Vec<Event>) {
        bucket.clear();
        self.buckets[self.next as usize - 1] = bucket;
    }
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            heap: vec![Event::NEVER; PADDING],
            horizon: Event::NEVER,
            calendar: Calendar::default(),
            heap_max: HEAP_MAX,
            scheduled: 0,
            opened: false,
        }
    }
}

impl EventQueue {
    /// Give an event its place in the order without putting it into the queue yet.
    pub fn reserve(&mut self, time: Nanos, target: EventTarget) -> Event {
        // 2^39 events are 18 hours of computing.
        let key = self.scheduled << TARGET_BITS | target.code();
        self.scheduled += 1;
        Event(u128::from(time) << 64 | u128::from(key))
    }

    /// Schedule an event.
    pub fn schedule(&mut self, time: Nanos, target: EventTarget) {
        let event = self.reserve(time, target);
        self.push(event);
    }

    /// Put a reserved event into the queue.
    pub fn push(&mut self, event: Event) {
        if event >= self.horizon {
            self.calendar.push(event);
            if self.heap_len() == 0 {
                self.refill();
            }
            return;
        }
        self.push_near(event);
        if self.heap_len() > self.heap_max {
            self.divide();
        }
    }

    /// Whether a bucket has come into the heap since the last time.
    #[inline]
    pub fn take_opened(&mut self) -> bool {
        std::mem::take(&mut self.opened)
    }

    /// The time before which all events are in the heap.
    pub fn horizon(&self) -> Nanos {
        self.horizon.time()
    }

    /// The events in the heap.
    pub fn near(&self) -> &[Event] {
        &self.heap[..self.heap_len()]
    }

    fn push_near(&mut self, event: Event) {
        let last = self.heap_len();
        self.heap.push(Event::NEVER);
        self.sift_up(last, event);
    }

    /// Fill the heap, which is empty, with the next bucket.
    #[cold]
    fn refill(&mut self) {
        if let Some((bucket, end)) = self.calendar.take() {
            self.horizon = end;
            bucket.iter().for_each(|&event| self.push_near(event));
            self.calendar.keep(bucket);
            self.opened = true;
            if self.heap_len() > self.heap_max {
                self.divide();
            }
        } else if !self.calendar.beyond.is_empty() {
            self.divide();
        }
    }

    /// Divide what is to come between heap and calendar again: few events stay in the heap.
    #[cold]
    fn divide(&mut self) {
        let mut events = std::mem::take(&mut self.calendar.beyond);
        while let Some((bucket, _)) = self.calendar.take() {
            events.extend(bucket);
        }
        let near = self.heap_len();
        events.extend_from_slice(&self.heap[..near]);
        self.heap.clear();
        self.heap.resize(PADDING, Event::NEVER);
        self.horizon = Event::NEVER;
        if events.len() > HEAP_MAX / 2 {
            self.horizon = self.calendar.divide(&mut events);
        }
        for event in events {
            if event >= self.horizon {
                self.calendar.push(event);
            } else {
                self.push_near(event);
            }
        }
        if self.heap_len() == 0 {
            self.heap_max = usize::MAX;
            self.refill();
        }
        let wanted = if self.horizon == Event::NEVER {
            HEAP_MAX
        } else {
            BUCKET_EVENTS_MAX
        };
        self.heap_max = wanted.max(2 * self.heap_len());
    }

    /// The first event.
    pub fn peek(&self) -> Option<Event> {
        Some(self.heap[0]).filter(|&event| event != Event::NEVER)
    }

    /// Take the first event out.
    pub fn pop(&mut self) -> Option<Event> {
        let first = self.peek()?;
        self.heap.pop();
        let len = self.heap_len();
        let last = std::mem::replace(&mut self.heap[len], Event::NEVER);
        if len > 0 {
            self.sift_down(last);
        } else if self.calendar.len() > 0 {
            self.refill();
        }
        Some(first)
    }

    /// Take the first event out and put another in: one pass where `pop` and `push` would take two.
    #[inline]
    pub fn replace_first(&mut self, event: Event) {
        if event < self.horizon {
            self.sift_down(event);
        } else {
            self.calendar.push(event);
            self.pop();
        }
    }

    /// Put an event in place of the first and restore the order below it.
    #[inline]
    fn sift_down(&mut self, event: Event) {
        let len = self.heap_len();
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
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.heap_len() + self.calendar.len()
    }

    fn heap_len(&self) -> usize {
        self.heap.len() - PADDING
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
            queue.schedule(5, EventTarget::Source(index));
        }
        for index in 0..100 {
            assert_eq!(
                queue.pop().map(Event::target),
                Some(EventTarget::Source(index))
            );
        }
        assert_eq!(queue.pop(), None);
    }

    #[test]
    fn targets_survive() {
        let top = MAX_TARGETS as u32 - 1;
        for target in [
            EventTarget::Link(top),
            EventTarget::Timer(0),
            EventTarget::Source(top),
            EventTarget::Schedule(9),
            EventTarget::Medium(top),
            EventTarget::Flow(top),
        ] {
            let event = EventQueue::default().reserve(u64::MAX - 1, target);
            assert_eq!(event.target(), target);
        }
    }

    /// Through a long random history of few events and of many, near and far.
    #[test]
    fn the_queue_is_a_sorted_set() {
        for (seed, events, spread) in [
            (3, 200, 1000),
            (4, 20_000, 1_000_000),
            (5, 6_000, 3),
            (6, 9_000, 1 << 40),
        ] {
            let mut rng = SplitMix64::seed_from_u64(seed);
            let (mut queue, mut model) = (EventQueue::default(), BTreeSet::new());
            for step in 0..200_000u64 {
                let now = model.first().map_or(0, |event: &Event| event.time());
                // Some come soon, most later, few at the end.
                let ahead = (rng.next_u64() % spread) >> (rng.next_u64() % 8);
                let wanted = if step % 50_000 < 40_000 { events } else { 10 };
                let grows = model.len() < wanted && rng.next_u64() % 4 > 0;
                match rng.next_u64() % 3 {
                    _ if grows => {
                        let event =
                            queue.reserve(now + ahead, EventTarget::Link((step % 7) as u32));
                        queue.push(event);
                        model.insert(event);
                    }
                    0 if !model.is_empty() => {
                        let event = queue.reserve(now + ahead, EventTarget::Timer(1));
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
}
