//! The simulator against what is known by formula, and TCP over a shared queue against ns-3.

use netsim::Results;
use serde_json::{json, Value};

use super::run::{assert_close, run};

fn link(a: &str, b: &str, rate_bps: f64, delay_us: f64) -> Value {
    json!({ "ends": [a, b], "rate_bps": rate_bps, "delay_us": delay_us })
}

/// A TCP of one constant rate, a segment at a time.
fn cbr(name: &str, src: &str, dst: &str, rate_bps: f64) -> Value {
    json!({
        "name": name, "src": src, "dst": dst, "protocol": "tcp",
        "traffic": { "kind": "cbr", "rate_bps": rate_bps },
    })
}

/// A bulk TCP over a bottleneck from S to B, of so much rate and delay and these settings, and the seconds that it takes, the first
/// without measurements. Its results are those of flow 0 and link 2.
fn bulk(
    (rate_bps, delay_us, settings): (f64, f64, Value),
    [warm_up_s, duration_s]: [f64; 2],
    seed: u64,
    tcp: Value,
) -> Results {
    let mut bottleneck = link("S", "B", rate_bps, delay_us);
    let settings = settings.as_object().expect("keys of a link").clone();
    bottleneck.as_object_mut().expect("keys").extend(settings);
    let results = run(&json!({
        "format": 1,
        "seed": seed,
        "duration_s": duration_s,
        "warm_up_s": warm_up_s,
        "links": [link("A", "S", 1e9, 0.0), bottleneck],
        "tcp": tcp,
        "flows": [{
            "name": "1", "src": "A", "dst": "B", "protocol": "tcp", "traffic": { "kind": "bulk" },
        }],
    }));
    assert_conserved(&results);
    results
}

fn assert_conserved(results: &Results) {
    let dropped: u64 = results
        .links
        .iter()
        .map(|link| link.dropped_queue + link.lost + link.dropped_down)
        .sum();
    assert_eq!(results.counters.packets_dropped, dropped);
    for flow in &results.flows {
        assert!(flow.bytes_read <= flow.bytes_written);
    }
    for link in &results.links {
        assert!(
            (0.0..=1.0 + 1e-9).contains(&link.utilisation),
            "{} is busy {}",
            link.link,
            link.utilisation
        );
    }
}

/// An idle path takes propagation plus serialisation, to the nanosecond.
#[test]
fn an_idle_path_takes_propagation_and_serialisation() {
    let results = run(&json!({
        "format": 1,
        "duration_s": 1.0,
        "links": [link("A", "S", 10e6, 1500.0), link("S", "B", 2e6, 700.0)],
        "flows": [{
            "name": "1", "src": "A", "dst": "B", "protocol": "datagram",
            "traffic": { "kind": "cbr", "rate_bps": 1e5, "write_bytes": 500 },
        }],
    }));
    let bits = f64::from(500 + 8 + 34) * 8.0;
    let expected_ns = 2_200_000.0 + bits * 100.0 + bits * 500.0;
    let delay = results.flows[0].delay_s.expect("packets arrived");
    assert_eq!((delay.mean * 1e9).round(), expected_ns);
    assert_eq!((delay.max * 1e9).round(), expected_ns);
    assert_conserved(&results);
}

/// A bulk flow fills its bottleneck: goodput is the capacity times payload over packet, both with loss-free and with
/// bounded queues.
#[test]
fn a_bulk_flow_fills_the_bottleneck() {
    for (queue, tolerance) in [(Value::Null, 0.002), (json!(200), 0.005)] {
        let bottleneck = (8e6, 6000.0, json!({ "queue_packets": queue }));
        let results = bulk(bottleneck, [5.0, 60.0], 1, json!({ "mss_bytes": 1448 }));
        let packet = f64::from(1448 + 34 + 20 + 12);
        assert_close(
            "goodput",
            results.flows[0].goodput_bps,
            8e6 * 1448.0 / packet,
            tolerance,
        );
    }
}

