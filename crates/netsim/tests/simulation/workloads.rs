//! What applications do, against what is known by formula: files, on/off, requests, writes that wait.

use netsim::random::{exponential, SeedableRng, SplitMix64};
use serde_json::{json, Value};

use super::run::{assert_close, run, try_run};

const HEADERS: f64 = 54.0;
/// Headers of a SYN: two words more, for segment size and window scaling.
const SYN_HEADERS: f64 = HEADERS + 8.0;
const RATE_BPS: f64 = 8e6;
const DELAY_S: f64 = 0.002;

/// A flow over one link of 8 Mbit/s and 2 ms: a byte takes a microsecond.
fn one_link(duration_s: f64, traffic: Value) -> Value {
    json!({
        "format": 1,
        "seed": 3,
        "duration_s": duration_s,
        "links": [{ "ends": ["A", "B"], "rate_bps": RATE_BPS, "delay_us": DELAY_S * 1e6 }],
        "tcp": {
            "mss_bytes": 1000, "timestamps": false, "sack": false, "initial_window_segments": 1000,
            "send_buffer_bytes": 1_000_000, "receive_buffer_bytes": 1_000_000,
        },
        "flows": [{ "name": "1", "src": "A", "dst": "B", "protocol": "tcp", "traffic": traffic }],
    })
}

/// What `bytes` take to be sent on the link.
fn sent_s(bytes: f64) -> f64 {
    bytes * 8.0 / RATE_BPS
}

/// Exponentially distributed draws.
fn drawn(count: usize, mean: f64) -> Vec<f64> {
    let mut rng = SplitMix64::seed_from_u64(3);
    let draws = std::iter::repeat_with(|| exponential(&mut rng, mean * 1e9) as f64 / 1e9);
    draws.take(count).collect()
}

/// The handshake, then each segment's serialisation, and the propagation of the last.
#[test]
fn a_file_within_the_window_takes_handshake_serialisation_and_propagation() {
    let results = run(&one_link(
        2.0,
        json!({ "kind": "bulk", "total_bytes": 100_500 }),
    ));
    let flow = &results.flows[0];
    let handshake_s = 2.0 * (sent_s(SYN_HEADERS) + DELAY_S) + sent_s(HEADERS);
    let expected_s = handshake_s + sent_s(100_500.0 + 101.0 * HEADERS) + DELAY_S;
    let completion_s = flow.completion_s.expect("the file has arrived");
    assert_eq!(
        (completion_s * 1e9).round(),
        (expected_s * 1e9).round(),
        "completion"
    );
    let transfers = flow.transfers.expect("a file is a transfer");
    assert_eq!((transfers.started, transfers.completed), (1, 1));
    let active_bps = flow.active_goodput_bps.expect("it was active");
    assert_close("goodput", active_bps, 100_500.0 * 8.0 / expected_s, 1e-9);
    assert!(flow.fct_s.is_none());
}

#[test]
fn a_file_that_is_not_read_whole_has_no_completion() {
    let results = run(&one_link(
        1.0,
        json!({ "kind": "bulk", "total_bytes": 10_000_000 }),
    ));
    let flow = &results.flows[0];
    let transfers = flow.transfers.expect("a file is a transfer");
    assert_eq!((transfers.started, transfers.completed), (1, 0));
    assert_eq!(flow.completion_s, None);
    assert_eq!(flow.active_goodput_bps, Some(flow.goodput_bps));
}

