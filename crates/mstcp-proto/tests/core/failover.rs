//! Two connections over simulated pipes whose streams die, stall and come back: every byte once and in order.

use std::collections::VecDeque;

use mstcp_proto::{scheduler, Config, Connection, Slice, SplitMix64};
use proptest::prelude::*;

use super::{config, offer, random_bytes};

/// One direction of a stream.
#[derive(Default)]
struct Pipe {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// Two connections and the streams between them.
struct Pair {
    ends: [Connection; 2],
    /// By slot; slots are alike on both sides since streams come and go on both at once.
    pipes: Vec<[Pipe; 2]>,
    blackholed: Vec<bool>,
    capacity: usize,
    now_ns: u64,
    next_id: u32,
    got: [Vec<u8>; 2],
    rng: SplitMix64,
}

const WINDOW: usize = 1 << 18;

impl Pair {
    fn new(name: &str, streams: usize, payload: usize, capacity: usize, seed: u64) -> Self {
        let end = |seed| {
            let config = Config {
                reorder_buffer_bytes: WINDOW,
                ..config(streams, payload)
            };
            let mut end = Connection::new(config, scheduler::by_name(name, seed).unwrap()).unwrap();
            let rates: Vec<f64> = (1..=streams).map(|stream| stream as f64 * 4e6).collect();
            end.set_weights(&rates).unwrap();
            end
        };
        Self {
            ends: [end(seed), end(seed + 1)],
            pipes: (0..streams).map(|_| Default::default()).collect(),
            blackholed: vec![false; streams],
            capacity,
            now_ns: 1,
            next_id: streams as u32,
            got: Default::default(),
            rng: SplitMix64::new(seed ^ 0xfeed),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.rng.next_u64() % bound as u64) as usize
    }

    fn pump(&mut self, side: usize) {
        for slot in self.ends[side].alive().iter() {
            self.ends[side].on_writable(slot).unwrap();
        }
        while let Some((stream, data)) = offer(&mut self.ends[side], self.now_ns) {
            let pipe = &mut self.pipes[stream][side];
            let count = data.len().min(self.capacity - pipe.bytes.len());
            pipe.bytes.extend(&data[..count]);
            pipe.ended |= self.ends[side].on_sent(stream, count).unwrap();
        }
    }

    fn deliver(&mut self, side: usize, slot: usize) {
        let most = 1 + self.below(400);
        let pipe = &mut self.pipes[slot][1 - side];
        let size = most.min(pipe.bytes.len());
        let data: Vec<u8> = pipe.bytes.drain(..size).collect();
        self.ends[side]
            .on_received(slot, &data, &mut self.got[side])
            .unwrap();
    }

    /// Kill a stream: what is in its pipes is lost.
    fn kill(&mut self, slot: usize) {
        for side in 0..2 {
            self.ends[side].on_stream_end(slot).unwrap();
        }
        self.pipes[slot] = Default::default();
        self.blackholed[slot] = false;
    }

    fn revive(&mut self) {
        let slots = [0, 1].map(|side| self.ends[side].add_stream(self.next_id, 4e6).unwrap());
        assert_eq!(slots[0], slots[1]);
        self.next_id += 1;
        if slots[0] == self.pipes.len() {
            self.pipes.push(Default::default());
            self.blackholed.push(false);
        }
    }

    /// Let the second end have all of `data`, in this many steps at most.
    fn receive(&mut self, data: &[u8], most_steps: usize) {
        for _ in 0..most_steps {
            self.step(false);
            if self.got[1].len() == data.len() {
                break;
            }
        }
        assert_eq!(self.got[1], data);
    }

    /// Let things happen for a while: reads, sends, and now and then a fault.
    fn step(&mut self, faults: bool) {
        self.now_ns += 1_000_000;
        let alive: Vec<usize> = self.ends[0].alive().iter().collect();
        if faults && self.below(40) == 0 {
            match self.below(4) {
                0 if !alive.is_empty() => {
                    let slot = alive[self.below(alive.len())];
                    self.kill(slot);
                }
                1 if !alive.is_empty() => {
                    let slot = alive[self.below(alive.len())];
                    self.blackholed[slot] = !self.blackholed[slot];
                }
                2 if alive.len() < 6 => self.revive(),
                _ => self.blackholed.fill(false),
            }
        }
        for side in 0..2 {
            self.pump(side);
            for slot in self.ends[side].alive().iter() {
                if !self.blackholed[slot] {
                    self.deliver(side, slot);
                }
            }
            self.pump(side);
            assert!(self.ends[side].counters().reorder_bytes <= WINDOW);
        }
    }

