//! Two endpoints over a path that loses, reorders and duplicates: every byte arrives once, in order, and the connection ends.

use super::path::{Path, Pipe};
use netsim::tcp::config::{CongestionAlgorithm, Reduction};
use netsim::tcp::{Config, State};
use netsim::time::{MILLISECOND, SECOND};

/// All profiles, with and without SACK, with each reduction and congestion control.
fn configs() -> Vec<(String, Config)> {
    let mut configs = Vec::new();
    for (name, base) in [
        ("rfc", Config::rfc()),
        ("ns3", Config::ns3()),
        ("linux", Config::linux()),
    ] {
        for sack in [false, true] {
            for reduction in [
                Reduction::Classic,
                Reduction::Prr,
                Reduction::PrrConservative,
            ] {
                for cubic in [false, true] {
                    let mut config = Config {
                        sack,
                        reduction,
                        mss_bytes: 536,
                        timestamps: sack || cubic,
                        ..base
                    };
                    if !sack {
                        config.detect_by_duplicates();
                    }
                    if cubic {
                        config.congestion = CongestionAlgorithm::Cubic;
                    }
                    configs.push((
                        format!("{name} sack={sack} {reduction:?} cubic={cubic}"),
                        config,
                    ));
                }
            }
        }
    }
    configs
}

#[test]
fn a_clean_path_is_filled_without_retransmissions() {
    for (name, config) in configs() {
        let path = Path {
            delay: 10 * MILLISECOND,
            rate_bps: 10_000_000,
            ..Path::default()
        };
        let buffers = Config {
            send_buffer_bytes: 131_072,
            receive_buffer_bytes: 131_072,
            ..config
        };
        let mut pipe = Pipe::new(&buffers, [path, path], 1);
        pipe.to_write = 10_000_000;
        pipe.close_when_written = true;
        while pipe.ends[0].state() != State::TimeWait && pipe.step() {}
        let statistics = pipe.ends[0].statistics();
        assert_eq!(
            (pipe.read, statistics.retransmits),
            (10_000_000, 0),
            "{name}"
        );
        // 576 bytes on the wire for 536 of data at 10 Mbit/s take 8.6 s.
        assert!(pipe.now < 9 * SECOND, "{name}: {} ns", pipe.now);
        assert_eq!(pipe.ends[1].state(), State::LastAck, "{name}");
        while pipe.step() {}
        assert!(
            pipe.ends
                .iter()
                .all(|end| end.state() == State::Closed && !end.has_failed()),
            "{name}"
        );
    }
}

#[test]
fn every_byte_arrives_once_whatever_the_path_does() {
    for (number, (name, config)) in configs().into_iter().enumerate() {
        for seed in 0..12 {
            let path = Path {
                delay: 10 * MILLISECOND,
                rate_bps: [0, 5_000_000][seed % 2],
                loss: [0.0, 0.01, 0.1][seed % 3],
                duplication: [0.0, 0.02][seed / 2 % 2],
                jitter: [0, 1, 30][seed / 4 % 3] * MILLISECOND,
            };
            let mut pipe = Pipe::new(&config, [path, path], (number * 100 + seed) as u64);
            pipe.to_write = 300_000;
            pipe.close_when_written = true;
            while pipe.ends[0].state() != State::TimeWait
                && pipe.now < 3_600 * SECOND
                && pipe.step()
            {
                pipe.ends.iter().for_each(netsim::tcp::Endpoint::check);
            }
            let ended = pipe.ends.iter().all(|end| {
                matches!(
                    end.state(),
                    State::TimeWait | State::Closed | State::LastAck
                )
            });
            let failed = pipe.ends.iter().any(netsim::tcp::Endpoint::has_failed);
            let statistics = pipe.ends[0].statistics();
            assert!(
                pipe.read == 300_000 || failed,
                "{name} seed {seed}: {} of 300000 at {} {statistics:?}",
                pipe.read,
                pipe.now
            );
            assert!(
                ended,
                "{name} seed {seed}: {:?} {statistics:?}",
                pipe.ends[0].state()
            );
            assert!(
                !failed || path.loss > 0.05,
                "{name} seed {seed} failed: {statistics:?}"
            );
        }
    }
}