/// Mean wait in an M/D/1 queue: rho / (2 (1 - rho)) services (Pollaczek and Khinchine), over ten million packets.
#[test]
fn a_queue_with_poisson_arrivals_waits_as_m_d_1() {
    for (load, seed) in [(0.5, 1), (0.8, 2)] {
        let rate_bps = 1e9;
        let packet_bits = 125.0 * 8.0;
        let service_s = packet_bits / rate_bps;
        let payload = 125 - 8 - 34;
        let duration_s = 1e7 * service_s / load;
        let results = run(&json!({
            "format": 1,
            "seed": seed,
            "duration_s": duration_s,
                "links": [link("A", "B", rate_bps, 0.0)],
            "flows": [{
                "name": "1", "src": "A", "dst": "B", "protocol": "datagram",
                "traffic": {
                    "kind": "poisson",
                    "rate_bps": load * rate_bps * f64::from(payload) / 125.0,
                    "write_bytes": payload,
                },
            }],
        }));
        assert_close(
            "packets",
            results.counters.packets_delivered as f64,
            1e7,
            0.005,
        );
        let wait_s = results.flows[0].delay_s.expect("packets arrived").mean - service_s;
        assert_close(
            "mean wait",
            wait_s,
            service_s * load / (2.0 * (1.0 - load)),
            0.01,
        );
        assert_close("utilisation", results.links[0].utilisation, load, 0.005);
        assert_conserved(&results);
    }
}

/// Reno under random loss: MSS / RTT x sqrt(3 / (2 b p)) (Mathis, Semke, Mahdavi and Ott 1997), with an ACK for each segment.
#[test]
fn reno_under_random_loss_follows_mathis() {
    for loss in [0.001, 0.004] {
        let rtt_s = 0.1;
        let results = bulk(
            (1e9, 1e6 * rtt_s / 2.0, json!({ "loss": loss })),
            [20.0, 2000.0],
            5,
            json!({
                "mss_bytes": 1000, "delayed_ack_segments": 1,
                "send_buffer_bytes": 4_000_000, "receive_buffer_bytes": 4_000_000,
            }),
        );
        let expected_bps = 1000.0 * 8.0 / rtt_s * f64::sqrt(1.5 / loss);
        assert_close("goodput", results.flows[0].goodput_bps, expected_bps, 0.15);
    }
}

/// Reno's sawtooth between W and W / 2 over a path that holds `1` and a queue that holds `queue` of it: the share of the link that is used.
fn sawtooth_utilisation(queue: f64) -> f64 {
    let top = 1.0 + queue.min(1.0);
    let bottom = top / 2.0;
    // A window w below the path's takes a round trip of 1 and sends w; above it the link is full.
    let time = (top * top - 1.0) / 2.0 + (1.0 - bottom);
    (top * top - bottom * bottom) / 2.0 / time
}

/// Reno uses what its sawtooth leaves, whatever the queue, the delay, the ACKs and SACK: what follows slow start's overshoot is no
/// chain of timeouts, as it is where SACKed or lost bytes count as flight at a timeout.
#[test]
fn reno_uses_what_its_sawtooth_leaves() {
    let packet = 1448.0 + 66.0;
    for (rate_bps, rtt_s) in [(20e6, 0.04), (10e6, 0.1), (50e6, 0.04)] {
        let path_packets = rate_bps * rtt_s / 8.0 / packet;
        for queue in [0.5, 0.75, 1.5] {
            for (acks, sack) in [(1, true), (2, true), (1, false), (2, false)] {
                let packets = (queue * path_packets) as u64;
                let results = bulk(
                    (
                        rate_bps,
                        1e6 * rtt_s / 2.0,
                        json!({ "queue_packets": packets }),
                    ),
                    [10.0, 50.0],
                    1,
                    json!({
                        "profile": "rfc", "mss_bytes": 1448, "sack": sack, "delayed_ack_segments": acks,
                        "send_buffer_bytes": 8_000_000, "receive_buffer_bytes": 8_000_000,
                    }),
                );
                let what = format!("{rate_bps} {rtt_s} {queue} {acks} {sack}");
                let share = results.links[2].utilisation / sawtooth_utilisation(queue);
                assert!(
                    (0.97..1.03).contains(&share),
                    "{what}: {share} of the theory's"
                );
                let timeouts = results.flows[0].streams[0].timeouts;
                assert!(timeouts <= 3, "{what}: {timeouts} timeouts");
            }
        }
    }
}

