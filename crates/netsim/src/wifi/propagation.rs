//! From the power that is sent to the power that arrives.

use super::math::{decibels, from_decibels, power};
use crate::random::{ln, unit, SplitMix64};

/// How a signal weakens on its way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Propagation {
    /// Sent power in dBm.
    pub tx_power_dbm: f64,
    /// Loss at one metre in dB.
    pub reference_loss_db: f64,
    /// The loss grows by ten times this for each tenfold distance.
    pub path_loss_exponent: f64,
    /// How the power of each frame varies.
    pub fading: Fading,
}

/// How the power of each frame varies around its mean, by distance.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fading {
    /// Nakagami's shape below `far_from_m`; 1 is Rayleigh's fading, infinity none.
    pub near_shape: f64,
    /// And from there on.
    pub far_shape: f64,
    /// Metres.
    pub far_from_m: f64,
}

impl Propagation {
    /// The mean power in dBm at `distance_m`, above 0.
    pub fn mean_dbm(&self, distance_m: f64) -> f64 {
        let beyond = decibels(distance_m.max(1.0));
        self.tx_power_dbm - self.reference_loss_db - self.path_loss_exponent * beyond
    }
}

impl Fading {
    /// Nakagami's shape at a distance.
    pub fn shape(&self, distance_m: f64) -> f64 {
        if distance_m < self.far_from_m {
            self.near_shape
        } else {
            self.far_shape
        }
    }
}

/// The way between two stations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RadioChannel {
    /// Mean signal-to-noise ratio.
    pub mean_snr: f64,
    /// Mean power in dBm.
    pub mean_dbm: f64,
    /// Nakagami's shape.
    pub shape: f64,
}

impl RadioChannel {
    /// The way over `distance_m` to a receiver whose noise is `noise_dbm`.
    pub fn new(propagation: &Propagation, distance_m: f64, noise_dbm: f64) -> Self {
        let mean_dbm = propagation.mean_dbm(distance_m);
        Self {
            mean_snr: from_decibels(mean_dbm - noise_dbm),
            mean_dbm,
            shape: propagation.fading.shape(distance_m),
        }
    }

    /// Draw a frame's signal-to-noise ratio: with Nakagami's amplitude the power has a gamma distribution.
    pub fn draw_snr(&self, rng: &mut SplitMix64) -> f64 {
        if self.shape.is_finite() {
            self.mean_snr * gamma(rng, self.shape) / self.shape
        } else {
            self.mean_snr
        }
    }
}

/// Thermal noise at 290 K in dBm, with the receiver's noise figure.
pub fn noise_dbm(bandwidth_hz: f64, noise_figure_db: f64) -> f64 {
    const BOLTZMANN: f64 = 1.380_649e-23;
    decibels(BOLTZMANN * 290.0 * bandwidth_hz) + 30.0 + noise_figure_db
}

/// A draw of the gamma distribution with scale 1 (Marsaglia and Tsang 2000).
pub fn gamma(rng: &mut SplitMix64, shape: f64) -> f64 {
    if shape < 1.0 {
        let below = gamma(rng, shape + 1.0);
        return below * power(unit(rng), 1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(rng);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if ln(unit(rng)) < 0.5 * x * x + d - d * v + d * ln(v) {
            return d * v;
        }
    }
}

/// A draw of the standard normal distribution (Marsaglia's polar method).
fn normal(rng: &mut SplitMix64) -> f64 {
    loop {
        let (x, y) = (2.0 * unit(rng) - 1.0, 2.0 * unit(rng) - 1.0);
        let square = x * x + y * y;
        if square > 0.0 && square < 1.0 {
            return x * (-2.0 * ln(square) / square).sqrt();
        }
    }
}

/// A draw of Bernoulli's distribution.
pub fn happens(rng: &mut SplitMix64, probability: f64) -> bool {
    unit(rng) <= probability
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SeedableRng;
    use crate::wifi::math::exp;

    const PROPAGATION: Propagation = Propagation {
        tx_power_dbm: 16.02,
        reference_loss_db: 46.67,
        path_loss_exponent: 3.0,
        fading: Fading {
            near_shape: 1.5,
            far_shape: 0.75,
            far_from_m: 80.0,
        },
    };

    #[test]
    fn the_loss_grows_with_the_logarithm_of_the_distance() {
        assert!((PROPAGATION.mean_dbm(1.0) + 30.65).abs() < 1e-9);
        assert!((PROPAGATION.mean_dbm(10.0) + 60.65).abs() < 1e-9);
        assert!((noise_dbm(20e6, 7.0) + 93.965).abs() < 1e-2);
        assert_eq!(
            [79.9, 80.0].map(|m| PROPAGATION.fading.shape(m)),
            [1.5, 0.75]
        );
    }

    #[test]
    fn fading_has_the_moments_of_its_shape() {
        let mut rng = SplitMix64::seed_from_u64(5);
        for shape in [0.75, 1.5, 4.0] {
            let way = RadioChannel {
                mean_snr: 10.0,
                mean_dbm: 0.0,
                shape,
            };
            let draws: Vec<f64> = (0..200_000).map(|_| way.draw_snr(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance =
                draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / draws.len() as f64;
            assert!(
                (mean / 10.0 - 1.0).abs() < 0.01,
                "shape {shape}: mean {mean}"
            );
            assert!(
                (variance * shape / 100.0 - 1.0).abs() < 0.03,
                "shape {shape}: variance {variance}"
            );
        }
        // With shape 1 the power is exponential: Rayleigh's fading.
        let below = (0..100_000).filter(|_| gamma(&mut rng, 1.0) < 0.5).count() as f64 / 1e5;
        assert!((below - (1.0 - exp(-0.5))).abs() < 0.005, "{below}");
    }
}
