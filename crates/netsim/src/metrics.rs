//! Figures made as the run goes: histograms and series, so that memory does not grow with the packets.

use crate::prefetch::prefetch;
use crate::time::Nanos;

const SUB_BITS: u32 = 7;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;

/// Octaves of 64-bit durations: what is shorter than 128 ns is one.
const OCTAVES: usize = 64 - SUB_BITS as usize + 1;

/// The buckets of one octave of durations.
type Octave = [u64; SUB_BUCKETS as usize];

/// A log-linear histogram of durations weighted by bytes: 128 buckets to the octave, so a quantile is within 0.4 %.
///
/// Only octaves in which something was counted take memory, 1 KiB each: a flow's delays lie in a few.
#[derive(Debug, Clone)]
pub struct Histogram {
    weight: u64,
    sum: u128,
    max: Nanos,
    /// By octave: one more than the index of its buckets; 0: nothing was counted in it.
    places: [u8; OCTAVES],
    octaves: Vec<Octave>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            weight: 0,
            sum: 0,
            max: 0,
            places: [0; OCTAVES],
            octaves: Vec::new(),
        }
    }
}

impl Histogram {
    /// Count a duration `weight` times.
    pub fn record(&mut self, duration: Nanos, weight: u64) {
        let (octave, sub) = place_of(duration);
        if self.places[octave] == 0 {
            self.octaves.push([0; SUB_BUCKETS as usize]);
            self.places[octave] = self.octaves.len() as u8;
        }
        self.octaves[usize::from(self.places[octave]) - 1][sub] += weight;
        self.weight += weight;
        self.sum += u128::from(duration) * u128::from(weight);
        self.max = self.max.max(duration);
    }

    /// Fetch where a duration is counted.
    pub(crate) fn prefetch(&self, duration: Nanos) {
        let (octave, sub) = place_of(duration);
        let place = usize::from(self.places[octave]).wrapping_sub(1);
        if let Some(octave) = self.octaves.get(place) {
            prefetch(&octave[sub]);
        }
    }

    /// How much was counted.
    pub fn count(&self) -> u64 {
        self.weight
    }

    /// The arithmetic mean in nanoseconds, exact; none of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.weight > 0).then(|| self.sum as f64 / self.weight as f64)
    }

    /// The longest duration, exact; none of nothing.
    pub fn max_ns(&self) -> Option<Nanos> {
        (self.weight > 0).then_some(self.max)
    }

    /// The `q`-quantile (0 to 1): the middle of its bucket, never above the maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<Nanos> {
        self.quantiles_ns(&[q]).first().copied()
    }

    /// Several quantiles in one pass over the buckets; `qs` rise. None of nothing.
    pub fn quantiles_ns(&self, qs: &[f64]) -> Vec<Nanos> {
        let mut values = Vec::with_capacity(qs.len());
        let mut seen = 0;
        for (bucket, count) in self.counted() {
            seen += count;
            while let Some(&q) = qs.get(values.len()) {
                let rank = ((q * self.weight as f64).ceil() as u64).clamp(1, self.weight);
                if seen < rank {
                    break;
                }
                values.push(middle_of(bucket).min(self.max));
            }
        }
        values
    }

    /// The buckets in which something was counted, with how much, in order.
    fn counted(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let used = (0_u64..).zip(self.places).filter(|&(_, place)| place > 0);
        used.map(|(octave, place)| (octave, &self.octaves[usize::from(place) - 1]))
            .flat_map(|(octave, buckets)| {
                let numbered = (octave * SUB_BUCKETS..).zip(buckets.iter().copied());
                numbered.filter(|&(_, count)| count > 0)
            })
    }
}

/// The octave of a duration and its bucket in that. Octave 0 holds all that are shorter than 128 ns.
fn place_of(value: Nanos) -> (usize, usize) {
    if value < SUB_BUCKETS {
        return (0, value as usize);
    }
    let octave = 63 - value.leading_zeros();
    let sub = value >> (octave - SUB_BITS) & (SUB_BUCKETS - 1);
    ((octave - SUB_BITS + 1) as usize, sub as usize)
}

fn middle_of(bucket: u64) -> Nanos {
    if bucket < SUB_BUCKETS {
        return bucket;
    }
    let shift = bucket / SUB_BUCKETS - 1;
    let first = (SUB_BUCKETS + bucket % SUB_BUCKETS) << shift;
    first + ((1 << shift) >> 1)
}

