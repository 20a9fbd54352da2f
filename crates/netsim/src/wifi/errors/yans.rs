//! Mathieu Lacage and Tom Henderson, "Yet another network simulator", WNS2 2006, section 2.3: the union bound with the
//! first terms of the code's weights and hard decisions.

use super::super::math::{erfc, power};
use super::super::standard::CodeRate;

/// Hz over which the energy of a bit is spread.
const SPREAD_HZ: f64 = 20e6;
/// OFDM symbols of all 48 data subcarriers in a second.
const SYMBOLS_PER_S: f64 = 48.0 / 4e-6;

/// The probability that `bits` arrive without error.
pub fn success(subcarrier_bits: u32, code: CodeRate, bits: f64, snr: f64) -> f64 {
    let per_bit = snr * SPREAD_HZ / (SYMBOLS_PER_S * f64::from(subcarrier_bits));
    let errors = bit_errors(subcarrier_bits, per_bit);
    if errors <= 0.0 {
        return 1.0;
    }
    // Least distance of the code, error events of that distance and of the next (Haccoun and Begin 1989).
    let (distance, counts) = match (code, subcarrier_bits) {
        (CodeRate::Half, _) => (10, [11.0, 0.0]),
        (CodeRate::TwoThirds, _) => (6, [1.0, 16.0]),
        (CodeRate::ThreeQuarters, 1) => (5, [8.0, 0.0]),
        (CodeRate::ThreeQuarters, _) => (5, [8.0, 31.0]),
    };
    let events: f64 = (distance..)
        .zip(counts)
        .map(|(distance, count)| count * wrong_path(errors, distance))
        .sum();
    power(1.0 - events.min(1.0), bits)
}

/// The share of wrong bits in front of the decoder; `per_bit` is Eb / N0 (Proakis, section 5.2).
fn bit_errors(subcarrier_bits: u32, per_bit: f64) -> f64 {
    if subcarrier_bits == 1 {
        return 0.5 * erfc(per_bit.sqrt());
    }
    let points = f64::from(1u32 << subcarrier_bits);
    let bits = f64::from(subcarrier_bits);
    let side = (1.0 - 1.0 / points.sqrt()) * erfc((1.5 * bits * per_bit / (points - 1.0)).sqrt());
    (1.0 - (1.0 - side) * (1.0 - side)) / bits
}

/// The probability that a path of this distance is taken for the right one: more than half of its bits are wrong.
fn wrong_path(errors: f64, distance: u32) -> f64 {
    let term = |wrong: u32| {
        let mut product = 1.0;
        for place in 0..distance {
            product *= if place < wrong { errors } else { 1.0 - errors };
        }
        for place in 0..wrong {
            product *= f64::from(distance - place) / f64::from(place + 1);
        }
        product
    };
    let more: f64 = (distance / 2 + 1..=distance).map(term).sum();
    if distance % 2 == 0 {
        more + 0.5 * term(distance / 2)
    } else {
        more
    }
}
