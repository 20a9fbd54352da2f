//! What IEEE 802.11b and 802.11g say of rates, frames and times (IEEE 802.11-2020, clauses 10, 15 to 18).

use serde::Deserialize;

use crate::time::{Nanos, MICROSECOND, SECOND};

/// The amendment that a link follows.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
pub enum Standard {
    /// DSSS and CCK at 2.4 GHz, 1 to 11 Mbit/s.
    #[serde(rename = "802.11b")]
    B,
    /// OFDM at 2.4 GHz, 6 to 54 Mbit/s.
    #[serde(rename = "802.11g")]
    G,
}

/// How bits become symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modulation {
    /// Differential BPSK, 11 chips a bit.
    Dbpsk,
    /// Differential QPSK, 11 chips for two bits.
    Dqpsk,
    /// Complementary code keying, this many bits in 8 chips.
    Cck(u32),
    /// 48 data subcarriers of this many bits each, behind a convolutional code.
    Ofdm(u32, CodeRate),
}

/// The rate of the convolutional code with constraint length 7, punctured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeRate {
    /// 1/2.
    Half,
    /// 2/3.
    TwoThirds,
    /// 3/4.
    ThreeQuarters,
}

/// A rate of the physical layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Bits of a frame in a second.
    pub bps: u64,
    /// How they are sent.
    pub modulation: Modulation,
}

impl Rate {
    fn preamble(self) -> Nanos {
        match self.modulation {
            Modulation::Ofdm(..) => 20 * MICROSECOND,
            _ => 192 * MICROSECOND,
        }
    }

    /// The rate and the bytes of the header that the physical layer puts in front.
    pub fn header(self) -> (Self, u32) {
        match self.modulation {
            Modulation::Ofdm(..) => (G_RATES[0], 3),
            _ => (B_RATES[0], 6),
        }
    }
}

const fn rate(bps: u64, modulation: Modulation) -> Rate {
    Rate { bps, modulation }
}

const B_RATES: [Rate; 4] = [
    rate(1_000_000, Modulation::Dbpsk),
    rate(2_000_000, Modulation::Dqpsk),
    rate(5_500_000, Modulation::Cck(4)),
    rate(11_000_000, Modulation::Cck(8)),
];

const G_RATES: [Rate; 8] = [
    rate(6_000_000, Modulation::Ofdm(1, CodeRate::Half)),
    rate(9_000_000, Modulation::Ofdm(1, CodeRate::ThreeQuarters)),
    rate(12_000_000, Modulation::Ofdm(2, CodeRate::Half)),
    rate(18_000_000, Modulation::Ofdm(2, CodeRate::ThreeQuarters)),
    rate(24_000_000, Modulation::Ofdm(4, CodeRate::Half)),
    rate(36_000_000, Modulation::Ofdm(4, CodeRate::ThreeQuarters)),
    rate(48_000_000, Modulation::Ofdm(6, CodeRate::TwoThirds)),
    rate(54_000_000, Modulation::Ofdm(6, CodeRate::ThreeQuarters)),
];

/// Bytes of a MAC header with three addresses and the frame check sequence (9.3.2.1), and of LLC and SNAP in front of IP.
pub const DATA_OVERHEAD_BYTES: u32 = 24 + 4 + 8;
/// Bytes of an acknowledgement, and of a CTS (9.3.1.4, 9.3.1.3).
pub const ACK_BYTES: u32 = 14;
/// Bytes of an RTS (9.3.1.2).
pub const RTS_BYTES: u32 = 20;

