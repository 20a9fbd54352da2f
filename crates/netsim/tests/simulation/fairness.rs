//! What coupled subflows take beside a TCP, and how they share two links: against the equilibria of their fluid models, and against the
//! rules themselves under random losses.

use netsim::results::FlowResults;
use netsim::tcp::congestion::coupled::{Balia, CouplingRule, Lia, Olia, SubflowState};
use serde_json::{json, Value};

use super::run::run;

/// The bottleneck that an MPTCP with two subflows shares with a TCP; what is left out is a queue of 200 packets without losses.
fn shared(control: &str, seed: u64, bottleneck: &Value) -> Vec<FlowResults> {
    let mut last =
        json!({"ends": ["R", "D"], "rate_bps": 20e6, "delay_us": 10000, "queue_packets": 200});
    let jitter_us = bottleneck["jitter_us"].as_f64().unwrap_or(0.0);
    for (key, value) in bottleneck.as_object().expect("settings") {
        if key != "jitter_us" {
            last[key] = value.clone();
        }
    }
    // One after the other, in either order.
    let offset_s = (seed as f64 * 0.37) % 4.0 - 2.0;
    let access = |from: &str| json!({"ends": [from, "R"], "rate_bps": 1e9, "delay_us": 1000});
    let host = |from: &str, to: &str| json!({"ends": [from, to], "rate_bps": 1e9, "delay_us": 2000, "jitter_us": jitter_us});
    run(&json!({
        "format": 1, "seed": seed, "duration_s": 100.0, "warm_up_s": 10.0,
        "links": [host("S", "A"), host("S", "B"), host("T", "C"), access("A"), access("B"), access("C"), last],
        "tcp": {"profile": "linux", "mss_bytes": 1400, "congestion_control": "reno", "reordering": "none"},
        "flows": [
            {"name": "mptcp", "src": "S", "dst": "D", "protocol": "mptcp", "traffic": {"kind": "bulk"}, "start_s": offset_s.max(0.0),
             "mptcp": {"congestion_control": control},
             "paths": [{"path": ["S", "A", "R", "D"]}, {"path": ["S", "B", "R", "D"]}]},
            {"name": "tcp", "src": "T", "dst": "D", "protocol": "tcp", "traffic": {"kind": "bulk"}, "start_s": (-offset_s).max(0.0),
             "paths": [{"path": ["T", "C", "R", "D"]}]},
        ],
    }))
    .flows
}

/// What MPTCP takes for each byte of the TCP: goodputs of all seeds, one over the other.
fn beside_a_tcp(control: &str, bottleneck: &Value, seeds: u64) -> f64 {
    let sums = (1..=seeds).fold([0.0; 2], |[mptcp, tcp], seed| {
        let flows = shared(control, seed, bottleneck);
        [mptcp + flows[0].goodput_bps, tcp + flows[1].goodput_bps]
    });
    sums[0] / sums[1]
}

/// The same, and what the rule takes by chance where its subflows and the TCP meet loss as often per segment as they did here: windows
/// go as the square root of that (Mathis et al. 1997). One recovery or timeout is one loss, however many segments are lost at once.
fn beside_a_tcp_at_its_losses(control: &str, bottleneck: &Value, seeds: u64) -> (f64, f64) {
    let (mut losses, mut segments, mut goodput_bps) = ([0.0; 2], [0.0; 2], [0.0; 2]);
    for seed in 1..=seeds {
        for (flow, results) in shared(control, seed, bottleneck).iter().enumerate() {
            goodput_bps[flow] += results.goodput_bps;
            for stream in &results.streams {
                losses[flow] += (stream.fast_retransmits + stream.timeouts) as f64;
                segments[flow] += stream.data_segments_sent as f64;
            }
        }
    }
    let chance: f64 = by_chance(&*rule(control), [0.001; 2]).iter().sum();
    let unfairness = (losses[1] / segments[1]) / (losses[0] / segments[0]);
    (goodput_bps[0] / goodput_bps[1], unfairness.sqrt() * chance)
}