#[test]
fn an_on_off_source_writes_at_its_rate_while_it_is_on() {
    let periods: Vec<_> = (0..10)
        .map(|n| (4.0 * f64::from(n), 4.0 * f64::from(n) + 1.0))
        .collect();
    let mut description = one_link(
        40.0,
        json!({ "kind": "onoff", "rate_bps": 4e6, "periods": periods, "write_bytes": 500 }),
    );
    let flow = &run(&description).flows[0];
    assert_eq!((flow.ticks, flow.bytes_written), (10_000, 5_000_000));
    assert_close("goodput", flow.goodput_bps, 1e6, 1e-9);
    let active_bps = flow.active_goodput_bps.expect("it was on");
    assert_close("goodput while on", active_bps, 4e6, 1e-9);

    let mut end = 0.0;
    let lengths = drawn(22_000, 0.02);
    let periods = lengths.chunks(2).map(|pair| {
        let begin = end;
        let off = begin + 1.5 * pair[0];
        end = off + 0.5 * pair[1];
        (begin, off)
    });
    description["flows"][0]["traffic"]["periods"] = json!(periods.collect::<Vec<_>>());
    description["duration_s"] = json!(400.0);
    description["warm_up_s"] = json!(10.0);
    let flow = &run(&description).flows[0];
    assert_close("goodput", flow.goodput_bps, 3e6, 0.02);
    // The tick that begins a period is not paid for by it: half a tick, a millisecond each, in 30.
    let active_bps = flow.active_goodput_bps.expect("it was on");
    assert_close(
        "goodput while on",
        active_bps,
        4e6 * (1.0 + 0.5 / 30.0),
        0.01,
    );
}

/// Requests and answers of one segment each: an M/D/1 queue in front of the answers.
#[test]
fn answers_to_an_open_loop_wait_as_m_d_1() {
    for load in [0.3, 0.7] {
        let service_s = sent_s(800.0 + HEADERS);
        let count = 1.1 * 600.0 * load / service_s;
        let times_s = drawn(count as usize, service_s / load);
        let results = run(&one_link(
            600.0,
            json!({ "kind": "requests", "times_s": times_s, "request_bytes": 10, "sizes_bytes": [800] }),
        ));
        let flow = &results.flows[0];
        let transfers = flow.transfers.expect("requests are transfers");
        assert_close(
            "requests",
            transfers.started as f64,
            600.0 * load / service_s,
            0.01,
        );
        assert!(transfers.started - transfers.completed < 100);
        let fct_s = flow.fct_s.as_ref().expect("there were answers");
        let idle_s = 2.0 * DELAY_S + sent_s(10.0 + HEADERS) + service_s;
        let wait_s = service_s * load / (2.0 * (1.0 - load));
        assert_close("completion", fct_s.delay.mean, idle_s + wait_s, 0.02);
        assert_close("least", fct_s.quantiles[0], idle_s, 0.01);
        assert_eq!(fct_s.quantiles.len(), 101);
    }
}

#[test]
fn one_user_who_does_not_think_asks_once_a_round_trip() {
    let results = run(&one_link(
        100.0,
        json!({ "kind": "requests", "users": 1, "times_s": [0], "sizes_bytes": [2500] }),
    ));
    let flow = &results.flows[0];
    let cycle_s = 2.0 * DELAY_S + sent_s(100.0 + HEADERS) + sent_s(2500.0 + 3.0 * HEADERS);
    let fct_s = flow.fct_s.as_ref().expect("there were answers");
    // A delayed ACK may leave before the next request.
    assert_close("completion", fct_s.delay.mean, cycle_s, 0.02);
    let transfers = flow.transfers.expect("requests are transfers");
    assert!(transfers.started - transfers.completed <= 1);
    assert_close(
        "answers",
        transfers.completed as f64 * fct_s.delay.mean,
        100.0,
        1e-3,
    );
}

/// Little's law, below and at capacity: users = throughput x (completion + thinking).
#[test]
fn users_of_a_closed_loop_obey_littles_law() {
    for (users, think_s) in [(3, 0.05), (40, 0.0), (200, 0.3)] {
        let sizes: Vec<u64> = drawn(50_000, 4000.0)
            .iter()
            .map(|size| size.ceil() as u64)
            .collect();
        let times_s = drawn(50_000, think_s);
        let mut description = one_link(
            200.0,
            json!({ "kind": "requests", "users": users, "times_s": times_s, "sizes_bytes": sizes }),
        );
        description["warm_up_s"] = json!(5.0);
        let flow = &run(&description).flows[0];
        let completed = flow.transfers.expect("requests are transfers").completed;
        let fct_s = flow.fct_s.as_ref().expect("there were answers").delay.mean;
        let law = completed as f64 / 200.0 * (fct_s + think_s);
        assert_close(&format!("{users} users"), law, f64::from(users), 0.02);
        if users == 40 {
            let busy = flow.goodput_bps * (1000.0 + HEADERS) / 1000.0;
            assert!(busy > 0.93 * RATE_BPS && busy <= RATE_BPS, "{busy}");
        }
    }
}