impl Standard {
    /// Its name in descriptions.
    pub fn name(self) -> &'static str {
        match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
        }
    }

    /// Its rates, the slowest first.
    pub fn rates(self) -> &'static [Rate] {
        match self {
            Self::B => &B_RATES,
            Self::G => &G_RATES,
        }
    }

    /// The rate of `bps`, if it has one.
    pub fn rate(self, bps: f64) -> Option<Rate> {
        let is_rate = |rate: &&Rate| (rate.bps as f64 - bps).abs() < 0.5;
        self.rates().iter().find(is_rate).copied()
    }

    /// The rate at which a frame of `rate` is answered: the fastest mandatory one of its kind that is not above it (10.6.6.5).
    pub fn answer_rate(self, rate: Rate) -> Rate {
        let mandatory = match rate.modulation {
            Modulation::Ofdm(..) => [G_RATES[4], G_RATES[2], G_RATES[0]],
            _ => [B_RATES[1], B_RATES[0], B_RATES[0]],
        };
        let fits = |known: &&Rate| known.bps <= rate.bps;
        *mandatory.iter().find(fits).unwrap_or(&mandatory[2])
    }

    /// The time between a frame and its answer (table 17-19 and 18-5: both 10 us).
    pub fn sifs(self) -> Nanos {
        10 * MICROSECOND
    }

    /// The slot: the short one is for networks of 802.11g alone (18.4.4).
    pub fn slot(self, short: bool) -> Nanos {
        match (self, short) {
            (Self::G, true) => 9 * MICROSECOND,
            _ => 20 * MICROSECOND,
        }
    }

    /// Least and greatest contention window (tables 15-5, 18-5).
    pub fn contention_window(self) -> [u32; 2] {
        match self {
            Self::B => [31, 1023],
            Self::G => [15, 1023],
        }
    }

    /// What a station waits beyond SIFS and DIFS after a frame that it did not understand: an ACK at the lowest rate
    /// of the band, 1 Mbit/s with the long preamble (10.3.2.3.7).
    pub fn extended_wait(self) -> Nanos {
        self.sifs() + Self::B.airtime(B_RATES[0], ACK_BYTES)
    }

    /// Preamble and header of the physical layer: long with 802.11b (15.2.2), OFDM's with 802.11g (17.3.2).
    pub fn preamble(self) -> Nanos {
        self.rates()[0].preamble()
    }

    /// How long a frame is on the air, the signal extension of 802.11g with it (18.3.2.4).
    pub fn airtime(self, rate: Rate, bytes: u32) -> Nanos {
        let bits = u64::from(bytes) * 8;
        rate.preamble()
            + match rate.modulation {
                // Service and tail bits, in symbols of 4 us.
                Modulation::Ofdm(..) => {
                    let symbol_bits = rate.bps * 4 / 1_000_000;
                    ((16 + bits + 6).div_ceil(symbol_bits) * 4 + 6) * MICROSECOND
                }
                _ => (bits * 1_000_000).div_ceil(rate.bps) * MICROSECOND,
            }
    }

    /// The bytes that a frame's airtime after preamble and header would carry: with OFDM the padding of the last symbol and, as if there
    /// were a signal, the extension of 802.11g are among them.
    pub fn bytes_on_air(self, rate: Rate, bytes: u32) -> u32 {
        match rate.modulation {
            Modulation::Ofdm(..) => {
                // Without the header's symbol of 4 us, which the preamble's 20 us contain.
                let data = self.airtime(rate, bytes) - rate.preamble();
                (data * rate.bps / (8 * SECOND)) as u32
            }
            _ => bytes,
        }
    }

    /// The width of the noise that a receiver lets in, in Hz: 22 MHz and 20 MHz.
    pub fn bandwidth_hz(self) -> f64 {
        match self {
            Self::B => 22e6,
            Self::G => 20e6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(standard: Standard, mbps: f64, bytes: u32) -> u64 {
        let rate = standard.rate(mbps * 1e6).unwrap();
        standard.airtime(rate, bytes) / MICROSECOND
    }

    #[test]
    fn frames_take_the_times_of_the_standard() {
        // 1500 bytes with 36 of headers: 12310 bits in 57 symbols of 216; an ACK at 24 Mbit/s in 2 of 96.
        assert_eq!(micros(Standard::G, 54.0, 1536), 20 + 4 * 57 + 6);
        assert_eq!(micros(Standard::G, 24.0, ACK_BYTES), 20 + 4 * 2 + 6);
        assert_eq!(micros(Standard::G, 6.0, ACK_BYTES), 20 + 4 * 6 + 6);
        assert_eq!(micros(Standard::B, 2.0, 1536), 192 + 6144);
        assert_eq!(micros(Standard::B, 11.0, 1536), 192 + 1118);
        assert_eq!(Standard::G.extended_wait(), 314 * MICROSECOND);
    }

    #[test]
    fn airtime_holds_more_than_the_frame() {
        let on_air = |standard: Standard, mbps: f64, bytes: u32| {
            standard.bytes_on_air(standard.rate(mbps * 1e6).unwrap(), bytes)
        };
        // 57 symbols of 27 bytes and 1.5 for the extension; two of 12; with DSSS the frame alone.
        assert_eq!(on_air(Standard::G, 54.0, 1488), 56 * 27 + 40);
        assert_eq!(on_air(Standard::G, 24.0, ACK_BYTES), 2 * 12 + 18);
        assert_eq!(on_air(Standard::B, 11.0, 1488), 1488);
    }

    #[test]
    fn answers_are_at_mandatory_rates() {
        let answer = |standard: Standard, mbps: f64| {
            standard.answer_rate(standard.rate(mbps * 1e6).unwrap()).bps / 1_000_000
        };
        assert_eq!(
            [54.0, 18.0, 9.0].map(|mbps| answer(Standard::G, mbps)),
            [24, 12, 6]
        );
        assert_eq!(
            [11.0, 2.0, 1.0].map(|mbps| answer(Standard::B, mbps)),
            [2, 2, 1]
        );
        assert_eq!(Standard::G.rate(11e6), None);
    }
}
