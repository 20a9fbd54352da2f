//! What one direction of a link is.

use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

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

/// A change of some properties, as requests have it; `None` leaves one as it is.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub struct ShapeChange {
    /// New rate; `Some(None)` is infinite.
    #[serde(deserialize_with = "rate_bps")]
    pub rate_bps: Option<Option<f64>>,
    /// New delay in nanoseconds, in requests microseconds.
    #[serde(rename = "delay_us", deserialize_with = "microseconds")]
    pub delay_ns: Option<u64>,
    /// New limit in packets; `Some(None)` is unlimited.
    #[serde(deserialize_with = "limit")]
    pub queue_packets: Option<Option<u64>>,
    /// New limit in bytes; `Some(None)` is unlimited.
    #[serde(deserialize_with = "limit")]
    pub queue_bytes: Option<Option<u64>>,
    /// New loss probability.
    #[serde(deserialize_with = "probability")]
    pub loss: Option<f64>,
    /// New jitter in nanoseconds, in requests microseconds.
    #[serde(rename = "jitter_us", deserialize_with = "microseconds")]
    pub jitter_ns: Option<u64>,
    /// The seed; a new one starts the loss and jitter sequences afresh.
    #[serde(deserialize_with = "whole")]
    pub seed: Option<u64>,
}

/// Read a JSON value, and refuse it with what is expected in its place.
fn value<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    expected: &str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    match read(&value) {
        Some(result) => Ok(Some(result)),
        None => Err(D::Error::custom(format!("must be {expected}, not {value}"))),
    }
}

fn or_null<T>(value: &Value, read: impl FnOnce(&Value) -> Option<T>) -> Option<Option<T>> {
    match value {
        Value::Null => Some(None),
        value => read(value).map(Some),
    }
}

fn rate_bps<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<f64>>, D::Error> {
    let expected =
        format!("a number above 0 and at most {MAX_RATE_BPS:e} (bit/s), or null for no limit");
    let rate = |value: &Value| {
        value
            .as_f64()
            .filter(|&bps| bps > 0.0 && bps <= MAX_RATE_BPS)
    };
    value(from, &expected, |value| or_null(value, rate))
}

fn microseconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let expected = format!("a number from 0 to {MAX_DELAY_US} (microseconds)");
    value(from, &expected, |value| {
        let us = value
            .as_f64()
            .filter(|us| (0.0..=MAX_DELAY_US).contains(us))?;
        Some((us * 1e3).round() as u64)
    })
}

fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    let expected = "a whole number from 0 up, or null for no limit";
    value(from, expected, |value| or_null(value, Value::as_u64))
}

fn probability<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    value(from, "a number from 0 to below 1", |value| {
        value.as_f64().filter(|loss| (0.0..1.0).contains(loss))
    })
}

fn whole<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    value(from, "a whole number from 0 up", Value::as_u64)
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