/// Bytes and their delays in one interval of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// Bytes that were read.
    pub bytes: u64,
    /// Sum over them of their delay.
    pub delay_bytes_ns: u128,
}

/// What a flow's receiving application has read during the measurement.
#[derive(Debug, Default)]
pub struct Meter {
    /// Delay from write to in-order read, each byte counted.
    pub delay: Histogram,
    /// Bytes read during the measurement.
    pub bytes: u64,
    /// For how long an on/off source had been on when the measurement began.
    pub on_before: Nanos,
    current: Interval,
    series: Vec<Interval>,
    measuring: bool,
}

impl Meter {
    /// Begin to measure; an on/off source has been on for `on_before`.
    pub fn start(&mut self, on_before: Nanos) {
        self.measuring = true;
        self.on_before = on_before;
        self.current = Interval::default();
    }

    /// Whether the measurement has begun.
    pub fn is_measuring(&self) -> bool {
        self.measuring
    }

    /// Count bytes that were read `delay` after they were written.
    pub fn record(&mut self, bytes: u64, delay: Nanos) {
        if !self.measuring {
            return;
        }
        self.bytes += bytes;
        self.delay.record(delay, bytes);
        self.current.bytes += bytes;
        self.current.delay_bytes_ns += u128::from(bytes) * u128::from(delay);
    }

    /// End an interval of the series.
    pub fn sample(&mut self) {
        self.series.push(std::mem::take(&mut self.current));
    }

    /// The intervals so far.
    pub fn series(&self) -> &[Interval] {
        &self.series
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{RngCore, SeedableRng, SplitMix64};

    #[test]
    fn nothing_has_no_figures() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.mean_ns(), empty.max_ns(), empty.quantile_ns(0.5)),
            (None, None, None)
        );
        assert!(empty.quantiles_ns(&[0.0, 1.0]).is_empty());
    }

    #[test]
    fn only_octaves_in_use_take_memory() {
        let mut histogram = Histogram::default();
        for duration in [1 << 20, (1 << 21) - 1, 1 << 40] {
            histogram.record(duration, 1);
        }
        assert_eq!(histogram.octaves.len(), 2);
    }

    #[test]
    fn quantiles_are_close_and_mean_and_maximum_exact() {
        let mut rng = SplitMix64::seed_from_u64(11);
        for scale in [10u64, 1_000, 1_000_000, 1 << 40] {
            let mut values: Vec<Nanos> = (0..5_000).map(|_| rng.next_u64() % scale).collect();
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value, 3));
            values.sort_unstable();
            for q in [0.01, 0.5, 0.95, 0.99, 1.0] {
                let exact = values[((q * 5_000.0_f64).ceil() as usize).max(1) - 1];
                let told = histogram.quantile_ns(q).unwrap();
                assert!(
                    told.abs_diff(exact) as f64 <= 0.004 * exact as f64 + 1.0,
                    "{told} for {exact}"
                );
            }
            let qs = [0.0, 0.25, 0.25, 0.9, 1.0];
            let one_by_one: Vec<Nanos> = qs
                .iter()
                .filter_map(|&q| histogram.quantile_ns(q))
                .collect();
            assert_eq!(histogram.quantiles_ns(&qs), one_by_one);
            let mean = values.iter().map(|&value| value as f64).sum::<f64>() / 5_000.0;
            assert!((histogram.mean_ns().unwrap() / mean - 1.0).abs() < 1e-12);
            assert_eq!(histogram.max_ns(), values.last().copied());
        }
    }

    #[test]
    fn any_duration_can_be_recorded() {
        let mut histogram = Histogram::default();
        histogram.record(u64::MAX, 1);
        assert!(histogram.quantile_ns(0.5).unwrap() > u64::MAX / 256 * 255);
    }

    #[test]
    fn what_is_read_before_the_measurement_does_not_count() {
        let mut meter = Meter::default();
        meter.record(100, 5);
        meter.start(0);
        meter.record(10, 7);
        meter.sample();
        meter.sample();
        assert_eq!((meter.bytes, meter.delay.mean_ns()), (10, Some(7.0)));
        assert_eq!(
            meter.series()[0],
            Interval {
                bytes: 10,
                delay_bytes_ns: 70
            }
        );
        assert_eq!(meter.series()[1].bytes, 0);
    }
}