/// Two sources of 4 and 3.9 Mbit/s into 6 Mbit/s with a queue of 50, in ns-3 3.37 (benchmarks/ns3/runs.cc): access links of this many
/// bit/s, segment size, SACK, and of each flow goodput, mean delay and recoveries. Which packet finds the queue full follows from the
/// phase of all packets before it, so these are right only if every packet has ns-3's size, SYNs and SACK options among them.
#[test]
fn two_sources_share_a_queue_as_in_ns3() {
    for (access_bps, mss, sack, flows) in [
        (
            10e6,
            536,
            true,
            [(3_138_390.0, 0.306_689, 17), (2_307_520.0, 0.432_559, 24)],
        ),
        (
            100e6,
            536,
            true,
            [(3_284_610.0, 0.208_420, 16), (2_145_570.0, 0.460_462, 26)],
        ),
        (
            10e6,
            536,
            false,
            [(2_786_910.0, 0.354_806, 21), (2_661_990.0, 0.372_916, 21)],
        ),
        (
            10e6,
            1448,
            false,
            [(3_144_670.0, 0.273_267, 10), (2_637_290.0, 0.364_326, 10)],
        ),
    ] {
        let mut shared = link("S", "R", 6e6, 1000.0);
        shared["queue_packets"] = json!(50);
        let access = |a: &str, b: &str| link(a, b, access_bps, 1000.0);
        let results = run(&json!({
            "format": 1,
            "seed": 1,
            "duration_s": 30.0,
            "packet_overhead_bytes": 22,
            "links": [access("A", "S"), access("B", "S"), shared, access("R", "C"), access("R", "D")],
            "tcp": { "profile": "ns3", "sack": sack, "mss_bytes": mss },
            "flows": [cbr("1", "A", "C", 4e6), cbr("2", "B", "D", 3.9e6)],
        }));
        for (flow, (goodput_bps, delay_s, recoveries)) in results.flows.iter().zip(flows) {
            let what = format!("{access_bps} {mss} {sack} {}", flow.flow);
            assert_close(&what, flow.goodput_bps, goodput_bps, 1e-4);
            assert_close(
                &what,
                flow.delay_s.expect("data arrived").mean,
                delay_s,
                1e-4,
            );
            assert_eq!(flow.streams[0].fast_retransmits, recoveries, "{what}");
        }
    }
}

/// Goodput of a bulk flow of profile `linux` over 20 Mbit/s, in Mbit/s, with drops of the queue and timeouts.
fn linux(rtt_s: f64, queue_packets: u64, loss: f64, control: &str, seed: u64) -> (f64, u64, u64) {
    let long = rtt_s > 0.1 || loss > 0.0;
    let settings = json!({ "queue_packets": queue_packets, "loss": loss });
    let results = bulk(
        (20e6, 1e6 * rtt_s / 2.0, settings),
        [0.0, if long { 60.0 } else { 30.0 }],
        seed,
        json!({
            "profile": "linux", "congestion_control": control,
            "send_buffer_bytes": 4_000_000, "receive_buffer_bytes": 16_000_000,
        }),
    );
    let stream = &results.flows[0].streams[0];
    (
        results.flows[0].goodput_bps / 1e6,
        results.links[2].dropped_queue,
        stream.timeouts,
    )
}

/// Profile `linux` beside Linux 7.3.4 in the virtual engine: slow start ends before it fills the queue, so that a handful of packets is
/// dropped and not hundreds, and no timeout follows, whatever the queue.
#[test]
fn cubic_fills_a_link_as_linux_does() {
    for (rtt_s, queue_packets, goodput_mbps, drops) in [
        (0.04, 16, 18.607, 28),
        (0.04, 66, 19.063, 17),
        (0.04, 200, 19.063, 32),
        (0.2, 100, 18.328, 150),
        (0.2, 1320, 18.786, 267),
    ] {
        let (is, dropped, timeouts) = linux(rtt_s, queue_packets, 0.0, "cubic", 1);
        let what = format!("{rtt_s} s, queue of {queue_packets}");
        assert_close(&what, is, goodput_mbps, 0.05);
        assert!(
            (drops / 2..=2 * drops).contains(&dropped),
            "{what}: {dropped} dropped, in Linux {drops}"
        );
        assert_eq!(timeouts, 0, "{what}");
    }
}

/// Round trips of a few packets' time, in which a probe or a timeout is soon too early: Linux sends nothing again in the virtual engine, and
/// flow 1 has these delays, since it does not delay the ACK of what has been read.
#[test]
fn over_slow_links_nothing_is_sent_again_as_in_linux() {
    for (rates_bps, delay_s) in [([300e3, 20e3], 0.098_12), ([15e3, 6e3], 0.095_36)] {
        let access = |a: &str, b: &str| link(a, b, 4e6, 100.0);
        let slow = |a: &str, b: &str| link(a, b, 0.4e6, 1000.0);
        let results = run(&json!({
            "format": 1,
            "duration_s": 10.0,
            "warm_up_s": 1.0,
            "links": [access("A", "R"), access("B", "U"), access("C", "S"), access("D", "T"), slow("R", "S"), slow("S", "T"), slow("T", "U")],
            "tcp": { "profile": "linux", "mss_bytes": 1374 },
            "flows": [cbr("1", "A", "B", rates_bps[0]), cbr("2", "C", "D", rates_bps[1])],
        }));
        for flow in &results.flows {
            assert_eq!(
                flow.streams[0].retransmits, 0,
                "{} of {}",
                flow.flow, rates_bps[0]
            );
        }
        let mean_s = results.flows[0].delay_s.expect("data arrived").mean;
        assert_close(&format!("{} bit/s", rates_bps[0]), mean_s, delay_s, 0.03);
    }
}

