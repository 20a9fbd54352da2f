//! What applications write, and when.

use crate::random::{below, exponential, SplitMix64};
use crate::requests::Requests;
use crate::time::{Nanos, SECOND};

/// When an application writes.
#[derive(Debug, Clone)]
pub enum Source {
    /// Writes of one size at a constant rate.
    ConstantRate(Ticks),
    /// Writes of one size at the times of a Poisson process.
    Poisson {
        /// Mean time between writes.
        mean_ns: f64,
        /// Draws the times.
        rng: SplitMix64,
    },
    /// Writes of one size at a constant rate during on periods.
    OnOff(OnOff),
    /// As much as the send buffer takes, until all is written.
    Bulk,
    /// Answers to requests.
    Requests(Box<Requests>),
    /// Writes that were decided before.
    Listed(Listed),
}

impl Source {
    /// The time from a write (of requests in open loop: from a request) to the next; none for sources without such times.
    pub fn gap(&mut self) -> Option<Nanos> {
        match self {
            Self::ConstantRate(ticks) => Some(ticks.next_gap()),
            Self::Poisson { mean_ns, rng } => Some(exponential(rng, *mean_ns)),
            Self::OnOff(periods) => periods.next_gap(),
            Self::Bulk => None,
            Self::Requests(requests) => requests.gap(),
            Self::Listed(writes) => writes.gap(),
        }
    }
}

/// How late the writes of a rate are: each by a uniform draw. Their order stays, and no lateness adds up.
#[derive(Debug, Clone)]
pub struct Lateness {
    most: Nanos,
    last: Nanos,
    rng: SplitMix64,
}

impl Lateness {
    /// Each write is up to `most` late, which is no more than the time between two.
    pub fn new(most: Nanos, rng: SplitMix64) -> Self {
        Self { most, last: 0, rng }
    }

    /// The time from a write to the next one, which are due `gap` apart.
    pub fn gap(&mut self, gap: Nanos) -> Nanos {
        if self.most == 0 {
            return gap;
        }
        let before = std::mem::replace(&mut self.last, below(&mut self.rng, self.most + 1));
        gap + self.last - before
    }

    /// Skip ticks of a source whose next one, late as it is, comes at `time`: how many surely come before `bound`, and when
    /// the next one comes.
    pub fn skip(&mut self, source: &mut Source, time: Nanos, bound: Nanos) -> Option<(u64, Nanos)> {
        let (count, next) = source.skip(time - self.last, bound.saturating_sub(self.most))?;
        self.last = 0;
        Some((count, next + self.gap(0)))
    }
}

/// A bound of what an application writes of what lies before it, by the time that each byte takes.
///
/// Who could not write for a while makes up for [`Self::CATCH_UP`] and no more, as the sources of the live engine do.
#[derive(Debug, Clone, Copy)]
pub struct WriteRate {
    ns_per_byte: f64,
    allowed_ns: f64,
}

impl WriteRate {
    const CATCH_UP: f64 = 50e6;

    /// No faster than `rate_bps`, which is above 0.
    pub fn new(rate_bps: f64) -> Self {
        Self {
            ns_per_byte: 8e9 / rate_bps,
            allowed_ns: 0.0,
        }
    }

    /// Something lies before the application again.
    pub fn begin(&mut self, now: Nanos) {
        self.allowed_ns = self.allowed_ns.max(now as f64);
    }

    /// When the next write may be.
    pub fn next(&self) -> Nanos {
        self.allowed_ns.ceil() as Nanos
    }

    /// Note a write.
    pub fn on_written(&mut self, now: Nanos, bytes: u32) {
        let earliest = now as f64 - Self::CATCH_UP;
        self.allowed_ns = self.allowed_ns.max(earliest) + f64::from(bytes) * self.ns_per_byte;
    }
}

impl Source {
    /// Of a constant rate, from its tick at `time`: how many ticks come before `bound`, and when the next one is.
    pub fn skip(&mut self, time: Nanos, bound: Nanos) -> Option<(u64, Nanos)> {
        match self {
            Self::ConstantRate(ticks) if time < bound => Some(ticks.skip(time, bound)),
            _ => None,
        }
    }
}

