//! One direction of a link: a queue, a transmitter that serves it at a rate, and a pipe of a given delay.
//!
//! A packet that arrives while the transmitter is idle enters service at once, else it waits. Service takes
//! `size * 8 / rate`; then the packet travels for `delay + jitter` and is due. The queue limits count the packets
//! that wait; a packet that would exceed them on arrival is dropped (tail drop).
//!
//! The transmitter is a virtual clock: when a packet enters service is worked out from arrival times alone, so
//! neither drops nor due times depend on when, or how often, the caller looks (`tests::the_callers_timing_is_irrelevant`).

use std::collections::VecDeque;

use netsim::random::unit;
use rand_xoshiro::SplitMix64;

use crate::random::generator;
use crate::shape::{Shape, ShapeChange};

/// A queue record is about 40 bytes; a burst's memory above this many records is given back when the burst is over.
const KEPT_RECORDS: usize = 4096;

/// Why a packet was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The link is down.
    Down,
    /// Lost by the random draw.
    Loss,
    /// The queue is full.
    Queue,
}

/// A packet that has arrived at the far end.
#[derive(Debug, PartialEq, Eq)]
pub struct Release<T> {
    /// When it was due, in nanoseconds.
    pub due_ns: u64,
    /// Its length in bytes.
    pub size_bytes: u32,
    /// What was offered.
    pub payload: T,
}

/// Packets and bytes in one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Occupancy {
    fn add(&mut self, size_bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(size_bytes);
    }

    fn subtract(&mut self, size_bytes: u32) {
        self.packets -= 1;
        self.bytes -= u64::from(size_bytes);
    }
}

#[derive(Debug)]
struct Record<T> {
    /// Arrival time while the packet waits, due time from the start of its service.
    time_ns: u64,
    size_bytes: u32,
    payload: T,
}

/// One direction of a link, holding payloads of type `T`.
#[derive(Debug)]
pub struct Shaper<T> {
    shape: Shape,
    stream: String,
    is_up: bool,
    /// The packets in service or in the pipe, then those that wait.
    records: VecDeque<Record<T>>,
    in_flight: Occupancy,
    waiting: Occupancy,
    transmitter_free_ns: u64,
    last_arrival_ns: u64,
    last_due_ns: u64,
    loss: SplitMix64,
    jitter: SplitMix64,
}

impl<T> Shaper<T> {
    /// Makes a direction that is up. `stream` tells its random sequences from those of others with the same seed.
    pub fn new(shape: Shape, stream: &str) -> Self {
        let (loss, jitter) = generators(shape.seed, stream);
        Self {
            shape,
            stream: stream.to_owned(),
            is_up: true,
            records: VecDeque::new(),
            in_flight: Occupancy::default(),
            waiting: Occupancy::default(),
            transmitter_free_ns: 0,
            last_arrival_ns: 0,
            last_due_ns: 0,
            loss,
            jitter,
        }
    }

    /// Offers a packet that arrived at `now_ns`; `payload` is made only if the packet is accepted.
    ///
    /// A time before an earlier arrival's counts as that arrival's.
    ///
    /// # Errors
    /// The reason why the packet was dropped.
    pub fn offer(
        &mut self,
        now_ns: u64,
        size_bytes: u32,
        payload: impl FnOnce() -> T,
    ) -> Result<(), DropReason> {
        let now_ns = now_ns.max(self.last_arrival_ns);
        self.last_arrival_ns = now_ns;
        self.advance(now_ns);
        // Drawn for every arrival, so that the n-th packet's fate depends on the seed and n alone.
        let is_lost = unit(&mut self.loss) < self.shape.loss;
        if !self.is_up {
            return Err(DropReason::Down);
        }
        if is_lost {
            return Err(DropReason::Loss);
        }
        let must_wait = self.transmitter_free_ns > now_ns;
        if must_wait && !self.has_room(size_bytes) {
            return Err(DropReason::Queue);
        }
        self.waiting.add(size_bytes);
        self.records.push_back(Record {
            time_ns: now_ns,
            size_bytes,
            payload: payload(),
        });
        // If the caller has popped past this arrival already (time stamps lag the clock), the packet before it may be
        // gone though its service ends only now; this one is next whatever comes.
        let is_next = self.in_flight.packets == 0;
        self.advance(if is_next {
            now_ns.max(self.transmitter_free_ns)
        } else {
            now_ns
        });
        Ok(())
    }