/// Mbit/s of two subflows over disjoint links of 40 ms that lose so much.
fn disjoint(control: &str, loss: [f64; 2]) -> [f64; 2] {
    let link = |ends: [&str; 2], loss: f64| json!({"ends": ends, "rate_bps": 200e6, "delay_us": 20_000, "queue_packets": 1000, "loss": loss});
    let rest = |ends: [&str; 2]| json!({"ends": ends, "rate_bps": 1e9, "delay_us": 0});
    let mut sums = [0.0; 2];
    for seed in 1..=6 {
        let flows = run(&json!({
            "format": 1, "seed": seed, "duration_s": 150.0, "warm_up_s": 10.0,
            "links": [link(["S", "A"], loss[0]), rest(["A", "D"]), link(["S", "B"], loss[1]), rest(["B", "D"])],
            "tcp": {"profile": "linux", "mss_bytes": 1400, "congestion_control": "reno", "reordering": "none"},
            "flows": [{"name": "mptcp", "src": "S", "dst": "D", "protocol": "mptcp", "traffic": {"kind": "bulk"},
                       "mptcp": {"congestion_control": control}, "paths": [{"path": ["S", "A", "D"]}, {"path": ["S", "B", "D"]}]}],
        }))
        .flows;
        for (sum, stream) in sums.iter_mut().zip(&flows[0].streams) {
            *sum += stream.throughput_bps / 6e6;
        }
    }
    sums
}

/// A generator for the model below: Marsaglia's xorshift.
struct Draws(u64);

impl Draws {
    fn below(&mut self, probability: f64) -> bool {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) as f64 / (1u64 << 53) as f64) < probability
    }
}

/// The rule alone, without a network: rounds of one round trip, each segment is lost by chance, one reduction a round. Mean windows
/// of both subflows over that of a Reno which loses as the better one does.
fn by_chance(rule: &dyn CouplingRule, loss: [f64; 2]) -> [f64; 2] {
    let mut draws = Draws(0x9E37_79B9_7F4A_7C15);
    let flow = SubflowState {
        window: 10.0,
        smoothed_window: 0.0,
        rtt: 0.04,
        between_losses: [0.0, 100.0],
    };
    let mut flows = [flow; 2];
    let (mut reno, mut sums, mut reno_sum) = (10.0f64, [0.0; 2], 0.0);
    for _ in 0..300_000 {
        let before = flows;
        for own in 0..2 {
            let window = before[own].window;
            sums[own] += window;
            let flow = &mut flows[own];
            if draws.below(1.0 - (1.0 - loss[own]).powf(window)) {
                flow.window = rule.decrease(&before, own).max(1.0);
                flow.between_losses = [0.0, before[own].between_losses[0]];
            } else {
                flow.window = (window + rule.increase(&before, own) * window).max(1.0);
                flow.between_losses[0] += window;
            }
        }
        reno_sum += reno;
        let lost = draws.below(1.0 - (1.0 - loss[0].min(loss[1])).powf(reno));
        reno = if lost {
            (reno / 2.0).max(1.0)
        } else {
            reno + 1.0
        };
    }
    sums.map(|sum| sum / reno_sum)
}

/// Shares of the fluid model's equilibrium, of a Reno on the better path: RFC 6356 and Raiciu et al. 2011 for LIA (windows go as 1/p),
/// Khalili et al. 2012, theorem 1 for OLIA (the best paths alone), Peng et al. 2016 for BALIA (`balia_shares`).
fn fluid(control: &str, loss: [f64; 2]) -> [f64; 2] {
    let alike = loss[0] == loss[1];
    match control {
        "lia" => [loss[1] / (loss[0] + loss[1]), loss[0] / (loss[0] + loss[1])],
        "olia" if !alike => [1.0, 0.0],
        "balia" if !alike => balia_shares(loss),
        _ => [0.5, 0.5],
    }
}

/// BALIA, equal round trips, the first path better: the second has a = w1 / w2, and p2 / p1 = (1 + a)(4 + a) / (10 min(a, 1.5)).
fn balia_shares(loss: [f64; 2]) -> [f64; 2] {
    let want = loss[1] / loss[0];
    let ratio = |a: f64| (1.0 + a) * (4.0 + a) / (10.0 * a.min(1.5));
    let (mut low, mut high) = (1.5, 100.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if ratio(middle) < want {
            low = middle;
        } else {
            high = middle;
        }
    }
    [low / (1.0 + low), 1.0 / (1.0 + low)]
}

fn rule(control: &str) -> Box<dyn CouplingRule> {
    match control {
        "lia" => Box::new(Lia),
        "olia" => Box::new(Olia),
        _ => Box::new(Balia),
    }
}

