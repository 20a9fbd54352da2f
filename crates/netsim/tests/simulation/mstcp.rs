//! MSTCP with the library's whole protocol: streams whose paths die or lose.

use netsim::Results;
use serde_json::{json, Value};

use super::run::try_run;

/// Two paths of 4 and 3 Mbit/s; the application stops writing at 10 s, the run ends at 25 s.
fn run(lower: &Value, mstcp: &Value) -> Results {
    let mut second = json!({ "ends": ["S", "B"], "rate_bps": 3e6, "delay_us": 9000.0 });
    for (key, value) in lower.as_object().expect("keys of a link") {
        second[key] = value.clone();
    }
    let description = json!({
        "format": 1,
        "seed": 1,
        "duration_s": 25.0,
        "links": [
            { "ends": ["A", "B"], "rate_bps": 4e6, "delay_us": 2000.0 },
            { "ends": ["A", "S"], "rate_bps": 10e6, "delay_us": 100.0 },
            second,
        ],
        "tcp": { "mss_bytes": 536 },
        "flows": [{
            "name": "1", "src": "A", "dst": "B", "protocol": "mstcp", "stop_s": 10.0,
            "traffic": { "kind": "poisson", "rate_bps": 3e6, "write_bytes": 500 },
            "paths": [
                { "path": ["A", "B"], "rate_bps": 3.5e6 },
                { "path": ["A", "S", "B"], "rate_bps": 2.5e6 },
            ],
            "mstcp": mstcp,
        }],
    });
    super::run::run(&description)
}

fn missing(results: &Results) -> u64 {
    let flow = &results.flows[0];
    assert_eq!(flow.bytes_wrong, 0);
    assert!(
        flow.bytes_written > 3_000_000,
        "{} bytes were written",
        flow.bytes_written
    );
    flow.bytes_written - flow.bytes_read
}

fn protocol() -> Value {
    json!({})
}

fn trusting() -> Value {
    json!({ "trust_streams": true })
}

#[test]
fn everything_arrives_though_a_path_dies_for_good() {
    let dies = json!({ "down_s": [[4.0, 30.0]] });
    assert_eq!(missing(&run(&dies, &protocol())), 0);
    // Who trusts a stream waits for what went with it.
    let trusting = run(&dies, &trusting());
    assert!(missing(&trusting) > 100_000);
}

#[test]
fn a_path_that_comes_back_and_one_that_loses_lose_nothing() {
    let returns = json!({ "down_s": [[3.0, 4.5], [6.0, 6.2]] });
    assert_eq!(missing(&run(&returns, &protocol())), 0);
    assert_eq!(missing(&run(&json!({ "loss": 0.02 }), &protocol())), 0);
}

#[test]
fn on_good_paths_the_protocol_costs_little() {
    let [whole, trusting] = [protocol(), trusting()].map(|mstcp| run(&json!({}), &mstcp));
    assert_eq!(missing(&whole), 0);
    let [whole, trusting] =
        [&whole, &trusting].map(|results| results.flows[0].delay_s.expect("delays").mean);
    assert!(whole < 1.2 * trusting, "{whole} and {trusting} s");
}

#[test]
fn the_whole_protocol_binds_late() {
    let description = json!({
        "format": 1, "seed": 1, "duration_s": 1.0,
        "links": [{ "ends": ["A", "B"], "rate_bps": 1e6, "delay_us": 10.0 }, { "ends": ["A", "C"], "rate_bps": 1e6, "delay_us": 10.0 },
                  { "ends": ["C", "B"], "rate_bps": 1e6, "delay_us": 10.0 }],
        "flows": [{ "name": "1", "src": "A", "dst": "B", "protocol": "mstcp", "traffic": { "kind": "bulk" },
                    "paths": [{ "path": ["A", "B"], "rate_bps": 1e6 }, { "path": ["A", "C", "B"], "rate_bps": 1e6 }],
                    "mstcp": { "binding": "early", "trust_streams": false } }],
    });
    let error = try_run(&description).expect_err("refused").to_string();
    assert!(
        error.contains("mstcp.trust_streams") && error.contains("late"),
        "{error}"
    );
}

/// Four frames of a stream may wait unsent. What the initial window lets through does not wait: the kernel sends each write at once,
/// and paces nothing before the tenth segment.
#[test]
fn the_first_window_of_a_paced_stream_leaves_at_once() {
    let description = json!({
        "format": 1, "seed": 1, "duration_s": 5.0, "tcp": { "mss_bytes": 1000 },
        "links": [{ "ends": ["A", "B"], "rate_bps": 1e6, "delay_us": 2e5 }],
        "flows": [{ "name": "1", "src": "A", "dst": "B", "protocol": "mstcp", "traffic": { "kind": "bulk", "total_bytes": 9_900 },
                    "paths": [{ "path": ["A", "B"], "rate_bps": 1e5 }] }],
    });
    let completion_s = super::run::run(&description).flows[0].completion_s;
    // A round trip for the handshake, half of one for the data, and ten segments on the link.
    let expected_s = 0.6 + 10.0 * 1054.0 * 8.0 / 1e6;
    let ratio = completion_s.expect("the file has arrived") / expected_s;
    assert!((ratio - 1.0).abs() < 0.05, "{completion_s:?}");
}