    /// The packet that is due next and when, in nanoseconds; `None` if there is no packet.
    pub fn peek(&self) -> Option<(u64, &T)> {
        debug_assert!(
            self.in_flight.packets > 0 || self.records.is_empty(),
            "the transmitter idles while packets wait"
        );
        self.records
            .front()
            .map(|record| (record.time_ns, &record.payload))
    }

    /// Takes the next packet if it is due by `now_ns`.
    pub fn pop(&mut self, now_ns: u64) -> Option<Release<T>> {
        // First, so that the transmitter is never left idle with packets waiting.
        self.advance(now_ns);
        self.peek().filter(|&(due_ns, _)| due_ns <= now_ns)?;
        let Record {
            time_ns: due_ns,
            size_bytes,
            payload,
        } = self.records.pop_front()?;
        self.in_flight.subtract(size_bytes);
        if self.records.is_empty() && self.records.capacity() > KEPT_RECORDS {
            self.records.shrink_to(KEPT_RECORDS / 4);
        }
        Some(Release {
            due_ns,
            size_bytes,
            payload,
        })
    }

    /// Changes properties at `now_ns`, for the packets that are not in service by then.
    ///
    /// A lowered queue limit does not drop packets that already wait.
    pub fn change(&mut self, now_ns: u64, change: &ShapeChange) {
        self.advance(now_ns);
        let old_seed = self.shape.seed;
        change.apply(&mut self.shape);
        if self.shape.seed != old_seed {
            (self.loss, self.jitter) = generators(self.shape.seed, &self.stream);
        }
    }

    /// Takes the link up or down. Going down returns the payloads of all packets on it, which are lost.
    pub fn set_up(&mut self, up: bool) -> impl Iterator<Item = T> + '_ {
        self.is_up = up;
        let lost = if up { 0 } else { self.records.len() };
        if !up {
            self.transmitter_free_ns = 0;
            self.in_flight = Occupancy::default();
            self.waiting = Occupancy::default();
        }
        self.records.drain(..lost).map(|record| record.payload)
    }

    /// Whether the link is up.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    /// The properties now.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Packets that wait for the transmitter, as of the last call.
    pub fn waiting(&self) -> Occupancy {
        self.waiting
    }

    /// Packets in service or in the pipe, as of the last call.
    pub fn in_flight(&self) -> Occupancy {
        self.in_flight
    }

    fn has_room(&self, size_bytes: u32) -> bool {
        let packets_fit = self
            .shape
            .queue_packets
            .map_or(true, |limit| self.waiting.packets < limit);
        let bytes_fit = self.shape.queue_bytes.map_or(true, |limit| {
            self.waiting.bytes + u64::from(size_bytes) <= limit
        });
        packets_fit && bytes_fit
    }

    /// Puts the packets into service whose turn comes by `now_ns`; the other calls do it by themselves.
    pub fn advance(&mut self, now_ns: u64) {
        while let Some(record) = self.records.get_mut(self.in_flight.packets as usize) {
            let start_ns = record.time_ns.max(self.transmitter_free_ns);
            if start_ns > now_ns {
                break;
            }
            self.transmitter_free_ns = start_ns + self.shape.service_ns(record.size_bytes);
            let jitter_ns = match self.shape.jitter_ns {
                0 => 0,
                limit => (unit(&mut self.jitter) * (limit + 1) as f64) as u64,
            };
            // The floor keeps the order when delay falls or jitter differs.
            let due_ns =
                (self.transmitter_free_ns + self.shape.delay_ns + jitter_ns).max(self.last_due_ns);
            self.last_due_ns = due_ns;
            record.time_ns = due_ns;
            self.waiting.subtract(record.size_bytes);
            self.in_flight.add(record.size_bytes);
        }
    }
}