#[test]
fn over_disjoint_links_they_take_what_the_fluid_model_says() {
    let reno = |loss: f64| disjoint("uncoupled", [loss, loss]).iter().sum::<f64>() / 2.0;
    for loss in [[0.002, 0.002], [0.001, 0.004], [0.001, 0.002]] {
        let alone = reno(loss[0]);
        for control in ["lia", "olia", "balia"] {
            let rates = disjoint(control, loss).map(|mbps| mbps / alone);
            let expected = fluid(control, loss);
            let chance = by_chance(&*rule(control), loss);
            let total = rates[0] + rates[1];
            let place =
                format!("{control} {loss:?}: {rates:?}, fluid {expected:?}, by chance {chance:?}");
            // The fluid's total is one Reno on the best path, for all three. OLIA loses more of it to chance, which tells it now and
            // then that the worse path is better.
            let least = if control == "olia" { 0.87 } else { 0.9 };
            assert!((least..=1.1).contains(&total), "{place}");
            assert!(
                (total / (chance[0] + chance[1]) - 1.0).abs() < 0.08,
                "{place}"
            );
            let model = if control == "olia" { chance } else { expected };
            for (share, model) in rates.iter().zip(model) {
                assert!((share - model).abs() < 0.1, "{place}");
            }
        }
    }
}

#[test]
fn with_large_windows_their_totals_are_those_of_the_fluid_model() {
    // A fluid has no segments. Two subflows lack about one more than a TCP does, of 120 in its window here.
    let loss = [0.0001, 0.0002];
    let alone = disjoint("uncoupled", [loss[0]; 2]).iter().sum::<f64>() / 2.0;
    for control in ["lia", "olia", "balia"] {
        let total = disjoint(control, loss).iter().sum::<f64>() / alone;
        assert!((0.9..=1.1).contains(&total), "{control} {total}");
    }
}

#[test]
fn at_a_shared_link_that_loses_by_chance_they_take_together_what_a_tcp_takes() {
    let bottleneck = json!({"loss": 0.002});
    for control in ["lia", "olia", "balia"] {
        let ratio = beside_a_tcp(control, &bottleneck, 12);
        assert!((0.9..=1.1).contains(&ratio), "{control} {ratio}");
    }
    let uncoupled = beside_a_tcp("uncoupled", &bottleneck, 6);
    assert!((1.8..=2.2).contains(&uncoupled), "uncoupled {uncoupled}");
}

#[test]
fn at_a_full_queue_they_take_together_what_a_tcp_takes_where_hosts_vary() {
    // Hosts that take up to three packets' time to answer, which no queue can be in step with (Floyd and Jacobson 1992).
    for packets in [50, 200] {
        let ratio = beside_a_tcp(
            "lia",
            &json!({"queue_packets": packets, "jitter_us": 2000}),
            12,
        );
        assert!((0.9..=1.1).contains(&ratio), "lia {packets} {ratio}");
    }
    let balia = beside_a_tcp(
        "balia",
        &json!({"queue_packets": 100, "jitter_us": 2000}),
        12,
    );
    assert!((0.9..=1.1).contains(&balia), "balia {balia}");
    let olia = beside_a_tcp("olia", &json!({"queue_packets": 50, "jitter_us": 2000}), 36);
    assert!((0.9..=1.1).contains(&olia), "olia {olia}");
}

#[test]
fn where_all_is_in_step_a_full_queue_drops_more_of_one_flow_than_of_another() {
    // Phase effects (Floyd and Jacobson 1992): no control can be fair where the queue is not.
    let (ratio, at_these_losses) =
        beside_a_tcp_at_its_losses("lia", &json!({"queue_packets": 100}), 16);
    assert!(at_these_losses > 1.21, "{at_these_losses}");
    assert!(
        (ratio / at_these_losses - 1.0).abs() < 0.15,
        "{ratio}, expected {at_these_losses}"
    );
}

#[test]
fn at_a_full_queue_they_take_what_the_fluid_model_says_at_the_losses_that_they_meet() {
    for packets in [50, 200] {
        for control in ["lia", "olia", "balia"] {
            let bottleneck = json!({"queue_packets": packets, "jitter_us": 2000});
            let (ratio, at_these_losses) = beside_a_tcp_at_its_losses(control, &bottleneck, 8);
            assert!(
                (ratio / at_these_losses - 1.0).abs() < 0.1,
                "{control} {packets}: {ratio}, expected {at_these_losses}"
            );
        }
    }
}
