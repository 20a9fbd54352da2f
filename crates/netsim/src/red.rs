//! Random early detection: a queue that drops at random before it is full (Floyd and Jacobson 1993), gently (Floyd 2000).

use serde::Deserialize;

use crate::random::{unit, SplitMix64};
use crate::wifi::math::power;

/// When a queue drops, by its average length in packets.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct RedSettings {
    /// Below this average nothing is dropped.
    pub min_packets: f64,
    /// From here on more than `max_probability`; from twice this on everything.
    pub max_packets: f64,
    /// The share that is dropped at `max_packets`.
    pub max_probability: f64,
    /// Of the present length in the average.
    #[serde(default = "default_weight")]
    pub weight: f64,
}

fn default_weight() -> f64 {
    0.002
}

impl RedSettings {
    /// Why they cannot be.
    pub fn problem(&self) -> Option<&'static str> {
        let probabilities = [self.max_probability, self.weight];
        if !(0.0 < self.min_packets
            && self.min_packets < self.max_packets
            && self.max_packets < 1e9)
        {
            return Some("min_packets is above 0 and below max_packets");
        }
        let fit = probabilities
            .iter()
            .all(|share| (1e-9..=1.0).contains(share));
        (!fit).then_some("max_probability and weight are above 0 and at most 1")
    }
}

/// The state of one queue.
#[derive(Debug)]
pub struct Red {
    settings: RedSettings,
    average: f64,
    /// Packets since the last drop.
    since: f64,
    rng: SplitMix64,
}

impl Red {
    /// An empty queue.
    pub fn new(settings: RedSettings, rng: SplitMix64) -> Self {
        Self {
            settings,
            average: 0.0,
            since: 0.0,
            rng,
        }
    }

    /// Whether the packet that arrives now is dropped; `packets` wait, and the transmitter was idle for the time of
    /// `idle_packets` packets before.
    pub fn drops(&mut self, packets: usize, idle_packets: f64) -> bool {
        let RedSettings {
            min_packets,
            max_packets,
            max_probability,
            weight,
        } = self.settings;
        if idle_packets > 0.0 {
            // As if this many packets had found the queue empty.
            self.average *= power(1.0 - weight, idle_packets);
        }
        self.average += weight * (packets as f64 - self.average);
        let share = if self.average < min_packets {
            self.since = 0.0;
            return false;
        } else if self.average < max_packets {
            max_probability * (self.average - min_packets) / (max_packets - min_packets)
        } else {
            max_probability + (1.0 - max_probability) * (self.average / max_packets - 1.0)
        };
        self.since += 1.0;
        // Spread evenly: uniform distances between drops (section 7).
        let spread = share / (1.0 - self.since * share).max(share);
        if unit(&mut self.rng) > spread {
            return false;
        }
        self.since = 0.0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedableRng;

    const SETTINGS: RedSettings = RedSettings {
        min_packets: 5.0,
        max_packets: 15.0,
        max_probability: 0.02,
        weight: 0.1,
    };

    fn share_at(packets: usize) -> f64 {
        let mut red = Red::new(SETTINGS, SplitMix64::seed_from_u64(3));
        for _ in 0..200 {
            red.drops(packets, 0.0);
        }
        (0..100_000).filter(|_| red.drops(packets, 0.0)).count() as f64 / 1e5
    }

    #[test]
    fn the_share_of_drops_follows_the_average_length() {
        assert_eq!(share_at(4), 0.0);
        // Uniform distances up to 1 / p have a mean of half of that: twice the share.
        for (packets, share) in [(10, 0.02), (15, 0.04)] {
            let dropped = share_at(packets);
            assert!((dropped / share - 1.0).abs() < 0.1, "{packets}: {dropped}");
        }
        assert_eq!(share_at(31), 1.0);
    }

    #[test]
    fn an_idle_time_empties_the_average() {
        let mut red = Red::new(SETTINGS, SplitMix64::seed_from_u64(3));
        for _ in 0..200 {
            red.drops(40, 0.0);
        }
        assert!(red.drops(40, 0.0));
        assert!((0..10).all(|_| !red.drops(0, 1000.0)));
    }

    #[test]
    fn settings_that_contradict_each_other_are_named() {
        assert_eq!(SETTINGS.problem(), None);
        let turned = RedSettings {
            min_packets: 20.0,
            ..SETTINGS
        };
        assert!(turned.problem().unwrap().starts_with("min_packets"));
    }
}
