//! Growth of the window: Reno (RFC 5681) and CUBIC (RFC 9438), against their formulas.

use netsim::tcp::config::{CongestionAlgorithm, RenoGrowth, WindowGrowth};
use netsim::tcp::congestion::{build, Acked, Window};
use netsim::tcp::Config;
use netsim::time::{Nanos, MILLISECOND, SECOND};

use super::plain;
use super::script::Script;

const MSS: u32 = 1000;

fn acked(now: Nanos, segments: u64) -> Acked {
    Acked {
        now,
        segments,
        bytes: segments * u64::from(MSS),
        srtt: Some(100 * MILLISECOND),
        delay: Some(100 * MILLISECOND),
        flight: 0,
    }
}

/// The window after one round trip of `window` bytes, an ACK for each `per_ack` segments.
fn round_trip(growth: RenoGrowth, mut window: Window, per_ack: u64) -> u64 {
    let mut control = build(CongestionAlgorithm::Reno(growth));
    for _ in 0..window.cwnd / u64::from(MSS) / per_ack {
        control.on_ack(&mut window, &acked(0, per_ack));
    }
    window.cwnd
}

#[test]
fn slow_start_doubles_or_grows_by_half_with_delayed_acks() {
    let window = Window {
        cwnd: 10_000,
        ssthresh: 1_000_000,
        mss: MSS,
    };
    for (growth, one, two) in [
        (RenoGrowth::Bytes, 20_000, 15_000),
        (RenoGrowth::Acks, 20_000, 15_000),
        (RenoGrowth::Segments, 20_000, 20_000),
    ] {
        assert_eq!(
            (round_trip(growth, window, 1), round_trip(growth, window, 2)),
            (one, two),
            "{growth:?}"
        );
    }
}

#[test]
fn avoidance_adds_a_segment_a_round_trip() {
    let window = Window {
        cwnd: 100_000,
        ssthresh: 50_000,
        mss: MSS,
    };
    assert_eq!(round_trip(RenoGrowth::Bytes, window, 1), 101_000);
    assert_eq!(round_trip(RenoGrowth::Bytes, window, 2), 101_000);
    assert_eq!(round_trip(RenoGrowth::Segments, window, 2), 101_000);
    // Equation 3 of RFC 5681 in whole bytes: below a segment, half of it with delayed ACKs.
    assert!((100_890..101_000).contains(&round_trip(RenoGrowth::Acks, window, 1)));
    assert!((100_440..100_500).contains(&round_trip(RenoGrowth::Acks, window, 2)));
}

#[test]
fn slow_start_ends_at_the_threshold() {
    let mut window = Window {
        cwnd: 9_000,
        ssthresh: 10_000,
        mss: MSS,
    };
    let mut control = build(CongestionAlgorithm::Reno(RenoGrowth::Segments));
    control.on_ack(&mut window, &acked(0, 4));
    assert_eq!(window.cwnd, 10_000);
    control.on_loss(0, &mut window, 10_000);
    assert_eq!(window.ssthresh, 5_000);
    control.on_loss(0, &mut window, 1_000);
    assert_eq!(window.ssthresh, 2_000);
}

/// `tcp_cwnd_validate` and `tcp_cwnd_restart`: in slow start to twice what was out; in a pause half for each timeout.
#[test]
fn with_linux_the_window_follows_its_use() {
    for (slow_start_after_idle, after_pause) in [(true, 4_000), (false, 7_000)] {
        let mut script = Script::connected(Config {
            growth: WindowGrowth::WhenUsedLately,
            congestion: CongestionAlgorithm::Reno(RenoGrowth::Segments),
            rto: Config::linux().rto,
            slow_start_after_idle,
            ..plain()
        });
        script.run(&format!(
            "0 write 3000
             +0 > . 1:3001 ack 1 each 1000
             +100 < . 1:1 ack 3001 win 65535
             +0 ? cwnd 7000
             +0 write 3000
             +0 > . 3001:6001 ack 1 each 1000
             +100 < . 1:1 ack 6001 win 65535
             +0 ? cwnd 7000
             +2000 write 1000
             +0 > . 6001:7001 ack 1
             +0 ? cwnd {after_pause}"
        ));
    }
}

/// Let a control lose at 1000 segments and watch it for `seconds`, at a round trip of 100 ms; windows in segments after each.
fn after_loss(algorithm: CongestionAlgorithm, loss_at: u64, seconds: u64) -> Vec<f64> {
    let mut control = build(algorithm);
    let mut window = Window {
        cwnd: loss_at * u64::from(MSS),
        ssthresh: 1,
        mss: MSS,
    };
    let flight = window.cwnd;
    control.on_loss(0, &mut window, flight);
    window.cwnd = window.ssthresh;
    let mut windows = Vec::new();
    for round in 0..seconds * 10 {
        let segments = window.cwnd / u64::from(MSS);
        for number in 0..segments {
            let now = round * SECOND / 10 + number * (SECOND / 10) / segments;
            control.on_ack(&mut window, &acked(now, 1));
        }
        windows.push(window.cwnd as f64 / f64::from(MSS));
    }
    windows
}

