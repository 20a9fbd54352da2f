//! BBR v1 over a path with a queue: its phases, the rate and the queue that they leave (draft-cardwell-iccrg-bbr-congestion-control-00).

use netsim::results::Results;
use netsim::tcp::congestion::bbr::{Bbr, State};
use netsim::tcp::congestion::{CongestionControl, Delivery, Window};
use netsim::tcp::delivery_rate::{RateSample, RateSampler};
use netsim::time::{Nanos, MILLISECOND, SECOND};
use netsim::{Description, Simulation};
use serde_json::{json, Value};

const MSS: u64 = 1000;
/// 8 Mbit/s.
const BYTES_PER_MS: u64 = 1000;
const RTT: Nanos = 40 * MILLISECOND;

/// A path of 8 Mbit/s and 40 ms in rounds: what BBR makes of it.
struct Path {
    bbr: Bbr,
    window: Window,
    now: Nanos,
    total: u64,
}

impl Path {
    fn new() -> Self {
        Self {
            bbr: Bbr::new(7),
            window: Window {
                cwnd: 10 * MSS,
                ssthresh: u64::MAX,
                mss: MSS as u32,
            },
            now: 0,
            total: 0,
        }
    }

    /// One ACK of a round trip later that tells of this many bytes delivered in `interval`; `rtt` is what it took.
    fn ack(&mut self, bytes: u64, interval: Nanos, rtt: Nanos, pipe: u64) {
        self.now += interval;
        let sample = RateSample {
            delivered: bytes,
            interval,
            prior_delivered: self.total,
            app_limited: false,
        };
        self.total += bytes;
        let delivery = Delivery {
            now: self.now,
            bytes,
            rtt: Some(rtt),
            srtt: Some(rtt),
            pipe,
            prior_pipe: pipe + bytes,
            lost: 0,
            total: self.total,
            sample: Some(sample),
            recovering: false,
        };
        self.bbr.on_delivery(&mut self.window, &delivery);
    }

    /// Rounds in which the path delivers what it can.
    fn full_rounds(&mut self, rounds: usize) {
        for _ in 0..rounds {
            // Little more than the path holds, so that a drain comes to its end.
            self.ack(40 * BYTES_PER_MS, RTT, RTT, 44 * MSS);
        }
    }
}

#[test]
fn startup_ends_after_three_rounds_without_growth_and_drain_when_the_queue_is_gone() {
    let mut path = Path::new();
    path.ack(10 * MSS, RTT, RTT, 10 * MSS);
    assert_eq!(path.bbr.state(), State::Startup);
    path.ack(20 * MSS, RTT, RTT, 20 * MSS);
    path.ack(40 * MSS, RTT, RTT, 60 * MSS);
    for _ in 0..2 {
        path.ack(40 * MSS, RTT, 2 * RTT, 100 * MSS);
        assert_eq!(path.bbr.state(), State::Startup);
    }
    path.ack(40 * MSS, RTT, 2 * RTT, 100 * MSS);
    assert_eq!(path.bbr.state(), State::Drain);
    assert!(path.bbr.pacing_gain() < 0.35);
    path.ack(40 * MSS, RTT, RTT, 40 * MSS);
    assert_eq!(path.bbr.state(), State::ProbeBw);
}

#[test]
fn probing_goes_round_its_eight_gains_and_drains_what_it_has_queued() {
    let mut path = Path::new();
    path.full_rounds(12);
    assert_eq!(path.bbr.state(), State::ProbeBw);
    let mut gains = Vec::new();
    for _ in 0..40 {
        // A little more than a round trip each, so that each is a phase of its own.
        path.ack(41 * BYTES_PER_MS, RTT + MILLISECOND, RTT, 60 * MSS);
        gains.push(path.bbr.pacing_gain());
    }
    let probes: Vec<usize> = (0..40).filter(|&at| gains[at] > 1.0).collect();
    assert!(probes.len() >= 4, "{gains:?}");
    for pair in probes.windows(2) {
        assert_eq!(pair[1] - pair[0], 8, "{gains:?}");
    }
    for &at in probes.iter().filter(|&&at| at + 1 < 40) {
        assert!((gains[at + 1] - 0.75).abs() < 1e-9, "{gains:?}");
    }
    // 4.2.3.2: two BDPs and three quanta.
    assert!(
        path.window.cwnd >= 80 * MSS && path.window.cwnd <= 90 * MSS,
        "{}",
        path.window.cwnd
    );
}

