//! Throughput under random loss, and what pacing does to it.

use super::path::{Path, Pipe};
use netsim::tcp::config::{CongestionAlgorithm, Pacing, RenoGrowth};
use netsim::tcp::Config;
use netsim::time::{MILLISECOND, SECOND};

/// Bits of data a second over 100 ms of round trip with loss `p`.
fn throughput(config: &Config, p: f64, seconds: u64, seed: u64) -> f64 {
    let there = Path {
        delay: 50 * MILLISECOND,
        loss: p,
        ..Path::default()
    };
    let back = Path {
        delay: 50 * MILLISECOND,
        ..Path::default()
    };
    let mut pipe = Pipe::new(config, [there, back], seed);
    pipe.to_write = u64::MAX;
    pipe.run_until(seconds * SECOND);
    pipe.read as f64 * 8.0 / seconds as f64
}

#[test]
fn reno_obeys_mathis() {
    // MSS / RTT * sqrt(3 / (2 b p)) (Mathis, Semke, Mahdavi, Ott 1997): b segments an ACK, counted by ACKs; by bytes b = 1.
    for (growth, delayed, b, p) in [
        (RenoGrowth::Bytes, 1, 1.0, 0.001),
        (RenoGrowth::Bytes, 1, 1.0, 0.004),
        (RenoGrowth::Acks, 2, 2.0, 0.001),
    ] {
        let config = Config {
            congestion: CongestionAlgorithm::Reno(growth),
            delayed_ack_segments: delayed,
            send_buffer_bytes: 1 << 22,
            receive_buffer_bytes: 1 << 22,
            ..Config::rfc()
        };
        let seen = (1..=4)
            .map(|seed| throughput(&config, p, 600, seed))
            .sum::<f64>()
            / 4.0;
        let expected = 536.0 * 8.0 / 0.1 * (1.5 / (b * p)).sqrt();
        assert!(
            (seen / expected - 1.0).abs() < 0.15,
            "{growth:?} p {p}: {seen:.0} against {expected:.0}"
        );
    }
}

#[test]
fn pacing_keeps_its_rate() {
    let config = Config {
        pacing: Pacing::Rate {
            rate_bps: 1_000_000,
        },
        ..Config::rfc()
    };
    let seen = throughput(&config, 0.0, 60, 1);
    assert!((seen / 1e6 - 1.0).abs() < 0.01, "{seen}");
}

#[test]
fn the_window_bounds_the_rate() {
    // A receive buffer each round trip.
    let config = Config {
        receive_buffer_bytes: 53_600,
        ..Config::rfc()
    };
    let seen = throughput(&config, 0.0, 60, 1);
    let bound = 53_600.0 * 8.0 / 0.1;
    assert!(seen <= bound && seen > 0.95 * bound, "{seen} of {bound}");
}