    fn is_done(&self) -> bool {
        self.ends
            .iter()
            .all(|end| end.is_finished() && end.is_ended())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_byte_comes_once_and_in_order_whatever_dies(
        name in prop::sample::select(&scheduler::NAMES[..]),
        streams in 1usize..5,
        payload in 1usize..600,
        sizes in [0usize..60_000, 0usize..60_000],
        capacity in 20usize..5000,
        seed in any::<u32>(),
    ) {
        let seed = u64::from(seed);
        let mut pair = Pair::new(name, streams, payload, capacity, seed);
        let data = [random_bytes(sizes[0], seed), random_bytes(sizes[1], seed + 1)];
        for (end, data) in pair.ends.iter_mut().zip(&data) {
            end.write(data).unwrap();
            end.end();
        }
        // The faults stop some time; the number of steps only stops a failure.
        for step in 0..400_000 {
            pair.step(step < 2000);
            if step == 2000 {
                pair.blackholed.fill(false);
                if pair.ends[0].alive().is_empty() {
                    pair.revive();
                }
            }
            if pair.is_done() {
                break;
            }
        }
        prop_assert!(pair.is_done());
        prop_assert_eq!(&pair.got[1], &data[0]);
        prop_assert_eq!(&pair.got[0], &data[1]);
    }

    #[test]
    fn any_bytes_on_any_stream_give_remote_errors_alone(
        pieces in prop::collection::vec((0usize..2, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
    ) {
        let mut pair = Pair::new("weighted", 2, 100, 1000, 0);
        for (stream, piece) in pieces {
            match pair.ends[0].on_received(stream, &piece, &mut pair.got[0]) {
                Ok(()) => {}
                Err(mstcp_proto::Error::Remote(_)) => break,
                Err(error) => prop_assert!(false, "{}", error),
            }
        }
    }
}

#[test]
fn a_stalled_stream_does_not_hold_the_others() {
    let mut pair = Pair::new("weighted", 2, 100, 1000, 7);
    let data = random_bytes(50_000, 3);
    pair.ends[0].write(&data).unwrap();
    pair.blackholed[1] = true;
    // One second until the stall is seen, and the transfer over one stream.
    pair.receive(&data, 2000);
    assert!(pair.ends[0].counters().streams[0].resent_bytes > 0);
    assert!(pair.ends[0].stalled().contains(1));
}

#[test]
fn the_end_does_not_wait_for_a_stall_to_be_seen() {
    let mut pair = Pair::new("weighted", 2, 100, 1000, 7);
    let data = random_bytes(50_000, 3);
    pair.ends[0].write(&data).unwrap();
    pair.ends[0].end();
    pair.blackholed[1] = true;
    pair.receive(&data, 900);
    assert!(pair.ends[0].stalled().is_empty());
}

#[test]
fn frames_of_one_byte_never_cost_the_peer_more_pieces_than_it_allows() {
    // Both streams take half of the window each; the one that holds every other byte stands still.
    for name in ["weighted", "redundant"] {
        let mut pair = Pair::new(name, 3, 1, 1 << 20, 7);
        let data = random_bytes(WINDOW / 2, 3);
        pair.ends[0].write(&data).unwrap();
        pair.ends[0].end();
        pair.blackholed[1] = true;
        for _ in 0..1500 {
            pair.step(false);
        }
        pair.kill(1);
        pair.receive(&data, 100_000);
    }
}

#[test]
fn no_more_than_the_window_waits_for_an_application_that_takes_nothing() {
    let mut pair = Pair::new("earliest", 2, 1000, 100_000, 7);
    pair.ends[0].write(&random_bytes(3 * WINDOW, 1)).unwrap();
    let mut slices = Vec::new();
    for _ in 0..3000 {
        pair.now_ns += 1_000_000;
        pair.pump(0);
        for slot in 0..2 {
            let data: Vec<u8> = pair.pipes[slot][0].bytes.drain(..).collect();
            let slice = Slice::copy_of(&data);
            pair.ends[1].on_slice(slot, &slice, &mut slices).unwrap();
        }
        pair.pump(1);
        for slot in 0..2 {
            pair.deliver(0, slot);
        }
    }
    let got: usize = slices.iter().map(|slice| slice.len()).sum();
    assert_eq!(got, WINDOW);
    pair.ends[1].on_consumed(got);
    for _ in 0..3000 {
        pair.step(false);
    }
    assert_eq!(pair.got[1].len(), 2 * WINDOW);
}

#[test]
fn a_stream_ends_properly_after_last_alone() {
    let mut pair = Pair::new("weighted", 2, 100, 1000, 7);
    for side in 0..2 {
        pair.ends[side].end();
    }
    while !pair.is_done() {
        pair.step(false);
    }
    assert!(!pair.ends[0].on_stream_end(0).unwrap());
    pair.ends[0].shut();
    for _ in 0..100 {
        pair.step(false);
    }
    assert!(pair.pipes[1][0].ended);
    assert!(pair.ends[1].on_stream_end(1).unwrap());
}

#[test]
fn the_rest_of_a_frame_leaves_whole_though_others_have_overtaken_it() {
    // The black hole takes part of a frame; it comes back after all of the frame was acknowledged.
    let mut pair = Pair::new("weighted", 2, 100, 1050, 7);
    let data = random_bytes(50_000, 3);
    pair.ends[0].write(&data).unwrap();
    pair.blackholed[1] = true;
    pair.receive(&data, 3000);
    let more = random_bytes(50_000, 4);
    pair.blackholed[1] = false;
    pair.ends[0].write(&more).unwrap();
    pair.receive(&[data, more].concat(), 3000);
}