fn generators(seed: u64, stream: &str) -> (SplitMix64, SplitMix64) {
    let make = |purpose: &str| generator(seed, &format!("{stream} {purpose}"));
    (make("loss"), make("jitter"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (gap to the arrival before in ns, size in bytes)
    type Arrival = (u64, u32);

    #[derive(Debug, Default, PartialEq)]
    struct Outcome {
        refusals: Vec<Option<DropReason>>,
        releases: Vec<Release<usize>>,
    }

    /// Runs arrivals through a shaper; `look_every` is how often the caller polls, in ns.
    fn run(shape: &Shape, arrivals: &[Arrival], look_every: Option<u64>) -> Outcome {
        let mut shaper = Shaper::new(shape.clone(), "test");
        let mut outcome = Outcome::default();
        let mut now = 0;
        for (number, &(gap, size)) in arrivals.iter().enumerate() {
            let arrival = now + gap;
            while let Some(step) = look_every {
                now += step;
                if now > arrival {
                    break;
                }
                while let Some(release) = shaper.pop(now) {
                    outcome.releases.push(release);
                }
            }
            now = arrival;
            outcome
                .refusals
                .push(shaper.offer(now, size, || number).err());
        }
        while let Some((due, _)) = shaper.peek() {
            assert!(shaper
                .pop(due.saturating_sub(1))
                .map_or(true, |release| release.due_ns < due));
            outcome.releases.extend(shaper.pop(due));
        }
        assert_eq!((shaper.waiting(), shaper.in_flight()), Default::default());
        outcome
    }

    fn times(arrivals: &[Arrival]) -> Vec<u64> {
        arrivals
            .iter()
            .scan(0, |now, &(gap, _)| {
                *now += gap;
                Some(*now)
            })
            .collect()
    }

    fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
        prop::collection::vec((0u64..300_000, 60u32..1515), 1..120)
    }

    prop_compose! {
        fn shapes()(
            rate_bps in prop::option::of(1e5..1e9f64),
            delay_ns in 0u64..5_000_000,
            queue_packets in prop::option::of(0u64..20),
            queue_bytes in prop::option::of(0u64..20_000),
            loss in prop_oneof![Just(0.0), 0.0..0.5f64],
            jitter_ns in prop_oneof![Just(0), 0u64..2_000_000],
            seed: u64,
        ) -> Shape {
            Shape { rate_bps, delay_ns, queue_packets, queue_bytes, loss, jitter_ns, seed }
        }
    }

    proptest! {
        #[test]
        fn every_packet_is_released_once_in_order_or_refused(shape in shapes(), arrivals in arrivals()) {
            let outcome = run(&shape, &arrivals, None);
            let accepted: Vec<usize> =
                (0..arrivals.len()).filter(|&number| outcome.refusals[number].is_none()).collect();
            let released: Vec<usize> = outcome.releases.iter().map(|release| release.payload).collect();
            prop_assert_eq!(released, accepted);
            prop_assert!(outcome.releases.windows(2).all(|pair| pair[0].due_ns <= pair[1].due_ns));
            prop_assert!(outcome.releases.iter().all(|r| r.size_bytes == arrivals[r.payload].1));
        }

        #[test]
        fn no_packet_is_early(shape in shapes(), arrivals in arrivals()) {
            let times = times(&arrivals);
            for release in run(&shape, &arrivals, None).releases {
                let least = times[release.payload] + shape.service_ns(release.size_bytes) + shape.delay_ns;
                prop_assert!(release.due_ns >= least, "{} before {least}", release.due_ns);
            }
        }

        #[test]
        fn no_window_exceeds_the_rate(mut shape in shapes(), rate in 1e5..1e9f64, arrivals in arrivals()) {
            (shape.rate_bps, shape.jitter_ns) = (Some(rate), 0);
            let releases = run(&shape, &arrivals, None).releases;
            for (first, start) in releases.iter().enumerate() {
                let mut bits = 0.0;
                for end in &releases[first + 1..] {
                    bits += f64::from(end.size_bytes) * 8.0;
                    let window_s = (end.due_ns - start.due_ns) as f64 * 1e-9;
                    prop_assert!(bits <= rate * window_s * (1.0 + 1e-9) + 1e-6);
                }
            }
        }

        #[test]
        fn the_callers_timing_is_irrelevant(shape in shapes(), arrivals in arrivals(), step in 1_000u64..500_000) {
            prop_assert_eq!(run(&shape, &arrivals, None), run(&shape, &arrivals, Some(step)));
        }

        /// The obviously right model: one transmitter, all times kept, counted afresh for every arrival.
        #[test]
        fn tail_drop_agrees_with_a_plain_model(mut shape in shapes(), rate in 1e5..1e8f64, arrivals in arrivals()) {
            (shape.rate_bps, shape.loss, shape.jitter_ns) = (Some(rate), 0.0, 0);
            let outcome = run(&shape, &arrivals, None);
            let mut served: Vec<(u64, u64, u32)> = Vec::new(); // start, end, size
            for (number, &now) in times(&arrivals).iter().enumerate() {
                let size = arrivals[number].1;
                let free = served.last().map_or(0, |&(_, end, _)| end);
                let waiting: Vec<u64> =
                    served.iter().filter(|&&(start, ..)| start > now).map(|&(.., size)| u64::from(size)).collect();
                let fits = free <= now
                    || (shape.queue_packets.map_or(true, |limit| (waiting.len() as u64) < limit)
                        && shape.queue_bytes.map_or(true, |limit| waiting.iter().sum::<u64>() + u64::from(size) <= limit));
                prop_assert_eq!(outcome.refusals[number], (!fits).then_some(DropReason::Queue));
                if fits {
                    let start = free.max(now);
                    served.push((start, start + shape.service_ns(size), size));
                }
            }
            let due: Vec<u64> = outcome.releases.iter().map(|release| release.due_ns).collect();
            prop_assert_eq!(due, served.iter().map(|&(_, end, _)| end + shape.delay_ns).collect::<Vec<_>>());
        }

        #[test]
        fn equal_seeds_lose_the_same_packets(mut shape in shapes(), arrivals in arrivals(), gap in 0u64..1000) {
            (shape.rate_bps, shape.loss) = (None, 0.3);
            let elsewhen: Vec<Arrival> = arrivals.iter().map(|&(_, size)| (gap, size)).collect();
            let refusals = run(&shape, &arrivals, None).refusals;
            prop_assert_eq!(&refusals, &run(&shape, &elsewhen, None).refusals);
        }
    }

    #[test]
    fn the_loss_ratio_is_the_one_asked_for() {
        let arrivals = vec![(1000, 60); 100_000];
        let shape = Shape {
            loss: 0.1,
            ..Shape::default()
        };
        let lost = run(&shape, &arrivals, None)
            .refusals
            .iter()
            .flatten()
            .count();
        // Four standard deviations of a binomial distribution.
        assert!(
            (lost as f64 - 10_000.0).abs() < 4.0 * 9000f64.sqrt(),
            "{lost} of 100000"
        );
    }

    #[test]
    fn jitter_fills_its_range() {
        let arrivals = vec![(1_000_000, 60); 10_000];
        let shape = Shape {
            delay_ns: 500,
            jitter_ns: 1000,
            ..Shape::default()
        };
        let outcome = run(&shape, &arrivals, None);
        let delays = outcome
            .releases
            .iter()
            .map(|r| r.due_ns - 1_000_000 * (r.payload as u64 + 1));
        let (least, most) = delays.fold((u64::MAX, 0), |(least, most), d| {
            (least.min(d), most.max(d))
        });
        assert!(
            (500..510).contains(&least) && (1490..=1500).contains(&most),
            "{least} to {most}"
        );
    }

    fn ten_mbit() -> Shaper<u32> {
        // 1250 bytes take 1 ms.
        Shaper::new(
            Shape {
                rate_bps: Some(10e6),
                ..Shape::default()
            },
            "test",
        )
    }

    fn drain(shaper: &mut Shaper<u32>) -> Vec<u64> {
        std::iter::from_fn(|| shaper.pop(u64::MAX))
            .map(|release| release.due_ns)
            .collect()
    }

    #[test]
    fn a_new_rate_holds_from_the_next_service_on() {
        let mut shaper = ten_mbit();
        for payload in 0..3 {
            shaper.offer(0, 1250, || payload).unwrap();
        }
        shaper.change(
            1_500_000,
            &ShapeChange {
                rate_bps: Some(Some(20e6)),
                ..ShapeChange::default()
            },
        );
        assert_eq!(drain(&mut shaper), [1_000_000, 2_000_000, 2_500_000]);
    }

    #[test]
    fn a_shorter_delay_does_not_reorder() {
        let mut shaper = ten_mbit();
        shaper.change(
            0,
            &ShapeChange {
                delay_ns: Some(9_000_000),
                ..ShapeChange::default()
            },
        );
        shaper.offer(0, 1250, || 0).unwrap();
        shaper.change(
            500_000,
            &ShapeChange {
                delay_ns: Some(0),
                ..ShapeChange::default()
            },
        );
        shaper.offer(600_000, 1250, || 1).unwrap();
        assert_eq!(drain(&mut shaper), [10_000_000, 10_000_000]);
    }

    #[test]
    fn only_a_new_seed_starts_the_draws_afresh() {
        let shape = |seed| Shape {
            loss: 0.5,
            seed,
            ..Shape::default()
        };
        let fates = |shaper: &mut Shaper<u32>, count: u32| -> Vec<bool> {
            (0..count)
                .map(|payload| shaper.offer(0, 60, || payload).is_ok())
                .collect()
        };
        let whole = fates(&mut Shaper::new(shape(1), "test"), 100);
        let mut shaper = Shaper::new(shape(1), "test");
        assert_eq!(fates(&mut shaper, 50), whole[..50]);
        let seed = |seed| ShapeChange {
            seed: Some(seed),
            ..ShapeChange::default()
        };
        shaper.change(0, &seed(1));
        assert_eq!(fates(&mut shaper, 50), whole[50..]);
        shaper.change(0, &seed(2));
        shaper.change(0, &seed(1));
        assert_eq!(fates(&mut shaper, 100), whole);
    }

    #[test]
    fn a_link_that_goes_down_loses_what_is_on_it() {
        let mut shaper = ten_mbit();
        (0..3).for_each(|payload| shaper.offer(0, 1250, || payload).unwrap());
        assert_eq!(shaper.set_up(false).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(shaper.offer(10, 1250, || 3), Err(DropReason::Down));
        assert_eq!(shaper.set_up(true).count(), 0);
        shaper.offer(20, 1250, || 4).unwrap();
        assert_eq!(drain(&mut shaper), [1_000_020]);
    }

    #[test]
    fn an_unlimited_queue_grows_and_shrinks() {
        let mut shaper = ten_mbit();
        (0..1_000_000).for_each(|payload| shaper.offer(0, 1250, || payload).unwrap());
        assert_eq!(shaper.waiting().packets, 999_999);
        assert_eq!(drain(&mut shaper).len(), 1_000_000);
        assert!(shaper.records.capacity() <= KEPT_RECORDS);
    }
}
