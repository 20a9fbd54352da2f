//! Guangyu Pei and Tom Henderson, "Validation of OFDM error rate model in ns-3", Boeing 2010.

use super::super::math::{erfc, power};
use super::super::standard::CodeRate;

/// The probability that `bits` arrive without error.
pub fn success(subcarrier_bits: u32, code: CodeRate, bits: f64, snr: f64) -> f64 {
    let errors = bit_errors(subcarrier_bits, snr);
    power(1.0 - coded_errors(code, errors), bits)
}

/// The share of wrong bits in front of the decoder (equations 3 to 6).
fn bit_errors(subcarrier_bits: u32, snr: f64) -> f64 {
    let (share, divisor) = match subcarrier_bits {
        1 => (0.5, 1.0),
        2 => (0.5, 2.0),
        4 => (0.75 * 0.5, 10.0),
        _ => (7.0 / 12.0 * 0.5, 42.0),
    };
    share * erfc((snr / divisor).sqrt())
}

/// The share of wrong bits behind it: the sum over the weights of error events (Frenger, Orten, Ottosson 1999), each with
/// its Chernoff bound D^d, D = sqrt(4 p (1 - p)).
fn coded_errors(code: CodeRate, errors: f64) -> f64 {
    let (input_bits, first, step, counts): (f64, u32, u32, &[f64]) = match code {
        CodeRate::Half => (1.0, 10, 2, &HALF),
        CodeRate::TwoThirds => (2.0, 6, 1, &TWO_THIRDS),
        CodeRate::ThreeQuarters => (3.0, 5, 1, &THREE_QUARTERS),
    };
    let square = (4.0 * errors * (1.0 - errors)).min(1.0);
    let d = square.sqrt();
    let ratio = if step == 2 { square } else { d };
    let mut term = (0..first).fold(1.0, |product, _| product * d);
    let mut sum = 0.0;
    for count in counts {
        sum += count * term;
        term *= ratio;
    }
    (sum / (2.0 * input_bits)).min(1.0)
}

const HALF: [f64; 9] = [
    36.0,
    211.0,
    1_404.0,
    11_633.0,
    77_433.0,
    502_690.0,
    3_322_763.0,
    21_292_910.0,
    134_365_911.0,
];
const TWO_THIRDS: [f64; 10] = [
    3.0,
    70.0,
    285.0,
    1_276.0,
    6_160.0,
    27_128.0,
    117_019.0,
    498_860.0,
    2_103_891.0,
    8_784_123.0,
];
const THREE_QUARTERS: [f64; 10] = [
    42.0,
    201.0,
    1_492.0,
    10_469.0,
    62_935.0,
    379_644.0,
    2_253_373.0,
    13_073_811.0,
    75_152_755.0,
    428_005_675.0,
];
