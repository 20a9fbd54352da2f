//! The rate of the next frame to a station.

use serde::Deserialize;

use super::standard::{Rate, Standard};

/// How the rate is chosen, by name.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum RateControlName {
    /// Always the link's rate.
    #[default]
    Constant,
    /// Adaptive auto rate fallback, from the link's rate on.
    Aarf,
}

/// The rate to one station and what has become of its frames.
#[derive(Debug, Clone)]
pub enum RateControl {
    /// Always the same.
    Constant(Rate),
    /// Lacage, Manshaei and Turletti 2004.
    Aarf(Aarf),
}

impl RateControl {
    /// Begin at `rate`.
    pub fn new(name: RateControlName, standard: Standard, rate: Rate) -> Self {
        match name {
            RateControlName::Constant => Self::Constant(rate),
            RateControlName::Aarf => Self::Aarf(Aarf::new(standard, rate)),
        }
    }

    /// The rate of the next frame.
    pub fn rate(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Aarf(aarf) => aarf.rates[aarf.index],
        }
    }

    /// Learn whether a frame was acknowledged.
    pub fn on_outcome(&mut self, acknowledged: bool) {
        if let Self::Aarf(aarf) = self {
            aarf.on_outcome(acknowledged);
        }
    }
}

/// Adaptive auto rate fallback: up after a number of successes that doubles with each vain try, down after two failures.
#[derive(Debug, Clone)]
pub struct Aarf {
    rates: &'static [Rate],
    index: usize,
    successes: u32,
    failures: u32,
    frames: u32,
    /// Successes after which the next rate is tried.
    needed: u32,
    /// Frames after which it is tried at any rate.
    patience: u32,
    /// The next frame is the first at a higher rate.
    trying: bool,
}

const MIN_NEEDED: u32 = 10;
const MAX_NEEDED: u32 = 60;
const MIN_PATIENCE: u32 = 15;

impl Aarf {
    fn new(standard: Standard, rate: Rate) -> Self {
        let rates = standard.rates();
        let position = rates.iter().position(|known| *known == rate);
        Self {
            rates,
            index: position.unwrap_or(0),
            successes: 0,
            failures: 0,
            frames: 0,
            needed: MIN_NEEDED,
            patience: MIN_PATIENCE,
            trying: false,
        }
    }

    fn on_outcome(&mut self, acknowledged: bool) {
        self.frames += 1;
        if acknowledged {
            self.successes += 1;
            self.failures = 0;
            self.trying = false;
            let due = self.successes >= self.needed || self.frames >= self.patience;
            if due && self.index + 1 < self.rates.len() {
                self.move_to(self.index + 1);
                self.trying = true;
            }
            return;
        }
        self.successes = 0;
        self.failures += 1;
        if self.trying {
            self.needed = (2 * self.needed).min(MAX_NEEDED);
            self.patience = MIN_PATIENCE.max(2 * self.patience.min(MAX_NEEDED));
            self.move_to(self.index.saturating_sub(1));
        } else if self.failures >= 2 {
            self.needed = MIN_NEEDED;
            self.patience = MIN_PATIENCE;
            self.move_to(self.index.saturating_sub(1));
        }
    }

    fn move_to(&mut self, index: usize) {
        self.index = index;
        self.successes = 0;
        self.failures = 0;
        self.frames = 0;
        self.trying = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aarf(mbps: f64) -> RateControl {
        let rate = Standard::G.rate(mbps * 1e6).unwrap();
        RateControl::new(RateControlName::Aarf, Standard::G, rate)
    }

    fn outcomes(control: &mut RateControl, acknowledged: bool, frames: u32) -> u64 {
        (0..frames).for_each(|_| control.on_outcome(acknowledged));
        control.rate().bps / 1_000_000
    }

    #[test]
    fn two_failures_lower_the_rate_and_ten_successes_raise_it() {
        let mut control = aarf(54.0);
        assert_eq!(outcomes(&mut control, false, 1), 54);
        assert_eq!(outcomes(&mut control, false, 1), 48);
        assert_eq!(outcomes(&mut control, true, 9), 48);
        assert_eq!(outcomes(&mut control, true, 1), 54);
    }

    #[test]
    fn a_vain_try_falls_back_at_once_and_the_next_waits_longer() {
        let mut control = aarf(24.0);
        assert_eq!(outcomes(&mut control, true, 10), 36);
        assert_eq!(outcomes(&mut control, false, 1), 24);
        assert_eq!(outcomes(&mut control, true, 19), 24);
        assert_eq!(outcomes(&mut control, true, 1), 36);
    }

    #[test]
    fn rates_end_at_the_slowest_and_the_fastest() {
        let mut control = aarf(6.0);
        assert_eq!(outcomes(&mut control, false, 100), 6);
        assert_eq!(outcomes(&mut control, true, 1000), 54);
    }
}