#[test]
fn after_ten_seconds_without_a_smaller_round_trip_the_window_is_four_segments_for_200_ms() {
    let mut path = Path::new();
    path.full_rounds(12);
    let before = path.window.cwnd;
    while path.bbr.state() != State::ProbeRtt {
        path.ack(40 * BYTES_PER_MS, RTT, RTT + MILLISECOND, 60 * MSS);
        assert!(path.now < 12 * SECOND);
    }
    assert!(path.now > 10 * SECOND);
    assert_eq!(path.window.cwnd, 4 * MSS);
    let began = path.now;
    while path.bbr.state() == State::ProbeRtt {
        path.ack(4 * MSS, RTT, RTT, 4 * MSS);
    }
    assert!(path.now - began >= 200 * MILLISECOND && path.now - began < 500 * MILLISECOND);
    assert_eq!(path.bbr.state(), State::ProbeBw);
    assert!(
        path.window.cwnd >= before - 10 * MSS,
        "{} of {before}",
        path.window.cwnd
    );
}

#[test]
fn a_sample_is_what_was_delivered_between_a_segments_sending_and_its_ack() {
    let mut sampler = RateSampler::default();
    let first = sampler.stamp(0, true);
    let second = sampler.stamp(10 * MILLISECOND, false);
    sampler.on_delivered(100 * MILLISECOND, 1000, &first);
    let sample = sampler.sample(None).expect("a sample");
    assert_eq!(
        (sample.delivered, sample.interval),
        (1000, 100 * MILLISECOND)
    );
    let third = sampler.stamp(100 * MILLISECOND, false);
    sampler.on_delivered(110 * MILLISECOND, 1000, &second);
    sampler.on_delivered(200 * MILLISECOND, 1000, &third);
    let sample = sampler.sample(None).expect("a sample");
    // From when the third left: 1000 bytes were delivered then, 3000 are now.
    assert_eq!(
        (sample.prior_delivered, sample.delivered, sample.interval),
        (1000, 2000, 100 * MILLISECOND)
    );
    sampler.limit_by_application(0);
    assert_eq!(sampler.sample(None), None);
}

fn run(control: &str, loss: f64, queue: u64) -> Results {
    let description: Value = json!({
        "format": 1, "seed": 1, "duration_s": 30.0, "warm_up_s": 2.0,
        "tcp": {"profile": "linux", "mss_bytes": 1400, "congestion_control": control},
        "links": [{"ends": ["A", "B"], "rate_bps": 20e6, "delay_us": 20000, "queue_packets": queue, "loss": loss}],
        "flows": [{"name": "1", "src": "A", "dst": "B", "protocol": "tcp", "traffic": {"kind": "bulk"}}],
    });
    let description = Description::from_json(&description.to_string()).expect("a description");
    let mut simulation = Simulation::new(&description).expect("a run");
    simulation.run(u64::MAX).expect("no error");
    simulation.results()
}

#[test]
fn bbr_fills_a_path_without_filling_its_queue_and_does_not_mind_loss() {
    let full_bps = 20e6 * 1400.0 / 1466.0;
    let results = run("bbr", 0.0, 1000);
    let flow = &results.flows[0];
    assert!(flow.goodput_bps > 0.9 * full_bps, "{}", flow.goodput_bps);
    let wait = &results.links[0];
    assert!(wait.utilisation <= 1.0);
    // CUBIC waits until the queue of 1000 packets overflows: half a second.
    let rtt = |results: &Results| results.flows[0].streams[0].srtt_s.expect("measured");
    assert!(rtt(&results) < 0.1, "{}", rtt(&results));
    assert!(rtt(&run("cubic", 0.0, 1000)) > 0.2);
    let lossy = run("bbr", 0.01, 1000).flows[0].goodput_bps;
    assert!(lossy > 0.85 * full_bps, "{lossy}");
    assert!(run("cubic", 0.01, 1000).flows[0].goodput_bps < 0.5 * full_bps);
}
