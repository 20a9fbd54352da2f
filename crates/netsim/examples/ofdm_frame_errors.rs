//! Frame error rates of 802.11g's OFDM over white noise, as `src/wifi/errors/table.rs` has them. `ofdm_frame_errors [frames]`
//!
//! Each frame is scrambled data behind the convolutional code (133, 171), punctured, interleaved over 48 subcarriers, mapped
//! with Gray code, and received with ideal knowledge of the channel: max-log bit metrics and a Viterbi decoder (IEEE
//! 802.11-2020, 17.3.5). Half an hour with 10000 frames.

use netsim::random::{RngCore, SeedableRng, SplitMix64};

/// Bits of a subcarrier, and of three steps of the code those that are sent.
const MODES: [(u64, usize, &[bool]); 7] = [
    (6, 1, &[true, true]),
    (12, 2, &[true, true]),
    (18, 2, &[true, true, true, false, false, true]),
    (24, 4, &[true, true]),
    (36, 4, &[true, true, true, false, false, true]),
    (48, 6, &[true, true, true, false]),
    (54, 6, &[true, true, true, false, false, true]),
];

fn main() {
    let frames = std::env::args()
        .nth(1)
        .map_or(1000, |text| text.parse().expect("a number"));
    for bytes in [32, 1458] {
        for (mbps, bits, puncturing) in MODES {
            let mut link = Link::new(bits, puncturing, bytes);
            print!("{bytes} bytes, {mbps} Mbit/s:");
            // From where nearly all frames fail to where few do.
            let mut half_db = -12;
            loop {
                let wrong = link.wrong_frames(f64::from(half_db) / 2.0, frames);
                let share = wrong as f64 / frames as f64;
                if share < 0.999 {
                    print!(" ({:.1}, {share:.5})", f64::from(half_db) / 2.0);
                }
                if share < 0.003 {
                    break;
                }
                half_db += 1;
            }
            println!();
        }
    }
}

struct Link {
    subcarrier_bits: usize,
    puncturing: &'static [bool],
    data_bits: usize,
    /// Places of the coded bits of a symbol after interleaving.
    places: Vec<usize>,
    rng: SplitMix64,
    spare: Option<f64>,
}

impl Link {
    fn new(subcarrier_bits: usize, puncturing: &'static [bool], bytes: usize) -> Self {
        let coded = 48 * subcarrier_bits;
        let half = (subcarrier_bits / 2).max(1);
        // 17.3.5.7: first over the subcarriers, then over the bits of each.
        let places = (0..coded).map(|k| {
            let i = coded / 16 * (k % 16) + k / 16;
            half * (i / half) + (i + coded - 16 * i / coded) % half
        });
        Self {
            subcarrier_bits,
            puncturing,
            data_bits: bytes * 8,
            places: places.collect(),
            rng: SplitMix64::seed_from_u64(1),
            spare: None,
        }
    }

    fn wrong_frames(&mut self, snr_db: f64, frames: u32) -> u32 {
        (0..frames)
            .map(|_| u32::from(self.frame_fails(snr_db)))
            .sum()
    }

    fn frame_fails(&mut self, snr_db: f64) -> bool {
        let data: Vec<u8> = (0..self.data_bits + 6)
            .map(|at| (at < self.data_bits && self.rng.next_u64() >> 63 == 1) as u8)
            .collect();
        let coded = self.encode(&data);
        let deviation = 10f64.powf(-snr_db / 20.0) / 2f64.sqrt();
        let metrics = self.transmit(&coded, deviation);
        let steps = self.fill(&metrics, data.len());
        decode(&steps) != data
    }

    fn encode(&self, data: &[u8]) -> Vec<u8> {
        let mut register = 0u32;
        let mut coded = Vec::with_capacity(data.len() * 2);
        for (at, &bit) in data.iter().enumerate() {
            register = (register >> 1) | u32::from(bit) << 6;
            for (output, out) in outputs(register).into_iter().enumerate() {
                if self.puncturing[(2 * at + output) % self.puncturing.len()] {
                    coded.push(out);
                }
            }
        }
        coded
    }

    /// Send coded bits through mapper, noise and demapper; the metric of each, positive for 1.
    fn transmit(&mut self, coded: &[u8], deviation: f64) -> Vec<f32> {
        let per_symbol = self.places.len();
        let mut metrics = Vec::with_capacity(coded.len() + per_symbol);
        let mut symbol = vec![0u8; per_symbol];
        for chunk in coded.chunks(per_symbol) {
            for (k, place) in self.places.iter().enumerate() {
                symbol[*place] = chunk.get(k).copied().unwrap_or(0);
            }
            let received = self.subcarriers(&symbol, deviation);
            metrics.extend(self.places.iter().map(|&place| received[place]));
        }
        metrics
    }

