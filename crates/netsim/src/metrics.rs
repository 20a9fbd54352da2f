//! Figures made as the run goes: histograms and series, so that memory does not grow with the packets.

use crate::time::Nanos;

const SUB_BITS: u32 = 7;
const SUB_BUCKETS: u64 = 1 << SUB_BITS;

/// A log-linear histogram of durations weighted by bytes: 128 buckets to the octave, so a quantile is within 0.4 %.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    buckets: Vec<u64>,
    weight: u64,
    sum: u128,
    max: Nanos,
}

impl Histogram {
    /// Count a duration `weight` times.
    pub fn record(&mut self, duration: Nanos, weight: u64) {
        let bucket = bucket_of(duration);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += weight;
        self.weight += weight;
        self.sum += u128::from(duration) * u128::from(weight);
        self.max = self.max.max(duration);
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
        if self.weight == 0 {
            return None;
        }
        let rank = ((q * self.weight as f64).ceil() as u64).clamp(1, self.weight);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(middle_of(bucket as u64).min(self.max));
            }
        }
        Some(self.max)
    }
}

fn bucket_of(value: Nanos) -> usize {
    if value < SUB_BUCKETS {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros();
    let sub = value >> (octave - SUB_BITS) & (SUB_BUCKETS - 1);
    (u64::from(octave - SUB_BITS + 1) * SUB_BUCKETS + sub) as usize
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
    current: Interval,
    series: Vec<Interval>,
    measuring: bool,
}

impl Meter {
    /// Begin to measure.
    pub fn start(&mut self) {
        self.measuring = true;
        self.current = Interval::default();
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
    use mstcp_core::rng::SplitMix64;

    #[test]
    fn nothing_has_no_figures() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.mean_ns(), empty.max_ns(), empty.quantile_ns(0.5)),
            (None, None, None)
        );
    }

    #[test]
    fn quantiles_are_close_and_mean_and_maximum_exact() {
        let mut rng = SplitMix64::new(11);
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
        meter.start();
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
