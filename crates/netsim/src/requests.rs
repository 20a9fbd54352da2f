//! Requests and their answers: who asks when, for how much, and how long it takes.

use std::collections::VecDeque;

use crate::description::Sizes;
use crate::metrics::Histogram;
use crate::random::{exponential, unit, SplitMix64};
use crate::time::Nanos;

/// When the next request is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loop {
    /// At the times of a Poisson process, whether or not earlier ones are answered.
    Open {
        /// Mean time between requests.
        mean_ns: f64,
    },
    /// This many users ask, wait for the whole answer, think and ask again.
    Closed {
        /// How many.
        users: u32,
        /// Mean time that they think.
        think_ns: f64,
    },
}

/// First draws that somebody else has made.
#[derive(Debug, Clone, Default)]
pub struct Drawn {
    /// Times between requests, or that users think.
    pub times: VecDeque<Nanos>,
    /// Bytes of answers.
    pub sizes: VecDeque<u64>,
}

/// The requests of a flow: made at its destination, answered by its source in the order in which they come.
#[derive(Debug, Clone)]
pub struct Requests {
    arrivals: Loop,
    sizes: Sizes,
    request_bytes: u32,
    times: SplitMix64,
    draws: SplitMix64,
    drawn: Drawn,
    /// Bytes of requests that the connection has not taken yet.
    unsent: u64,
    /// Bytes of the answers to requests that have not arrived.
    answers: VecDeque<u64>,
    /// Bytes of the next request that have arrived.
    arrived: u64,
}

impl Requests {
    /// Requests of `request_bytes` for `sizes`; `times` draws when, `draws` how much, after what is `drawn` already.
    pub fn new(
        arrivals: Loop,
        sizes: Sizes,
        request_bytes: u32,
        [times, draws]: [SplitMix64; 2],
        drawn: Drawn,
    ) -> Self {
        Self {
            arrivals,
            sizes,
            request_bytes,
            times,
            draws,
            drawn,
            unsent: 0,
            answers: VecDeque::new(),
            arrived: 0,
        }
    }

    /// How many requests are under way to be made at the beginning, and how long after it.
    pub fn first(&mut self) -> (u32, Nanos) {
        match self.arrivals {
            Loop::Open { mean_ns } => (1, self.time(mean_ns)),
            Loop::Closed { users, .. } => (users, 0),
        }
    }

    fn time(&mut self, mean_ns: f64) -> Nanos {
        let drawn = self.drawn.times.pop_front();
        drawn.unwrap_or_else(|| exponential(&mut self.times, mean_ns))
    }

    /// The time to the next request of an open loop.
    pub fn gap(&mut self) -> Option<Nanos> {
        match self.arrivals {
            Loop::Open { mean_ns } => Some(self.time(mean_ns)),
            Loop::Closed { .. } => None,
        }
    }

    /// How long a user of a closed loop thinks.
    pub fn think(&mut self) -> Option<Nanos> {
        match self.arrivals {
            Loop::Open { .. } => None,
            Loop::Closed { think_ns, .. } => Some(self.time(think_ns)),
        }
    }

    /// Make a request: the bytes of its answer.
    pub fn ask(&mut self) -> u64 {
        let drawn = self.drawn.sizes.pop_front();
        let size = drawn.unwrap_or_else(|| draw(&self.sizes, &mut self.draws));
        self.unsent += u64::from(self.request_bytes);
        self.answers.push_back(size);
        size
    }

    /// Bytes of requests that wait for room.
    pub fn unsent(&self) -> u32 {
        self.unsent.min(u64::from(u32::MAX)) as u32
    }

    /// Note that the connection took bytes of requests.
    pub fn on_sent(&mut self, bytes: u32) {
        self.unsent -= u64::from(bytes);
    }

    /// Note that bytes of requests have arrived: the bytes of the answers to those that are complete.
    pub fn on_arrived(&mut self, bytes: u64) -> u64 {
        self.arrived += bytes;
        let mut answers = 0;
        while self.arrived >= u64::from(self.request_bytes) {
            self.arrived -= u64::from(self.request_bytes);
            answers += self.answers.pop_front().unwrap_or(0);
        }
        answers
    }
}

