//! Losses and jitter of a wire.

use super::LinkSettings;
use crate::random::{below, Bernoulli, SplitMix64};
use crate::time::Nanos;

/// What the wire draws for each packet.
#[derive(Debug)]
pub(super) struct Impairments {
    pub(super) loss: Option<(Bernoulli, SplitMix64)>,
    pub(super) jitter: Option<SplitMix64>,
    pub(super) last_arrival: Nanos,
}

impl Impairments {
    pub(super) fn new(
        settings: &LinkSettings,
        loss: SplitMix64,
        jitter: SplitMix64,
    ) -> Option<Box<Self>> {
        let impairments = Self::of(settings, loss, jitter);
        let any = impairments.loss.is_some() || impairments.jitter.is_some();
        any.then(|| Box::new(impairments))
    }

    pub(super) fn of(settings: &LinkSettings, loss: SplitMix64, jitter: SplitMix64) -> Self {
        Self {
            loss: (settings.loss > 0.0).then(|| (Bernoulli::new(settings.loss), loss)),
            jitter: (settings.jitter > 0).then_some(jitter),
            last_arrival: 0,
        }
    }

    pub(super) fn loses(&mut self) -> bool {
        let loss = self.loss.as_mut();
        loss.is_some_and(|(chance, rng)| chance.happens(rng))
    }

    /// The arrival that jitter, at most so much, makes of one without; no earlier than the last one.
    pub(super) fn delayed(&mut self, arrival: Nanos, most: Nanos) -> Nanos {
        let jitter = self.jitter.as_mut().map_or(0, |rng| below(rng, most + 1));
        self.last_arrival = (arrival + jitter).max(self.last_arrival);
        self.last_arrival
    }
}
