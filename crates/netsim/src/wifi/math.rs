//! Functions that a libm has, made of exactly rounded operations alone, so that runs are the same everywhere.

use std::f64::consts::{FRAC_2_SQRT_PI, LN_10, LN_2, SQRT_2};

use crate::random::ln;

/// e to the power of `x`; 0 far below and the largest number far above.
pub fn exp(x: f64) -> f64 {
    if x < -700.0 {
        return 0.0;
    }
    if x > 700.0 {
        return f64::MAX;
    }
    let halvings = (x / LN_2 + 0.5).floor();
    let rest = x - halvings * LN_2;
    let mut sum = 1.0;
    for term in (1..=16).rev() {
        sum = 1.0 + sum * rest / f64::from(term);
    }
    sum * f64::from_bits(((halvings as i64 + 1023) as u64) << 52)
}

/// `base`, 0 to 1, to the power of `exponent`, above 0.
pub fn power(base: f64, exponent: f64) -> f64 {
    if base < f64::MIN_POSITIVE {
        return 0.0;
    }
    exp(exponent * ln(base))
}

/// The complementary error function, within 1e-13 of its magnitude for `x` from 0 on.
pub fn erfc(x: f64) -> f64 {
    let square = x * x;
    if x > 26.0 {
        return 0.0;
    }
    if x < 2.0 {
        // erf x = 2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): Abramowitz and Stegun, 7.1.6.
        let (mut term, mut sum) = (x, x);
        for odd in (3..=121).step_by(2) {
            term *= 2.0 * square / f64::from(odd);
            sum += term;
        }
        return 1.0 - FRAC_2_SQRT_PI * exp(-square) * sum;
    }
    // The continued fraction 7.1.14 from its end.
    let mut tail = x;
    for step in (1..=90).rev() {
        tail = x + f64::from(step) / 2.0 / tail;
    }
    exp(-square) * FRAC_2_SQRT_PI / 2.0 / tail
}

/// The probability that a standard normal variable is below `x`.
pub fn normal_cdf(x: f64) -> f64 {
    let upper = 0.5 * erfc(x.abs() / SQRT_2);
    if x < 0.0 {
        upper
    } else {
        1.0 - upper
    }
}

/// A ratio in decibels.
pub fn decibels(ratio: f64) -> f64 {
    10.0 / LN_10 * ln(ratio)
}

/// The ratio of this many decibels.
pub fn from_decibels(decibels: f64) -> f64 {
    exp(decibels * LN_10 / 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_standard_library() {
        let mut x = -690.0;
        while x < 690.0 {
            let expected: f64 = f64::exp(x);
            assert!((exp(x) / expected - 1.0).abs() < 1e-13, "exp {x}");
            x += 0.37;
        }
        assert_eq!((exp(0.0), exp(-800.0)), (1.0, 0.0));
        assert!((power(0.3, 2.5) - 0.3f64.powf(2.5)).abs() < 1e-15);
    }

    #[test]
    fn the_error_function_has_its_known_values() {
        // Abramowitz and Stegun, tables 7.1 and 7.3.
        let known = [
            (0.0, 1.0),
            (0.5, 0.479_500_122_186_953_5),
            (1.0, 0.157_299_207_050_285_13),
            (2.0, 4.677_734_981_047_266e-3),
            (4.0, 1.541_725_790_028_002e-8),
        ];
        for (x, value) in known {
            assert!(
                (erfc(x) / value - 1.0).abs() < 1e-12,
                "erfc {x}: {}",
                erfc(x)
            );
        }
        assert!((normal_cdf(1.0) + normal_cdf(-1.0) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn decibels_go_both_ways() {
        assert!((decibels(2.0) - 3.010_299_956_639_812).abs() < 1e-13);
        assert!((from_decibels(-30.0) - 1e-3).abs() < 1e-16);
    }
}
