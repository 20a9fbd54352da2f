//! Frame error rates over white noise, simulated bit by bit by `benchmarks/frame_errors.py`: convolutional code, puncturing,
//! interleaving, mapping, max-log metrics, Viterbi decoder; ideal knowledge of the channel; 600 frames a point.
//!
//! A real receiver estimates the channel from the two long training symbols of the preamble (17.3.3). Smoothed over
//! [`SMOOTHING`] subcarriers, the estimate adds 1 / (2 * 7) of the noise: 0.3 dB, by which these curves come to lie on those of
//! ns-3's table-based model (MATLAB's receiver), within 0.1 dB at one half.

use super::super::math::{decibels, exp};
use super::super::standard::Rate;
use super::Receiver;
use crate::random::ln;

/// Bytes of the frames of a set of curves.
const SHORT_BYTES: f64 = 32.0;
const LONG_BYTES: f64 = 1458.0;
/// Frames of this size on are held against the long ones: the geometric mean of both.
const LONG_FROM_BYTES: u32 = 216;
/// The same in ns-3 3.37.
const NS3_LONG_FROM_BYTES: u32 = 400;
/// Mbit/s, and by how many dB these curves are better than those of ns-3's tables where half of the frames are lost, short and long ones:
/// those are of 802.11n, with 52 subcarriers and another interleaver, behind a receiver that also finds time and frequency.
const NS3_LEAD_DB: [(u64, f64, f64); 7] = [
    (6, 0.18, -0.05),
    (12, 0.19, -0.07),
    (18, 0.07, -0.16),
    (24, 0.35, 0.13),
    (36, 0.13, -0.10),
    (48, 0.44, 0.11),
    (54, 0.45, -0.02),
];
const STEP_DB: f64 = 0.5;
/// Subcarriers over which the estimate of the channel is smoothed.
const SMOOTHING: f64 = 7.0;
/// Training symbols.
const TRAINING: f64 = 2.0;

/// The share of frames that are lost, in steps of half a decibel from `first_db` on.
struct Curve {
    mbps: u64,
    first_db: f64,
    lost: &'static [f64],
}

/// The probability that `bytes` arrive without error.
pub fn success(receiver: Receiver, rate: Rate, bytes: u32, snr: f64) -> f64 {
    let (long_from_bytes, lead_db) = match receiver {
        Receiver::Standard => (LONG_FROM_BYTES, &[][..]),
        Receiver::Ns3 => (NS3_LONG_FROM_BYTES, &NS3_LEAD_DB[..]),
    };
    let is_long = bytes >= long_from_bytes;
    let (curves, reference_bytes) = if is_long {
        (&LONG, LONG_BYTES)
    } else {
        (&SHORT, SHORT_BYTES)
    };
    let effective = snr / (1.0 + 1.0 / (TRAINING * SMOOTHING));
    let mut db = decibels(effective.max(1e-12));
    let mut mbps = rate.bps / 1_000_000;
    if mbps == 9 {
        // BPSK is QPSK on one axis: 9 Mbit/s are 18 with twice the noise.
        db += decibels(2.0);
        mbps = 18;
    }
    let lead = lead_db.iter().find(|lead| lead.0 == mbps);
    db -= lead.map_or(0.0, |lead| if is_long { lead.2 } else { lead.1 });
    let curve = curves.iter().find(|curve| curve.mbps == mbps);
    let events = curve.map_or(0.0, |curve| curve.error_events(db));
    exp(-events * f64::from(bytes) / reference_bytes)
}

impl Curve {
    /// Errors of the decoder in a frame, on average: their logarithm is taken as linear between two points, and beyond.
    fn error_events(&self, db: f64) -> f64 {
        let place = (db - self.first_db) / STEP_DB;
        let last = self.lost.len() - 1;
        // Beyond the end the slope of a whole decibel, since few frames were lost there.
        let (from, to) = if place > last as f64 {
            (last - 2, last)
        } else {
            let before = (place.max(0.0) as usize).min(last - 1);
            (before, before + 1)
        };
        let logarithm = |at: usize| ln(-ln(1.0 - self.lost[at]));
        let slope = (logarithm(to) - logarithm(from)) / (to - from) as f64;
        exp(logarithm(to) + (place - to as f64) * slope)
    }
}

const SHORT: [Curve; 7] = [
    Curve {
        mbps: 6,
        first_db: -4.5,
        lost: &[
            0.998, 0.997, 0.987, 0.940, 0.838, 0.605, 0.328, 0.153, 0.043, 0.017,
        ],
    },
    Curve {
        mbps: 12,
        first_db: -1.0,
        lost: &[
            0.997, 0.990, 0.972, 0.832, 0.592, 0.332, 0.165, 0.057, 0.020,
        ],
    },
    Curve {
        mbps: 18,
        first_db: 2.0,
        lost: &[0.995, 0.975, 0.885, 0.680, 0.388, 0.178, 0.060, 0.013],
    },
    Curve {
        mbps: 24,
        first_db: 4.0,
        lost: &[
            0.997, 0.985, 0.945, 0.852, 0.650, 0.400, 0.225, 0.115, 0.030, 0.012,
        ],
    },
    Curve {
        mbps: 36,
        first_db: 7.5,
        lost: &[
            0.998, 0.992, 0.957, 0.827, 0.612, 0.392, 0.187, 0.067, 0.033, 0.008, 0.005,
        ],
    },
    Curve {
        mbps: 48,
        first_db: 10.5,
        lost: &[
            0.998, 0.998, 0.985, 0.927, 0.798, 0.663, 0.413, 0.248, 0.123, 0.033, 0.013, 0.012,
        ],
    },
    Curve {
        mbps: 54,
        first_db: 12.0,
        lost: &[
            0.998, 0.995, 0.978, 0.912, 0.823, 0.570, 0.373, 0.215, 0.112, 0.065, 0.023, 0.007,
        ],
    },
];
const LONG: [Curve; 7] = [
    Curve {
        mbps: 6,
        first_db: -1.0,
        lost: &[0.998, 0.903, 0.548, 0.168, 0.045],
    },
    Curve {
        mbps: 12,
        first_db: 2.0,
        lost: &[0.998, 0.930, 0.550, 0.225, 0.060, 0.007],
    },
    Curve {
        mbps: 18,
        first_db: 5.0,
        lost: &[0.953, 0.638, 0.217, 0.050, 0.013],
    },
    Curve {
        mbps: 24,
        first_db: 7.5,
        lost: &[0.995, 0.823, 0.488, 0.188, 0.065, 0.008, 0.005],
    },
    Curve {
        mbps: 36,
        first_db: 11.0,
        lost: &[0.980, 0.740, 0.377, 0.133, 0.043, 0.013, 0.010],
    },
    Curve {
        mbps: 48,
        first_db: 14.5,
        lost: &[0.998, 0.955, 0.705, 0.380, 0.155, 0.057, 0.038, 0.010],
    },
    Curve {
        mbps: 54,
        first_db: 16.5,
        lost: &[0.940, 0.667, 0.337, 0.135, 0.058, 0.017],
    },
];