/// A size in bytes, at least 1.
fn draw(sizes: &Sizes, rng: &mut SplitMix64) -> u64 {
    match sizes {
        Sizes::Fixed { size_bytes } => *size_bytes,
        // In millionths of a byte, to be rounded up.
        Sizes::Exponential { mean_bytes } => exponential(rng, mean_bytes * 1e6)
            .div_ceil(1_000_000)
            .max(1),
        Sizes::Empirical { cdf, scale } => {
            let share = unit(rng);
            let above = cdf.partition_point(|&(_, upto)| upto < share);
            let (size, upto) = cdf[above.min(cdf.len() - 1)];
            let bytes = match above.checked_sub(1).map(|below| cdf[below]) {
                Some((smaller, from)) if upto > from => {
                    smaller + (size - smaller) * (share - from) / (upto - from)
                }
                _ => size,
            };
            ((bytes * scale + 0.5) as u64).max(1)
        }
    }
}

/// What is to arrive whole: files and answers, and how long each took from when it was wanted.
#[derive(Debug, Clone, Default)]
pub struct Transfers {
    /// Where each that is not whole ends in the flow's bytes, when it was wanted, and whether it counts.
    open: VecDeque<(u64, Nanos, bool)>,
    end: u64,
    /// Those that count and were wanted.
    pub started: u64,
    /// How long those took that count and are whole.
    pub times: Histogram,
}

impl Transfers {
    /// Note that the next `bytes` are wanted from now on; `counts` unless it is before the measurement.
    pub fn want(&mut self, now: Nanos, bytes: u64, counts: bool) {
        self.end += bytes;
        self.started += u64::from(counts);
        self.open.push_back((self.end, now, counts));
    }

    /// Note that all before `offset` has been read: how many have become whole.
    pub fn on_read(&mut self, now: Nanos, offset: u64) -> u32 {
        let mut whole = 0;
        while let Some(&(_, wanted, counts)) = self.open.front().filter(|open| open.0 <= offset) {
            self.open.pop_front();
            whole += 1;
            if counts {
                self.times.record(now - wanted, 1);
            }
        }
        whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{generator, Purpose, SeedableRng};

    fn mean(sizes: &Sizes, count: u32) -> f64 {
        let mut rng = generator(2, Purpose::Sizes, 0);
        let sum: u64 = (0..count).map(|_| draw(sizes, &mut rng)).sum();
        sum as f64 / f64::from(count)
    }

    #[test]
    fn sizes_have_their_means() {
        assert_eq!(mean(&Sizes::Fixed { size_bytes: 7 }, 10), 7.0);
        let exponential = mean(&Sizes::Exponential { mean_bytes: 5000.0 }, 400_000);
        assert!((exponential / 5000.5 - 1.0).abs() < 0.005, "{exponential}");
        // A tenth is of 100 bytes, four tenths lie evenly up to 200, half up to 1000; all times 3.
        let cdf = vec![(100.0, 0.1), (200.0, 0.5), (1000.0, 1.0)];
        let empirical = mean(&Sizes::Empirical { cdf, scale: 3.0 }, 400_000);
        let expected = 3.0 * (0.1 * 100.0 + 0.4 * 150.0 + 0.5 * 600.0);
        assert!((empirical / expected - 1.0).abs() < 0.005, "{empirical}");
    }

    #[test]
    fn answers_follow_the_requests_that_are_complete() {
        let sizes = Sizes::Fixed { size_bytes: 1000 };
        let users = Loop::Closed {
            users: 2,
            think_ns: 0.0,
        };
        let draws = [1, 2].map(SplitMix64::seed_from_u64);
        let mut requests = Requests::new(users, sizes, 100, draws, Drawn::default());
        assert_eq!(requests.first(), (2, 0));
        assert_eq!((requests.ask(), requests.ask()), (1000, 1000));
        assert_eq!(requests.unsent(), 200);
        requests.on_sent(150);
        assert_eq!(requests.unsent(), 50);
        assert_eq!(requests.on_arrived(99), 0);
        assert_eq!(requests.on_arrived(101), 2000);
    }

    #[test]
    fn transfers_count_from_when_they_were_wanted() {
        let mut transfers = Transfers::default();
        transfers.want(10, 100, false);
        transfers.want(20, 50, true);
        transfers.want(30, 50, true);
        assert_eq!(transfers.on_read(40, 149), 1);
        assert_eq!(transfers.on_read(60, 150), 1);
        assert_eq!((transfers.started, transfers.times.max_ns()), (2, Some(40)));
    }
}
