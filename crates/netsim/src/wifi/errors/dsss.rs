//! Bit errors of DSSS and CCK (Proakis, Digital Communications, sections 4.4 and 5.2), spread over 22 MHz.

use std::f64::consts::{PI, SQRT_2};

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

/// The share of wrong words among 16 biorthogonal ones (Proakis, 4.4-19), by Simpson's rule.
fn biorthogonal(energy: f64) -> f64 {
    const STEPS: u32 = 400;
    const TOP: f64 = 8.0;
    let shift = (2.0 * energy).sqrt();
    let bottom = (-shift).max(-TOP);
    let width = (TOP - bottom) / f64::from(STEPS);
    let density = |v: f64| {
        let inside = 2.0 * normal_cdf(v + shift) - 1.0;
        exp(-v * v / 2.0) * power(inside.max(0.0), 7.0)
    };
    let mut sum = density(bottom) + density(TOP);
    for step in 1..STEPS {
        let weight = if step % 2 == 1 { 4.0 } else { 2.0 };
        sum += weight * density(bottom + width * f64::from(step));
    }
    (1.0 - sum * width / 3.0 / (2.0 * PI).sqrt()).clamp(0.0, 1.0)
}
