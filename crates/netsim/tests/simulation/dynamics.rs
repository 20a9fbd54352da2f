//! Links and paths that change during a run, against what is known by formula.

use netsim::Results;
use serde_json::{json, Value};

use super::run::{run, try_run};

const HEADER_BYTES: f64 = 54.0;
const MSS_BYTES: u32 = 946;

fn link(ends: [&str; 2], rate_bps: f64) -> Value {
    json!({ "ends": ends, "rate_bps": rate_bps, "delay_us": 1000, "queue_packets": 100 })
}

/// A ring of four switches with a host at A and one at C: two paths, by B and by D.
fn ring(flow: Value) -> Value {
    json!({
        "format": 1,
        "seed": 3,
        "duration_s": 10,
        "series_interval_s": 0.5,
        "links": [
            link(["S", "A"], 100e6), link(["A", "B"], 10e6), link(["B", "C"], 10e6),
            link(["A", "D"], 10e6), link(["D", "C"], 10e6), link(["C", "R"], 100e6),
        ],
        "tcp": { "mss_bytes": MSS_BYTES, "timestamps": false, "sack": true },
        "flows": [flow],
    })
}

fn over(node: &str) -> Value {
    json!(["S", "A", node, "C", "R"])
}

fn goodput_bps(results: &Results, from_s: f64, to_s: f64) -> f64 {
    let series = &results.flows[0].series;
    let series = series.as_ref().expect("there are series");
    let within: Vec<f64> = series
        .time_s
        .iter()
        .zip(&series.goodput_bps)
        .filter(|(time, _)| **time > from_s + 1e-9 && **time <= to_s + 1e-9)
        .map(|(_, rate)| *rate)
        .collect();
    within.iter().sum::<f64>() / within.len() as f64
}

/// What TCP carries of a link's rate.
fn most_bps(rate_bps: f64) -> f64 {
    rate_bps * f64::from(MSS_BYTES) / (f64::from(MSS_BYTES) + HEADER_BYTES)
}

fn is_near(value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() < 0.03
}

#[test]
fn tcp_follows_the_rate_of_its_link() {
    let mut description = ring(json!({
        "name": "1", "src": "S", "dst": "R", "protocol": "tcp", "traffic": { "kind": "bulk" },
        "paths": [{ "path": over("B") }],
    }));
    description["links"][1]["changes"] = json!([
        { "at_s": 4, "rate_bps": 4e6, "delay_us": 1000, "queue_packets": 100 },
        { "at_s": 7, "rate_bps": 8e6, "delay_us": 20_000, "queue_packets": 100 },
    ]);
    let results = run(&description);
    let [before, slow, far] =
        [(1.0, 4.0), (5.0, 7.0), (8.0, 10.0)].map(|(a, b)| goodput_bps(&results, a, b));
    assert!(is_near(before, most_bps(10e6)), "{before}");
    assert!(is_near(slow, most_bps(4e6)), "{slow}");
    assert!(is_near(far, most_bps(8e6)), "{far}");
}

#[test]
fn a_flow_whose_link_fails_goes_on_over_its_new_path() {
    let mut description = ring(json!({
        "name": "1", "src": "S", "dst": "R", "protocol": "tcp", "traffic": { "kind": "bulk" },
        "paths": [{ "path": over("B") }],
        "reroutes": [{ "at_s": 3.05, "paths": [{ "path": over("D") }] }],
    }));
    description["links"][1]["down_s"] = json!([[3, 1000]]);
    let results = run(&description);
    let [before, after] = [(1.0, 3.0), (5.0, 10.0)].map(|(a, b)| goodput_bps(&results, a, b));
    assert!(is_near(before, most_bps(10e6)), "{before}");
    assert!(is_near(after, most_bps(10e6)), "{after}");
}

#[test]
fn mstcp_sends_at_the_rates_that_its_streams_have_now() {
    let mut description = ring(json!({
        "name": "1", "src": "S", "dst": "R", "protocol": "mstcp",
        "traffic": { "kind": "cbr", "rate_bps": 8e6 },
        "paths": [{ "path": over("B"), "rate_bps": 6e6 }, { "path": over("D"), "rate_bps": 2e6 }],
        "reroutes": [{
            "at_s": 5,
            "paths": [{ "path": over("B"), "rate_bps": 1e6 }, { "path": over("D"), "rate_bps": 7e6 }],
        }],
        "mstcp": { "trust_streams": false },
    }));
    description["tcp"]["pacing"] = json!("allocated");
    let results = run(&description);
    assert!(is_near(goodput_bps(&results, 1.0, 10.0), 8e6));
    let streams = &results.flows[0].streams;
    let shares: Vec<f64> = streams.iter().map(|stream| stream.bytes as f64).collect();
    assert!(
        is_near(shares[0] / (shares[0] + shares[1]), (6.0 + 1.0) / 16.0),
        "{shares:?}"
    );
}

#[test]
fn what_cannot_be_is_refused_at_its_place() {
    let flow = |reroutes: Value| {
        ring(json!({
            "name": "1", "src": "S", "dst": "R", "protocol": "mstcp", "traffic": { "kind": "bulk" },
            "paths": [{ "path": over("B"), "rate_bps": 6e6 }, { "path": over("D"), "rate_bps": 2e6 }],
            "reroutes": reroutes,
        }))
    };
    let both = json!([{ "path": over("B") }, { "path": over("D") }]);
    let cases = [
        (
            json!([{ "at_s": 1, "paths": [{ "path": over("B") }] }]),
            "flows[0].reroutes[0].paths",
        ),
        (
            json!([{ "at_s": 2, "paths": both }, { "at_s": 1, "paths": both }]),
            "flows[0].reroutes[1].at_s",
        ),
    ];
    for (reroutes, place) in cases {
        let error = try_run(&flow(reroutes))
            .expect_err("it cannot be")
            .to_string();
        assert!(error.contains(place), "{error}");
    }
}

/// A later flow may take all that a stream was allocated.
#[test]
fn a_stream_without_a_rate_carries_nothing() {
    let results = run(&ring(json!({
        "name": "1", "src": "S", "dst": "R", "protocol": "mstcp",
        "traffic": { "kind": "cbr", "rate_bps": 6e6 },
        "paths": [{ "path": over("B"), "rate_bps": 6e6 }, { "path": over("D"), "rate_bps": 0 }],
    })));
    assert!(is_near(goodput_bps(&results, 1.0, 10.0), 6e6));
    assert_eq!(results.flows[0].streams[1].bytes, 0);
}
