//! Bit errors of DSSS and CCK (Proakis, Digital Communications, sections 4.4 and 5.2), spread over 22 MHz.

use std::f64::consts::{PI, SQRT_2};
use std::sync::OnceLock;

use super::super::math::{exp, normal_cdf, power};
use super::super::standard::Modulation;

const SPREAD_HZ: f64 = 22e6;
/// CCK's symbols, of 8 chips, in a second.
const CCK_SYMBOLS_PER_S: f64 = 1.375e6;

/// The probability that `bits` arrive without error.
pub fn success(modulation: Modulation, bits: f64, snr: f64) -> f64 {
    let errors = match modulation {
        Modulation::Dbpsk => 0.5 * exp(-snr * SPREAD_HZ / 1e6),
        Modulation::Dqpsk => dqpsk(snr * SPREAD_HZ / 2e6),
        Modulation::Cck(symbol_bits) => {
            let energy = snr * SPREAD_HZ / CCK_SYMBOLS_PER_S / 2.0;
            return power(
                1.0 - cck(symbol_bits, energy),
                bits / f64::from(symbol_bits),
            );
        }
        Modulation::Ofdm(..) => unreachable!("OFDM has models of its own"),
    };
    power(1.0 - errors.min(0.5), bits)
}

/// The asymptote of Marcum's Q function for differential QPSK with Gray code.
fn dqpsk(per_bit: f64) -> f64 {
    if per_bit < 1e-6 {
        return 0.5;
    }
    (SQRT_2 + 1.0) / (8.0 * PI * SQRT_2).sqrt() / per_bit.sqrt() * exp(-(2.0 - SQRT_2) * per_bit)
}

/// The share of wrong symbols: with 4 bits one of 16 biorthogonal words, with 8 bits two of them at half the energy each.
fn cck(symbol_bits: u32, energy: f64) -> f64 {
    if symbol_bits == 4 {
        return biorthogonal(energy);
    }
    let right = 1.0 - biorthogonal(energy / 2.0);
    1.0 - right * right
}

/// The share of wrong words among 16 biorthogonal ones (Proakis, 4.4-19).
fn biorthogonal(energy: f64) -> f64 {
    static WORDS: OnceLock<BiorthogonalWords> = OnceLock::new();
    WORDS
        .get_or_init(BiorthogonalWords::new)
        .wrong((2.0 * energy).sqrt())
}

/// Steps of the table and of the integral in one standard deviation of the noise.
const STEPS: usize = 64;
/// Where noise ends, in standard deviations: beyond are 1e-15 of it.
const NOISE: usize = 8;
/// Where signals end that ever make a word wrong.
const SIGNAL: usize = 12;

/// The share of right words, by the signal in standard deviations of the noise, from one step below 0 on.
///
/// It is the mean of (2 Phi(v + signal) - 1)^7 over standard normal v above -signal. Signals and noise have one grid, so a table of the
/// power serves all signals, and the trapezoidal rule is exact to the last digits where the integrand ends smoothly on both sides.
struct BiorthogonalWords(Vec<f64>);

impl BiorthogonalWords {
    fn new() -> Self {
        let at = |index: usize| index as f64 / STEPS as f64;
        let power: Vec<f64> = (0..=(SIGNAL + NOISE) * STEPS)
            .map(|index| 2.0 * normal_cdf(at(index)) - 1.0)
            .map(|inside| inside * inside * inside * inside * inside * inside * inside)
            .collect();
        let noise: Vec<f64> = (0..=2 * NOISE * STEPS)
            .map(|index| at(index) - NOISE as f64)
            .map(|v| exp(-v * v / 2.0) / (2.0 * PI).sqrt() / STEPS as f64)
            .collect();
        let right = |signal: usize| -> f64 {
            // Noise below -signal is met by 0.
            let skipped = (NOISE * STEPS).saturating_sub(signal);
            let first = signal.saturating_sub(NOISE * STEPS);
            let pairs = noise[skipped..].iter().zip(&power[first..]);
            pairs.map(|(weight, power)| weight * power).sum()
        };
        Self((0..SIGNAL * STEPS).map(right).collect())
    }

    /// The share of wrong words, by the cubic through the four entries around `signal`.
    fn wrong(&self, signal: f64) -> f64 {
        let place = signal * STEPS as f64;
        let first = (place as usize).saturating_sub(1);
        let Some(&[a, b, c, d]) = self.0.get(first..first + 4) else {
            return 0.0;
        };
        let t = place - first as f64;
        let right = a * (t - 1.0) * (t - 2.0) * (t - 3.0) / -6.0
            + b * t * (t - 2.0) * (t - 3.0) / 2.0
            + c * t * (t - 1.0) * (t - 3.0) / -2.0
            + d * t * (t - 1.0) * (t - 2.0) / 6.0;
        (1.0 - right).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::math::from_decibels;
    use super::*;

    /// The integral by Simpson's rule, as it stands in Proakis.
    fn integral(energy: f64) -> f64 {
        const STEPS: u32 = 2000;
        let shift = (2.0 * energy).sqrt();
        let bottom = (-shift).max(-8.0);
        let width = (8.0 - bottom) / f64::from(STEPS);
        let density = |v: f64| {
            let inside: f64 = 2.0 * normal_cdf(v + shift) - 1.0;
            exp(-v * v / 2.0) * inside.max(0.0).powi(7)
        };
        let mut sum = density(bottom) + density(8.0);
        for step in 1..STEPS {
            let weight = if step % 2 == 1 { 4.0 } else { 2.0 };
            sum += weight * density(bottom + width * f64::from(step));
        }
        1.0 - sum * width / 3.0 / (2.0 * PI).sqrt()
    }

    #[test]
    fn the_table_is_the_integral() {
        for step in 0..160 {
            let energy = 0.003 * f64::from(step * step);
            let (is, should) = (biorthogonal(energy), integral(energy).clamp(0.0, 1.0));
            assert!((is - should).abs() < 2e-9, "{energy}: {is}, not {should}");
        }
        assert_eq!(biorthogonal(1e9), 0.0);
    }

    /// `DsssErrorRateModel` of ns-3 3.37 with GSL's integration: frames of 40 and 1536 bytes at 5.5 and 11 Mbit/s, by dB.
    #[test]
    fn frames_arrive_as_often_as_in_ns3() {
        for (db, expected) in [
            (0.0, [0.143228093543, 0.0, 5.70831078545e-7, 0.0]),
            (
                2.0,
                [0.834371929844, 0.000955458667833, 0.0115585463662, 0.0],
            ),
            (
                4.0,
                [
                    0.996031276479,
                    0.85838531053,
                    0.500650315427,
                    2.89817487927e-12,
                ],
            ),
            (
                6.0,
                [
                    0.999990710422,
                    0.999643342178,
                    0.966375241124,
                    0.268904775042,
                ],
            ),
            (
                8.0,
                [
                    0.999999999325,
                    0.999999974074,
                    0.999720547263,
                    0.989324902854,
                ],
            ),
        ] {
            let snr = from_decibels(db);
            let frames = [4, 8].map(|bits| {
                [40.0, 1536.0].map(|bytes| success(Modulation::Cck(bits), bytes * 8.0, snr))
            });
            for (is, should) in frames.iter().flatten().zip(expected) {
                assert!((is - should).abs() < 1e-6, "{db} dB: {is}, not {should}");
            }
        }
    }
}
