//! How long something took: figures of many durations in little memory.

/// Two digits of a duration: an upper bound of a quantile is less than 1 % too high.
const DIGITS: u8 = 2;

/// Durations in nanoseconds, counted.
#[derive(Clone, Debug)]
pub struct Durations {
    counts: hdrhistogram::Histogram<u32>,
    sum_ns: u64,
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            counts: hdrhistogram::Histogram::new(DIGITS).expect("a number of digits from 0 to 5"),
            sum_ns: 0,
        }
    }
}

impl Durations {
    /// Counts one duration.
    pub fn record(&mut self, duration_ns: u64) {
        // It grows up to the longest: only a duration beyond all memory is refused.
        self.counts
            .record(duration_ns)
            .expect("a histogram that grows");
        self.sum_ns = self.sum_ns.saturating_add(duration_ns);
    }

    /// The arithmetic mean in nanoseconds, exact; `None` of nothing.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.counts.is_empty()).then(|| self.sum_ns as f64 / self.counts.len() as f64)
    }

    /// The longest duration in nanoseconds; `None` of nothing.
    pub fn max_ns(&self) -> Option<u64> {
        self.quantile_ns(1.0)
    }

    /// The `q`-quantile (0 to 1) in nanoseconds; `None` of nothing.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        (!self.counts.is_empty()).then(|| self.counts.value_at_quantile(q))
    }
}
