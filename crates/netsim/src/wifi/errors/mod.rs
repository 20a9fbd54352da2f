//! Whether a frame survives the noise: the probability by signal-to-noise ratio, rate and length.

mod dsss;
mod nist;
mod table;
mod yans;

use serde::Deserialize;

use super::standard::{Modulation, Rate};

/// A model of bit errors behind the decoder. All have the same for DSSS and CCK; for OFDM they differ.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ErrorModel {
    /// Frame error rates of a soft-decision decoder, simulated bit by bit over white noise.
    #[default]
    Table,
    /// Pei and Henderson 2010: the union bound over the code's weights with the Chernoff bound of each.
    Nist,
    /// Lacage and Henderson 2006 ("Yet another network simulator"): the first terms of the union bound, hard decisions.
    Yans,
}

impl ErrorModel {
    /// The probability that `bytes` at `rate` arrive without error.
    ///
    /// Args: `snr` is the ratio of the powers of signal and noise in the channel.
    pub fn success(self, rate: Rate, bytes: u32, snr: f64) -> f64 {
        let bits = f64::from(bytes) * 8.0;
        let Modulation::Ofdm(subcarrier_bits, code) = rate.modulation else {
            return dsss::success(rate.modulation, bits, snr);
        };
        match self {
            Self::Nist => nist::success(subcarrier_bits, code, bits, snr),
            Self::Yans => yans::success(subcarrier_bits, code, bits, snr),
            Self::Table => table::success(rate, bytes, snr),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wifi::math::from_decibels;
    use crate::wifi::standard::Standard;

    const MODELS: [ErrorModel; 3] = [ErrorModel::Table, ErrorModel::Nist, ErrorModel::Yans];

    #[test]
    fn more_signal_and_fewer_bytes_never_harm() {
        for model in MODELS {
            for standard in [Standard::B, Standard::G] {
                for &rate in standard.rates() {
                    let mut before = 0.0;
                    for step in -40..160 {
                        let snr = from_decibels(f64::from(step) * 0.25);
                        let [long, short] = [1500, 40].map(|bytes| model.success(rate, bytes, snr));
                        assert!(
                            (0.0..=1.0).contains(&long),
                            "{model:?} {rate:?} {step}: {long}"
                        );
                        assert!(
                            long >= before - 1e-9 && short >= long - 0.01,
                            "{model:?} {rate:?} {step}"
                        );
                        before = long;
                    }
                    assert!(before > 0.999, "{model:?} {rate:?}");
                }
            }
        }
    }

    /// The signal in dB at which half of the frames of 1500 bytes arrive.
    fn half(model: ErrorModel, mbps: f64) -> f64 {
        let rate = Standard::G.rate(mbps * 1e6).unwrap();
        let fails = |db: &f64| model.success(rate, 1500, from_decibels(*db)) < 0.5;
        (-400..4000)
            .map(|step| f64::from(step) * 0.01)
            .find(|db| !fails(db))
            .unwrap()
    }

    #[test]
    fn half_of_the_frames_arrive_where_the_models_say() {
        let halves = |model| [6.0, 24.0, 54.0].map(|mbps| half(model, mbps));
        for (model, expected) in [
            // 0.3, 8.9 and 17.5 dB in ns-3's tables.
            (ErrorModel::Table, [0.4, 8.8, 17.55]),
            (ErrorModel::Nist, [3.4, 12.9, 22.0]),
            (ErrorModel::Yans, [0.0, 9.2, 18.5]),
        ] {
            for (snr_db, expected) in halves(model).into_iter().zip(expected) {
                assert!(
                    (snr_db - expected).abs() < 0.2,
                    "{model:?}: {snr_db} dB, not {expected}"
                );
            }
        }
    }
}