/// Writes with their times since the first byte may be sent, in the order of time.
#[derive(Debug, Clone)]
pub struct Listed {
    writes: Vec<(Nanos, u32)>,
    position: usize,
}

impl Listed {
    /// These writes: times, which do not fall, and bytes.
    pub fn new(writes: Vec<(Nanos, u32)>) -> Self {
        Self {
            writes,
            position: 0,
        }
    }

    /// When the next write is; none after the last.
    pub fn next_time(&self) -> Option<Nanos> {
        self.writes.get(self.position).map(|&(time, _)| time)
    }

    /// The bytes of the next write, which is made with this.
    pub fn take(&mut self) -> u32 {
        let bytes = self
            .writes
            .get(self.position)
            .map_or(0, |&(_, bytes)| bytes);
        self.position += 1;
        bytes
    }

    fn gap(&self) -> Option<Nanos> {
        let next = self.writes.get(self.position + 1)?.0;
        Some(next - self.writes[self.position].0)
    }
}

/// Ticks of a constant rate, exact in the long run: fractions of a nanosecond are carried over.
#[derive(Debug, Clone)]
pub struct Ticks {
    whole: Nanos,
    remainder: u64,
    rate_bps: u64,
    carry: u64,
}

impl Ticks {
    /// The ticks at which `bytes` make `rate_bps` (not 0).
    pub fn new(bytes: u32, rate_bps: u64) -> Self {
        let work = u128::from(bytes) * 8 * u128::from(SECOND);
        let rate = u128::from(rate_bps);
        Self {
            whole: (work / rate) as Nanos,
            remainder: (work % rate) as u64,
            rate_bps,
            carry: 0,
        }
    }

    fn next_gap(&mut self) -> Nanos {
        self.carry += self.remainder;
        let more = self.carry >= self.rate_bps;
        if more {
            self.carry -= self.rate_bps;
        }
        self.whole + Nanos::from(more)
    }

    /// From the tick at `time`, before `bound`: how many ticks come before `bound`, and when the next one is.
    fn skip(&mut self, time: Nanos, bound: Nanos) -> (u64, Nanos) {
        let rate = u128::from(self.rate_bps);
        let work = u128::from(self.whole) * rate + u128::from(self.remainder);
        let needed = u128::from(bound - time) * rate - u128::from(self.carry);
        let count = needed.div_ceil(work);
        let passed = u128::from(self.carry) + count * work;
        self.carry = (passed % rate) as u64;
        (count as u64, time + (passed / rate) as Nanos)
    }
}

/// Ticks during on periods. Times count from the first tick, which begins the first on period.
#[derive(Debug, Clone)]
pub struct OnOff {
    ticks: Ticks,
    /// Begin and end of each.
    periods: Vec<(Nanos, Nanos)>,
    /// The period of the last tick.
    current: usize,
    /// The last tick.
    at: Nanos,
}

impl OnOff {
    /// On periods, of which there is one at least, of ticks as given.
    pub fn new(ticks: Ticks, periods: Vec<(Nanos, Nanos)>) -> Self {
        Self {
            ticks,
            periods,
            current: 0,
            at: 0,
        }
    }

    fn next_gap(&mut self) -> Option<Nanos> {
        let gap = self.ticks.next_gap();
        if self.at + gap < self.periods[self.current].1 {
            self.at += gap;
            return Some(gap);
        }
        let (begin, _) = *self.periods.get(self.current + 1)?;
        self.current += 1;
        self.ticks.carry = 0;
        Some(begin - std::mem::replace(&mut self.at, begin))
    }

