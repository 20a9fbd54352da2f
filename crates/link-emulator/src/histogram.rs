//! A log-linear histogram of durations: 16 buckets to the octave, so a quantile is at most 1/16 too high.

const SUB_BITS: u32 = 4;
const SUB_BUCKETS: usize = 1 << SUB_BITS;
/// Longer durations (above 18 minutes) share the last bucket.
const OCTAVES: usize = 40;
const BUCKETS: usize = (OCTAVES - SUB_BITS as usize + 1) * SUB_BUCKETS;

/// Durations in nanoseconds, counted.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: Box<[u32]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum_ns: 0,
            max_ns: 0,
        }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, duration_ns: u64) {
        let bucket = &mut self.buckets[bucket_of(duration_ns)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
    }

    /// How many durations were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The arithmetic mean in nanoseconds, exact; `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_ns as f64 / self.count as f64)
    }

    /// The longest duration in nanoseconds, exact; `None` of nothing.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max_ns)
    }

    /// The `q`-quantile (0 to 1) in nanoseconds: the upper end of its bucket, never above the maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = ((q * self.count as f64).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (index, &bucket) in self.buckets.iter().enumerate() {
            seen += u64::from(bucket);
            if seen >= rank {
                return Some(upper_end(index).min(self.max_ns));
            }
        }
        Some(self.max_ns)
    }
}

fn bucket_of(value: u64) -> usize {
    if value < SUB_BUCKETS as u64 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros();
    let sub = (value >> (octave - SUB_BITS)) as usize & (SUB_BUCKETS - 1);
    ((octave - SUB_BITS + 1) as usize * SUB_BUCKETS + sub).min(BUCKETS - 1)
}

fn upper_end(index: usize) -> u64 {
    if index < SUB_BUCKETS {
        return index as u64;
    }
    let shift = (index / SUB_BUCKETS - 1) as u32;
    let first = ((SUB_BUCKETS + index % SUB_BUCKETS) as u64) << shift;
    first + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_has_no_figures() {
        let empty = Histogram::default();
        assert_eq!(
            (empty.mean_ns(), empty.quantile_ns(0.5), empty.max_ns()),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn quantiles_stay_within_a_sixteenth(
            mut values in prop::collection::vec(0u64..1 << 39, 1..300),
            q in 0.0f64..=1.0,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let told = histogram.quantile_ns(q).unwrap();
            prop_assert!(told >= exact && told - exact <= exact / 16, "{told} for {exact}");
            prop_assert_eq!(histogram.max_ns(), values.last().copied());
            prop_assert_eq!(histogram.count(), values.len() as u64);
        }

        #[test]
        fn any_duration_can_be_recorded(value: u64) {
            let mut histogram = Histogram::default();
            histogram.record(value);
            prop_assert_eq!(histogram.quantile_ns(1.0).unwrap() <= value, true);
        }
    }
}
