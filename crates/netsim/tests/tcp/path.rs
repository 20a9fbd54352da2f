//! Two endpoints and a path between them: delay, rate, seeded loss, duplication and reordering.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use netsim::random::{unit, SeedableRng, SplitMix64};
use netsim::tcp::{Config, Endpoint, Segment};
use netsim::time::{Nanos, MILLISECOND, SECOND};

/// What a direction of the path does to segments.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    /// Propagation delay.
    pub delay: Nanos,
    /// Bits a second; 0: no limit.
    pub rate_bps: u64,
    /// Probability that a segment with data is lost.
    pub loss: f64,
    /// Probability that a segment arrives twice.
    pub duplication: f64,
    /// Extra delay, uniform from 0 to this, drawn for each segment: reorders.
    pub jitter: Nanos,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            delay: 10 * MILLISECOND,
            rate_bps: 0,
            loss: 0.0,
            duplication: 0.0,
            jitter: 0,
        }
    }
}

/// A connection over a path, run event by event.
pub struct Pipe {
    pub now: Nanos,
    pub ends: [Endpoint; 2],
    paths: [Path; 2],
    free_at: [Nanos; 2],
    rng: SplitMix64,
    queue: BinaryHeap<Reverse<(Nanos, u64)>>,
    flying: BTreeMap<u64, (usize, Segment)>,
    count: u64,
    /// Data bytes that end 0 wants to write in all, and has written.
    pub to_write: u64,
    pub written: u64,
    /// Bytes that end 1 has read.
    pub read: u64,
    /// Whether end 0 closes when all is written.
    pub close_when_written: bool,
    /// Largest sequence number + 1 that the receiver allowed, to check the sender against.
    allowed: u64,
    pub events: u64,
}

impl Pipe {
    /// Connect a client (end 0) with a server (end 1).
    pub fn new(config: &Config, paths: [Path; 2], seed: u64) -> Self {
        Self {
            now: 0,
            ends: [Endpoint::client(config, 0), Endpoint::server(config)],
            paths,
            free_at: [0; 2],
            rng: SplitMix64::seed_from_u64(seed),
            queue: BinaryHeap::new(),
            flying: BTreeMap::new(),
            count: 0,
            to_write: 0,
            written: 0,
            read: 0,
            close_when_written: false,
            allowed: 0,
            events: 0,
        }
    }

    fn send(&mut self, from: usize, segment: Segment) {
        let path = self.paths[from];
        if segment.syn {
            self.allowed = self.allowed.max(65_535);
        }
        if from == 1 {
            if let Some(ack) = segment.acknowledgement {
                self.allowed = self.allowed.max(ack + segment.window_bytes);
            }
        } else if segment.payload_bytes > 1 {
            assert!(
                segment.end() - u64::from(segment.fin) <= self.allowed,
                "sent beyond the window: {segment:?}"
            );
        }
        let bits = u64::from(segment.payload_bytes + 40) * 8;
        let wire = (bits * SECOND).checked_div(path.rate_bps).unwrap_or(0);
        self.free_at[from] = self.free_at[from].max(self.now) + wire;
        if unit(&mut self.rng) < path.loss {
            return;
        }
        let copies = if unit(&mut self.rng) < path.duplication {
            2
        } else {
            1
        };
        for _ in 0..copies {
            let extra = (unit(&mut self.rng) * path.jitter as f64) as Nanos;
            self.queue.push(Reverse((
                self.free_at[from] + path.delay + extra,
                self.count,
            )));
            self.flying.insert(self.count, (1 - from, segment));
            self.count += 1;
        }
    }

    fn serve(&mut self) {
        if self.written < self.to_write {
            let want = (self.to_write - self.written).min(1 << 30) as u32;
            self.written += u64::from(self.ends[0].write(self.now, want));
        } else if self.close_when_written {
            self.ends[0].close(self.now);
        }
        self.read += u64::from(self.ends[1].read(self.now, u32::MAX));
        if self.ends[1].at_end() {
            self.ends[1].close(self.now);
        }
        for end in 0..2 {
            while let Some(segment) = self.ends[end].poll_transmit(self.now) {
                self.send(end, segment);
            }
        }
    }

    /// Run one event; false if there is none left.
    pub fn step(&mut self) -> bool {
        self.serve();
        let arrival = self.queue.peek().map(|Reverse(key)| key.0);
        let timer = self.ends.iter().filter_map(Endpoint::next_timer).min();
        let Some(next) = arrival.into_iter().chain(timer).min() else {
            return false;
        };
        self.events += 1;
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let Some(Reverse((_, id))) = self.queue.pop() else {
                return false;
            };
            let (to, segment) = self
                .flying
                .remove(&id)
                .expect("a segment in the queue is flying");
            self.ends[to].on_segment(self.now, &segment);
        } else {
            self.ends.iter_mut().for_each(|end| end.on_timer(self.now));
        }
        true
    }

    /// Run until `end`.
    pub fn run_until(&mut self, end: Nanos) {
        while self.now < end && self.step() {}
    }
}