    /// For how long it has been on until `time`.
    pub fn on_until(&self, time: Nanos) -> Nanos {
        let within = |&(begin, end): &(Nanos, Nanos)| end.min(time).saturating_sub(begin);
        self.periods.iter().map(within).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedableRng;
    use crate::time::MILLISECOND;

    #[test]
    fn a_constant_rate_is_exact_in_the_long_run() {
        let mut ticks = Ticks::new(536, 8_500_000);
        let total: Nanos = (0..8_500_000 / 8).map(|_| ticks.next_gap()).sum();
        assert_eq!(total, 536 * SECOND);
    }

    #[test]
    fn ticks_skipped_at_once_are_those_skipped_one_by_one() {
        for (bytes, rate_bps) in [
            (536, 8_500_000),
            (536, 1_000_000_000_000),
            (1, 9_999_999_967),
            (7, 3),
        ] {
            let (mut at_once, mut one_by_one) =
                (Ticks::new(bytes, rate_bps), Ticks::new(bytes, rate_bps));
            let mut time = at_once.next_gap();
            assert_eq!(time, one_by_one.next_gap());
            let mean = at_once.whole.max(1);
            for bound in [
                time + 1,
                time + mean,
                time + 3 * mean + 7,
                time + 1000 * mean,
            ] {
                if time >= bound {
                    continue;
                }
                let (mut count, mut next) = (0, time);
                while next < bound {
                    next += one_by_one.next_gap();
                    count += 1;
                }
                assert_eq!(
                    at_once.skip(time, bound),
                    (count, next),
                    "{bytes} {rate_bps} {bound}"
                );
                assert_eq!(at_once.carry, one_by_one.carry);
                time = next;
            }
        }
    }

    #[test]
    fn listed_writes_come_at_their_times() {
        let mut writes = Listed::new(vec![(5, 100), (5, 200), (9, 300)]);
        let mut time = writes.next_time().unwrap();
        let mut made = Vec::new();
        loop {
            let gap = writes.gap();
            made.push((time, writes.take()));
            match gap {
                Some(gap) => time += gap,
                None => break,
            }
        }
        assert_eq!(made, [(5, 100), (5, 200), (9, 300)]);
        assert_eq!(writes.next_time(), None);
    }

    #[test]
    fn periods_begin_with_a_tick() {
        let periods = [(0, 2500), (12_500, 15_000)].map(|(begin, end)| (begin * 1000, end * 1000));
        let mut source = OnOff::new(Ticks::new(125, 1_000_000), periods.to_vec());
        let gaps = std::iter::from_fn(|| source.next_gap());
        let gaps: Vec<Nanos> = gaps.map(|gap| gap / 1000).collect();
        assert_eq!(gaps, [1000, 1000, 10_500, 1000, 1000]);
        let on: Vec<Nanos> = [0, 2000, 2500, 9000, 12_500, 13_000, 15_000, 20_000]
            .iter()
            .map(|time| source.on_until(time * 1000) / 1000)
            .collect();
        assert_eq!(on, [0, 2000, 2500, 2500, 2500, 3000, 5000, 5000]);
    }

    #[test]
    fn late_ticks_keep_their_order_and_their_rate() {
        let mut late = Lateness::new(999, SplitMix64::seed_from_u64(5));
        let gaps: Vec<Nanos> = (0..10_000).map(|_| late.gap(1000)).collect();
        let total: Nanos = gaps.iter().sum();
        assert!((10_000_000..10_001_000).contains(&total), "{total}");
        assert!(gaps.iter().any(|&gap| gap < 200) && gaps.iter().any(|&gap| gap > 1800));
        // None of the skipped ones could have come later than the bound.
        let mut source = Source::ConstantRate(Ticks::new(125, 1_000_000_000));
        let mut late = Lateness::new(500, SplitMix64::seed_from_u64(5));
        let (count, next) = late.skip(&mut source, 0, 10_000).expect("ticks");
        assert_eq!(count, 10);
        assert!((10_000..=10_500).contains(&next), "{next}");
    }

    #[test]
    fn a_write_rate_holds_back_and_makes_up_for_a_while_and_no_more() {
        let mut rate = WriteRate::new(8e6);
        rate.begin(MILLISECOND);
        rate.on_written(MILLISECOND, 1000);
        assert_eq!(rate.next(), 2 * MILLISECOND);
        rate.on_written(SECOND, 1000);
        assert_eq!(rate.next(), 951 * MILLISECOND);
    }
}