#[test]
fn cubic_follows_its_curve() {
    // W(t) = C (t - K)^3 + W_max with K = cbrt(W_max (1 - beta) / C) (RFC 9438, 4.2): W_max 1000, K 9.09 s.
    let windows = after_loss(CongestionAlgorithm::Cubic, 1000, 14);
    let k = (1000.0 * 0.3f64 / 0.4).powf(1.0 / 3.0);
    for (round, &window) in windows.iter().enumerate() {
        let t = (round + 1) as f64 / 10.0;
        // The window aims at the curve one round trip ahead, so it lies between the two.
        let [low, high] = [t - 0.1, t + 0.1].map(|t| 0.4 * (t - k).powi(3) + 1000.0);
        assert!(
            window >= low * 0.99 && window <= high * 1.01,
            "t {t}: {window} not in {low}..{high}"
        );
    }
}

#[test]
fn cubic_is_no_slower_than_reno_on_short_paths() {
    // alpha = 3 (1 - beta) / (1 + beta) = 0.53 segments a round trip until the old window (RFC 9438, 4.3), the curve far below.
    let friendly = after_loss(CongestionAlgorithm::Cubic, 20, 1);
    let curve = 20.0 - 0.4 * ((20.0 * 0.3f64 / 0.4).powf(1.0 / 3.0) - 1.1).powi(3);
    let expected = 14.0 + 10.0 * 3.0 * 0.3 / 1.7;
    assert!(
        (friendly[9] - expected).abs() < 0.6,
        "{} against {expected}",
        friendly[9]
    );
    assert!(curve < friendly[9], "{}", friendly[9]);
}

#[test]
fn cubic_of_ns3_has_no_reno_friendly_region() {
    // K = cbrt(20 (1 - beta) / C) = 2.5 s: at 2 s the curve is still below the old window, where Reno has long passed it.
    let ns3 = after_loss(CongestionAlgorithm::Ns3Cubic, 20, 2);
    let friendly = after_loss(CongestionAlgorithm::Cubic, 20, 2);
    assert!(ns3[19] <= 20.0 && ns3[19] >= 18.0, "{}", ns3[19]);
    assert!(friendly[19] > 21.0, "{}", friendly[19]);
    let large = after_loss(CongestionAlgorithm::Ns3Cubic, 1000, 14);
    let k = (1000.0 * 0.3f64 / 0.4).powf(1.0 / 3.0);
    for (round, &window) in large.iter().enumerate().skip(1) {
        let t = (round + 1) as f64 / 10.0;
        let [low, high] = [t - 0.2, t + 0.1].map(|t| 0.4 * (t - k).powi(3) + 1000.0);
        assert!(
            window >= low * 0.98 && window <= high * 1.01,
            "t {t}: {window} not in {low}..{high}"
        );
    }
}

/// Hybrid slow start (Ha and Rhee 2011): a train of ACKs that lasts longer than the round trip means that the path is full.
#[test]
fn slow_start_of_ns3_cubic_ends_with_a_long_train() {
    let mut control = build(CongestionAlgorithm::Ns3Cubic);
    let mut window = Window {
        cwnd: 100_000,
        ssthresh: u64::MAX,
        mss: MSS,
    };
    for number in 0..90 {
        let mut ack = acked(number * MILLISECOND, 1);
        ack.flight = 1_000_000;
        control.on_ack(&mut window, &ack);
    }
    assert_eq!([window.cwnd, window.ssthresh], [190_000, u64::MAX]);
    for number in 90..110 {
        control.on_ack(&mut window, &acked(number * MILLISECOND, 1));
    }
    assert!(
        (195_000..205_000).contains(&window.ssthresh),
        "{}",
        window.ssthresh
    );
}

#[test]
fn cubic_lowers_its_aim_when_it_loses_twice() {
    let mut control = build(CongestionAlgorithm::Cubic);
    let window = |segments: u64| Window {
        cwnd: segments * u64::from(MSS),
        ssthresh: 1,
        mss: MSS,
    };
    let mut high = window(1000);
    control.on_loss(0, &mut high, 1_000_000);
    assert_eq!(high.ssthresh, 700_000);
    // RFC 9438, 4.7: below the last maximum the next is 0.85 of the window, so the curve is flat at 765 segments.
    let mut low = window(900);
    control.on_loss(0, &mut low, 900_000);
    low.cwnd = low.ssthresh;
    let k = ((765.0 - 630.0) / 0.4f64).powf(1.0 / 3.0);
    let mut now = 0;
    while now < (k * SECOND as f64) as Nanos {
        control.on_ack(&mut low, &acked(now, 1));
        now += SECOND / 7000;
    }
    assert!(
        (low.cwnd as f64 / 765_000.0 - 1.0).abs() < 0.01,
        "{}",
        low.cwnd
    );
}
