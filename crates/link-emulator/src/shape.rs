//! What one direction of a link is.

/// Largest rate in bit/s, delay in microseconds and jitter in microseconds (the bounds of `topologies.model.Link`).
pub const MAX_RATE_BPS: f64 = 1e13;
/// See [`MAX_RATE_BPS`].
pub const MAX_DELAY_US: f64 = 10e6;

/// The properties of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Transmission rate in bit/s over whole Ethernet frames (no preamble, no frame check sequence); `None`: infinite.
    pub rate_bps: Option<f64>,
    /// Propagation delay in nanoseconds.
    pub delay_ns: u64,
    /// Most packets that may wait for the transmitter; the one in service does not count. `None`: unlimited.
    pub queue_packets: Option<u64>,
    /// Most bytes that may wait for the transmitter, counted alike. `None`: unlimited.
    pub queue_bytes: Option<u64>,
    /// Probability that a packet is lost, drawn as it arrives: a lost packet takes no queue space and no rate.
    pub loss: f64,
    /// Extra delay in nanoseconds, drawn uniformly from 0 to this; a packet never overtakes another.
    pub jitter_ns: u64,
    /// Seed of the loss and jitter sequences.
    pub seed: u64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            rate_bps: None,
            delay_ns: 0,
            queue_packets: None,
            queue_bytes: None,
            loss: 0.0,
            jitter_ns: 0,
            seed: 1,
        }
    }
}

impl Shape {
    /// Time to transmit a frame, in nanoseconds, rounded up so that the rate is never exceeded.
    pub fn service_ns(&self, size_bytes: u32) -> u64 {
        self.rate_bps
            .map_or(0, |rate| (f64::from(size_bytes) * 8e9 / rate).ceil() as u64)
    }
}

/// A change of some properties; `None` leaves one as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShapeChange {
    /// New rate; `Some(None)` is infinite.
    pub rate_bps: Option<Option<f64>>,
    /// New delay in nanoseconds.
    pub delay_ns: Option<u64>,
    /// New limit in packets; `Some(None)` is unlimited.
    pub queue_packets: Option<Option<u64>>,
    /// New limit in bytes; `Some(None)` is unlimited.
    pub queue_bytes: Option<Option<u64>>,
    /// New loss probability.
    pub loss: Option<f64>,
    /// New jitter in nanoseconds.
    pub jitter_ns: Option<u64>,
    /// The seed; a new one starts the loss and jitter sequences afresh.
    pub seed: Option<u64>,
}

impl ShapeChange {
    /// Writes the changed properties into `shape`.
    pub fn apply(&self, shape: &mut Shape) {
        fn assign<T: Clone>(target: &mut T, change: &Option<T>) {
            if let Some(value) = change {
                target.clone_from(value);
            }
        }
        assign(&mut shape.rate_bps, &self.rate_bps);
        assign(&mut shape.delay_ns, &self.delay_ns);
        assign(&mut shape.queue_packets, &self.queue_packets);
        assign(&mut shape.queue_bytes, &self.queue_bytes);
        assign(&mut shape.loss, &self.loss);
        assign(&mut shape.jitter_ns, &self.jitter_ns);
        assign(&mut shape.seed, &self.seed);
    }
}