#[test]
fn requests_go_through_mstcp_in_both_directions() {
    for binding in ["early", "late"] {
        let mut description = one_link(
            60.0,
            json!({
                "kind": "requests", "times_s": drawn(1300, 0.05), "request_bytes": 1500,
                "sizes_bytes": [50, 1000, 2000, 4000, 10_000, 25_000],
            }),
        );
        description["links"] = json!([
            { "ends": ["A", "B"], "rate_bps": 4e6, "delay_us": 1000, "loss": 0.002 },
            { "ends": ["A", "S"], "rate_bps": 4e6, "delay_us": 1000 },
            { "ends": ["S", "B"], "rate_bps": 4e6, "delay_us": 7000, "loss": 0.002 },
        ]);
        let flow = &mut description["flows"][0];
        flow["protocol"] = json!("mstcp");
        flow["paths"] = json!([
            { "path": ["A", "B"], "rate_bps": 3e6 },
            { "path": ["A", "S", "B"], "rate_bps": 3e6 },
        ]);
        flow["mstcp"] = json!({ "binding": binding });
        let flow = &run(&description).flows[0];
        let transfers = flow.transfers.expect("requests are transfers");
        assert!(transfers.started > 1000, "{binding}: {transfers:?}");
        assert!(
            transfers.started - transfers.completed < 30,
            "{binding}: {transfers:?}"
        );
        assert!(flow.streams.iter().all(|stream| stream.bytes > 1_000_000));
    }
}

/// A burst that outruns link and buffer: what is left out by `skip` is made up for by `wait`.
#[test]
fn writes_that_wait_are_all_written() {
    let written = |when_full: &str| {
        let mut description = one_link(
            20.0,
            json!({
                "kind": "onoff", "rate_bps": 12e6, "periods": (0..20).map(|n| [n as f64, n as f64 + 0.5]).collect::<Vec<_>>(),
                "write_bytes": 1000, "when_full": when_full,
            }),
        );
        description["tcp"]["send_buffer_bytes"] = json!(20_000);
        let flow = &run(&description).flows[0];
        (flow.ticks, flow.ticks_skipped, flow.bytes_written)
    };
    let (ticks, skipped, bytes) = written("wait");
    assert_eq!((ticks, skipped, bytes), (15_000, 0, 15_000_000));
    let (ticks, skipped, bytes) = written("skip");
    assert_eq!((ticks - skipped) * 1000, bytes);
    assert!(ticks == 15_000 && skipped > 4_000, "{skipped}");
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    for (traffic, reason) in [
        (
            json!({ "kind": "requests", "sizes_bytes": [1] }),
            "missing field `times_s`",
        ),
        (
            json!({ "kind": "requests", "users": 2, "times_s": [], "sizes_bytes": [1] }),
            "flows[0].traffic: users are between",
        ),
        (
            json!({ "kind": "requests", "times_s": [1], "sizes_bytes": [0] }),
            "sizes_bytes are one at least",
        ),
        (
            json!({ "kind": "onoff", "rate_bps": 1e6, "periods": [[0, 1], [1, 2]] }),
            "periods are pairs of seconds",
        ),
        (
            json!({ "kind": "cbr", "rate_bps": 1e6, "when_full": "block" }),
            "unknown variant `block`",
        ),
        (
            json!({ "kind": "poisson", "rate_bps": 0.1 }),
            "rate_bps is between 1",
        ),
    ] {
        let error = try_run(&one_link(1.0, traffic)).expect_err("refused");
        assert!(error.to_string().contains(reason), "{error}");
    }
    let mut datagrams = one_link(1.0, json!({ "kind": "bulk" }));
    datagrams["flows"][0]["protocol"] = json!("datagram");
    let error = try_run(&datagrams).expect_err("refused").to_string();
    assert!(
        error.contains("datagrams carry cbr, poisson and onoff"),
        "{error}"
    );
}