    fn subcarriers(&mut self, bits: &[u8], deviation: f64) -> Vec<f32> {
        let (levels, scale) = match self.subcarrier_bits {
            1 => (1, 1.0),
            2 => (1, 0.5f64.sqrt()),
            4 => (2, 0.1f64.sqrt()),
            _ => (3, (1.0 / 42.0f64).sqrt()),
        };
        let mut metrics = Vec::with_capacity(bits.len());
        for axis in bits.chunks(levels) {
            let sent = amplitude(axis) * scale;
            let received = (sent + deviation * self.normal()) / scale;
            push_metrics(&mut metrics, received, levels);
        }
        metrics
    }

    /// Put zeros where bits were not sent.
    fn fill(&self, metrics: &[f32], steps: usize) -> Vec<[f32; 2]> {
        let mut sent = metrics.iter();
        let mut next = |index: usize| {
            if self.puncturing[index % self.puncturing.len()] {
                *sent.next().expect("as many as were sent")
            } else {
                0.0
            }
        };
        (0..steps)
            .map(|at| [next(2 * at), next(2 * at + 1)])
            .collect()
    }

    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        loop {
            let mut draw = || (self.rng.next_u64() >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            let (x, y) = (draw(), draw());
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                let factor = (-2.0 * square.ln() / square).sqrt();
                self.spare = Some(y * factor);
                return x * factor;
            }
        }
    }
}

/// The two output bits of the code for the last seven input bits, the newest in bit 6.
fn outputs(register: u32) -> [u8; 2] {
    [0o133, 0o171].map(|generator: u32| ((register & generator).count_ones() & 1) as u8)
}

/// Gray code along an axis, in odd steps (tables 17-11 to 17-14).
fn amplitude(bits: &[u8]) -> f64 {
    match *bits {
        [sign] => 2.0 * f64::from(sign) - 1.0,
        [sign, low] => (2.0 * f64::from(sign) - 1.0) * (3.0 - 2.0 * f64::from(low)),
        [sign, middle, low] => {
            let size = [[7.0, 5.0], [1.0, 3.0]][usize::from(middle)][usize::from(low)];
            (2.0 * f64::from(sign) - 1.0) * size
        }
        _ => unreachable!("one to three bits an axis"),
    }
}

/// The max-log metric of each bit of an axis.
fn push_metrics(metrics: &mut Vec<f32>, received: f64, levels: usize) {
    for bit in 0..levels {
        let mut nearest = [f64::MAX; 2];
        for word in 0..1usize << levels {
            let bits = [0, 1, 2].map(|at| (word >> at & 1) as u8);
            let distance = received - amplitude(&bits[..levels]);
            let side = &mut nearest[usize::from(bits[bit])];
            *side = side.min(distance * distance);
        }
        metrics.push((nearest[0] - nearest[1]) as f32);
    }
}

/// The most likely input bits.
fn decode(steps: &[[f32; 2]]) -> Vec<u8> {
    let signs: Vec<[f32; 2]> = (0..128)
        .map(|register| outputs(register).map(|bit| if bit == 1 { 1.0 } else { -1.0 }))
        .collect();
    // A state is the last six bits, the newest in bit 5.
    let mut scores = [f32::NEG_INFINITY; 64];
    scores[0] = 0.0;
    let mut decisions = Vec::with_capacity(steps.len());
    for metric in steps {
        let mut next = [0.0f32; 64];
        let mut decision = 0u64;
        for (state, score) in next.iter_mut().enumerate() {
            // Before, the newest five bits of `state` were newer than an unknown oldest one.
            let before = (state << 1) & 63;
            let reach = |oldest: usize| {
                let sign = signs[state << 1 | oldest];
                scores[before | oldest] + sign[0] * metric[0] + sign[1] * metric[1]
            };
            let (zero, one) = (reach(0), reach(1));
            decision |= u64::from(one > zero) << state;
            *score = zero.max(one);
        }
        scores = next;
        decisions.push(decision);
    }
    let mut state = 0usize;
    let mut bits = vec![0u8; steps.len()];
    for (bit, decision) in bits.iter_mut().zip(&decisions).rev() {
        *bit = (state >> 5) as u8;
        state = (state << 1) & 63 | (decision >> state & 1) as usize;
    }
    bits
}
