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

/// Whose receiver decides what errors are in a frame.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// The standard's: the bytes of a frame can be wrong.
    #[default]
    Standard,
    /// That of ns-3 3.37: so can the padding of the last symbol and the time of the signal extension, and [`ErrorModel::Table`] has the
    /// midpoints of its tables.
    Ns3,
}

impl ErrorModel {
    /// The probability that `bytes` at `rate` arrive without error.
    ///
    /// Args: `snr` is the ratio of the powers of signal and noise in the channel.
    pub fn success(self, receiver: Receiver, rate: Rate, bytes: u32, snr: f64) -> f64 {
        let bits = f64::from(bytes) * 8.0;
        let Modulation::Ofdm(subcarrier_bits, code) = rate.modulation else {
            return dsss::success(rate.modulation, bits, snr);
        };
        match self {
            Self::Nist => nist::success(subcarrier_bits, code, bits, snr),
            Self::Yans => yans::success(subcarrier_bits, code, bits, snr),
            // ns-3 has no table for BPSK at 3/4, and falls back.
            Self::Table if receiver == Receiver::Ns3 && rate.bps == 9_000_000 => {
                yans::success(subcarrier_bits, code, bits, snr)
            }
            Self::Table => table::success(receiver, rate, bytes, snr),
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
        let receivers = [Receiver::Standard, Receiver::Ns3];
        for (model, receiver) in MODELS
            .into_iter()
            .flat_map(|model| receivers.map(|receiver| (model, receiver)))
        {
            for standard in [Standard::B, Standard::G] {
                for &rate in standard.rates() {
                    let mut before = 0.0;
                    for step in -40..160 {
                        let snr = from_decibels(f64::from(step) * 0.25);
                        let [long, short] =
                            [1500, 40].map(|bytes| model.success(receiver, rate, bytes, snr));
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
    fn half(model: ErrorModel, receiver: Receiver, mbps: f64, bytes: u32) -> f64 {
        let rate = Standard::G.rate(mbps * 1e6).unwrap();
        let fails = |db: &f64| model.success(receiver, rate, bytes, from_decibels(*db)) < 0.5;
        (-800..4000)
            .map(|step| f64::from(step) * 0.01)
            .find(|db| !fails(db))
            .unwrap()
    }

    #[test]
    fn half_of_the_frames_arrive_where_the_models_say() {
        let halves =
            |model| [6.0, 24.0, 54.0].map(|mbps| half(model, Receiver::Standard, mbps, 1500));
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

    #[test]
    fn the_table_has_the_midpoints_of_ns3s() {
        for (mbps, expected) in [
            (6.0, [-1.34, 0.30]),
            (9.0, [0.07, 2.24]),
            (12.0, [1.66, 3.30]),
            (18.0, [4.17, 5.78]),
            (24.0, [6.94, 8.92]),
            (36.0, [10.18, 12.02]),
            (48.0, [14.06, 16.22]),
            (54.0, [15.42, 17.52]),
        ] {
            for (bytes, expected) in [32, 1458].into_iter().zip(expected) {
                let half = half(ErrorModel::Table, Receiver::Ns3, mbps, bytes);
                assert!(
                    (half - expected).abs() < 0.03,
                    "{mbps} Mbit/s, {bytes} bytes: {half} dB, not {expected}"
                );
            }
        }
    }
}