/// Runs of a minute in the virtual engine have these means: four with a standard error of 2 %, and 28 with 1 % at 0.5 % of loss.
#[test]
fn random_loss_costs_what_it_costs_linux() {
    for (control, loss, goodput_mbps) in [
        ("cubic", 0.02, 1.950),
        ("reno", 0.02, 2.200),
        ("cubic", 0.005, 4.625),
    ] {
        let runs = (1..=16).map(|seed| linux(0.04, 66, loss, control, seed).0);
        assert_close(
            &format!("{control} {loss}"),
            runs.sum::<f64>() / 16.0,
            goodput_mbps,
            0.05,
        );
    }
}

/// Faults of all kinds at once lose no byte of an MSTCP flow and no packet from the books.
#[test]
fn packets_and_bytes_are_conserved_through_faults() {
    for (seed, binding) in (0..6).zip(["early", "late"].iter().cycle()) {
        let mut upper = link("A", "B", 4e6, 2000.0);
        upper["loss"] = json!(0.02);
        upper["jitter_us"] = json!(3000.0);
        upper["queue_packets"] = json!(20);
        let mut lower = link("S", "B", 3e6, 9000.0);
        lower["queue_bytes"] = json!(9000);
        lower["down_s"] = json!([[3.0, 4.5], [9.0, 9.2]]);
        let results = run(&json!({
            "format": 1,
            "seed": seed,
            "duration_s": 30.0,
            "links": [upper, link("A", "S", 10e6, 100.0), lower],
            "tcp": { "mss_bytes": 536, "pacing": if seed < 3 { "off" } else { "allocated" } },
            "flows": [{
                "name": "1", "src": "A", "dst": "B", "protocol": "mstcp", "stop_s": 15.0,
                "traffic": { "kind": "poisson", "rate_bps": 4e6, "write_bytes": 700 },
                "paths": [
                    { "path": ["A", "B"], "rate_bps": 2.5e6 },
                    { "path": ["A", "S", "B"], "rate_bps": 2e6 },
                ],
                "mstcp": { "binding": binding, "trust_streams": true },
            }],
        }));
        assert_conserved(&results);
        let flow = &results.flows[0];
        assert_eq!(
            flow.bytes_read, flow.bytes_written,
            "all that was written arrives"
        );
        let sent: u64 = flow.streams.iter().map(|stream| stream.bytes).sum();
        assert_eq!(sent, flow.bytes_written, "and nothing else is sent");
        assert!(flow.bytes_read > 1_000_000 && results.counters.packets_dropped > 50);
        assert!(results.links.iter().any(|link| link.dropped_down > 0));
    }
}

/// A split follows its weights, packet by packet, and the links see it.
#[test]
fn a_split_follows_its_weights() {
    let results = run(&json!({
        "format": 1,
        "seed": 9,
        "duration_s": 100.0,
        "links": [
            link("H", "A", 100e6, 0.0), link("A", "B", 10e6, 10.0), link("A", "C", 10e6, 10.0), link("C", "B", 10e6, 10.0),
        ],
        "flows": [{
            "name": "1", "src": "H", "dst": "B", "protocol": "datagram",
            "traffic": { "kind": "cbr", "rate_bps": 4e6, "write_bytes": 500 },
            "paths": [
                { "path": ["H", "A", "B"], "rate_bps": 3e6 },
                { "path": ["H", "A", "C", "B"], "rate_bps": 1e6 },
            ],
        }],
    }));
    let counts = results.flows[0].split_packets[0]
        .as_ref()
        .expect("the flow is split");
    assert_eq!(counts.iter().sum::<u64>(), 100_000);
    // Four standard deviations of 100,000 draws.
    assert!(counts[0].abs_diff(75_000) < 550, "{counts:?}");
    let packets = |name: &str| {
        results
            .links
            .iter()
            .find(|link| link.link == name)
            .expect("a link")
            .packets
    };
    assert_eq!(
        (packets("H->A"), packets("A->B"), packets("A->C")),
        (100_000, counts[0], counts[1])
    );
}
