//! Wireless links: capacity by the standard's times, ns-3's figures, conservation, contention.

use netsim::wifi::medium::Statistics;
use netsim::Results;
use serde_json::{json, Value};

use super::run::{assert_close, run, try_run};

/// A server, an access point and a station; `wifi` is the link's.
fn link(wifi: Value, traffic: Value, protocol: &str, seconds: f64) -> Value {
    json!({
        "format": 1, "seed": 1, "duration_s": seconds,
        "tcp": {
            "profile": "ns3", "recovery": "prr", "mss_bytes": 1400, "initial_window_segments": 10,
            "sack": true, "timestamps": true, "window_scaling": true,
            "send_buffer_bytes": 10_000_000, "receive_buffer_bytes": 10_000_000,
        },
        "links": [
            {"ends": ["SRV", "AP"], "rate_bps": 100e6, "delay_us": 10000},
            {"ends": ["AP", "STA"], "wifi": wifi},
        ],
        "flows": [{"name": "f", "src": "SRV", "dst": "STA", "protocol": protocol, "traffic": traffic}],
    })
}

fn wifi(standard: &str, mbps: f64, distance_m: f64, changes: Value) -> Value {
    let mut wifi = json!({
        "standard": standard, "phy_rate_bps": mbps * 1e6, "distance_m": distance_m, "path_loss_exponent": 3.0,
    });
    let changes = changes.as_object().expect("keys");
    wifi.as_object_mut().expect("keys").extend(changes.clone());
    wifi
}

fn mbps(description: &Value) -> f64 {
    run(description).flows[0].goodput_bps / 1e6
}

fn tcp(wifi: Value, seconds: f64) -> Value {
    link(wifi, json!({"kind": "bulk"}), "tcp", seconds)
}

fn datagrams(wifi: Value, rate_bps: f64) -> Value {
    let traffic = json!({"kind": "cbr", "rate_bps": rate_bps, "write_bytes": 1400});
    link(wifi, traffic, "datagram", 3.0)
}

/// What one direction of the wireless link has done.
fn air(results: &Results, direction: &str) -> Statistics {
    let mut links = results.links.iter();
    let link = links.find(|link| link.link == direction);
    link.and_then(|link| link.wifi).expect("a wireless link")
}

/// Without fading and contention a frame takes its airtime, SIFS, ACK, DIFS and half the contention window.
#[test]
fn one_way_traffic_fills_the_medium_as_the_standard_says() {
    let still = json!({"fading_near_shape": 1e6});
    for (standard, rate, slot_us, frame_us, ack_us, window) in [
        // 1400 bytes of data are 1420 with IPv4 and 1456 on the air.
        ("802.11g", 54.0, 9.0, 20.0 + 4.0 * 55.0 + 6.0, 34.0, 15.0),
        ("802.11g", 6.0, 9.0, 20.0 + 4.0 * 487.0 + 6.0, 50.0, 15.0),
        ("802.11b", 11.0, 20.0, 192.0 + 1059.0, 248.0, 31.0),
        ("802.11b", 1.0, 20.0, 192.0 + 11648.0, 304.0, 31.0),
    ] {
        let exchange_us = frame_us + 10.0 + ack_us + 10.0 + 2.0 * slot_us + window / 2.0 * slot_us;
        let rate_mbps = mbps(&datagrams(wifi(standard, rate, 5.0, still.clone()), 60e6));
        let place = format!("{standard} {rate}");
        assert_close(&place, rate_mbps, 11_200.0 / exchange_us, 0.02);
    }
}

#[test]
fn ten_metres_are_within_five_per_cent_of_ns3() {
    let g = |changes| wifi("802.11g", 54.0, 10.0, changes);
    for (expected, description) in [
        (28.7, datagrams(g(json!({})), 40e6)),
        (23.6, tcp(g(json!({})), 8.0)),
        (18.4, tcp(g(json!({"short_slot": false})), 8.0)),
        (
            15.4,
            tcp(
                g(json!({"short_slot": false, "rts_threshold_bytes": 500})),
                8.0,
            ),
        ),
        (4.57, tcp(wifi("802.11g", 6.0, 10.0, json!({})), 12.0)),
        (1.50, tcp(wifi("802.11b", 2.0, 10.0, json!({})), 20.0)),
    ] {
        assert_close("ours beside ns-3", mbps(&description), expected, 0.05);
    }
}

/// Means of ns-3 where losses in queues and rates that adapt matter: what its devices do unless told otherwise.
#[test]
fn queues_retries_and_rates_are_those_of_ns3() {
    let g = |distance_m, changes: Value| {
        let mut link = wifi("802.11g", 54.0, distance_m, changes);
        link["path_loss_exponent"] = json!(2.5);
        link["queue_discipline"] = json!("fq_codel");
        link
    };
    let mean = |seeds: u32, description: &Value| {
        let rates = (1..=seeds).map(|seed| {
            let mut seeded = description.clone();
            seeded["seed"] = json!(seed);
            mbps(&seeded)
        });
        rates.sum::<f64>() / f64::from(seeds)
    };
    let with = |link: Value, change: fn(&mut Value)| {
        let mut description = tcp(link, 6.0);
        change(&mut description);
        description
    };
    let near = g(10.0, json!({}));
    // A few losses decide with RTS: ns-3 has 3.4 to 4.5 in nine seeds.
    let announced = tcp(g(50.0, json!({"rts_threshold_bytes": 501})), 10.0);
    for (seeds, expected, description) in [
        (
            3,
            12.8,
            with(near.clone(), |run| run["tcp"]["sack"] = json!(false)),
        ),
        (
            3,
            15.8,
            with(near.clone(), |run| {
                run["links"][0]["delay_us"] = json!(100_000)
            }),
        ),
        (
            3,
            23.3,
            with(near, |run| {
                run["tcp"]["congestion_control"] = json!("cubic")
            }),
        ),
        (40, 3.81, announced),
    ] {
        assert_close("ours beside ns-3", mean(seeds, &description), expected, 0.1);
    }
}

/// A frame that has waited too long leaves its count of attempts to the next one, so as many are given up as without a lifetime.
/// An RTS is not given up.
#[test]
fn counts_of_attempts_are_the_stations() {
    let given_up = |changes: Value| {
        let mut busy = datagrams(wifi("802.11g", 48.0, 30.0, changes), 30e6);
        busy["duration_s"] = json!(10.0);
        let air = air(&run(&busy), "AP->STA");
        [air.given_up, air.expired]
    };
    let [patient, none] = given_up(json!({"lifetime_s": 20.0}));
    let [hasty, expired] = given_up(json!({"lifetime_s": 0.02}));
    assert!(none == 0 && expired > 100, "{none} {expired}");
    assert!(
        patient > 10 && hasty.abs_diff(patient) < patient / 2,
        "{patient} {hasty}"
    );
    let announced = json!({"rts_threshold_bytes": 501, "long_attempts": 255, "attempts": 1, "lifetime_s": 20.0});
    assert_eq!(given_up(announced), [0, 0]);
}

/// Points of ns-3's curves on their flat and on their steep parts.
#[test]
fn throughput_falls_with_the_distance_as_in_ns3() {
    for (exponent, model, distance_m, expected) in [
        (3.0, "table", 20.0, 19.9),
        (3.0, "yans", 20.0, 18.8),
        (2.5, "table", 40.0, 18.3),
        (2.0, "table", 70.0, 21.7),
        (2.0, "table", 90.0, 13.4),
    ] {
        let changes = json!({"path_loss_exponent": exponent, "error_model": model});
        let rate_mbps = mbps(&tcp(wifi("802.11g", 54.0, distance_m, changes), 10.0));
        let place = format!("{model} {exponent} {distance_m} m");
        assert_close(&place, rate_mbps, expected, 0.1);
    }
    let far = wifi("802.11g", 54.0, 40.0, json!({}));
    assert!(mbps(&tcp(far, 10.0)) < 0.1);
}

#[test]
fn every_packet_is_delivered_dropped_or_on_its_way() {
    for distance_m in [10.0, 30.0, 60.0] {
        let adaptive = json!({"rate_control": "aarf"});
        run(&tcp(wifi("802.11g", 54.0, distance_m, adaptive), 3.0));
    }
}

#[test]
fn a_rate_that_adapts_reaches_farther() {
    let at = |changes| mbps(&tcp(wifi("802.11g", 54.0, 45.0, changes), 5.0));
    let [constant, adaptive] = [json!({}), json!({"rate_control": "aarf"})].map(at);
    assert!(constant < 0.1 && adaptive > 0.8, "{constant} {adaptive}");
}

/// Stations that always have something to send send equally many frames, however long: after a collision the one with the shorter
/// frame waits for the end of the other.
#[test]
fn short_frames_have_the_same_share_of_turns_as_long_ones() {
    // By default too, where the signal is far below what makes the medium busy without a preamble: 30 m are -75 dBm.
    let sensitive = json!({"energy_detection_dbm": -99.0});
    let still = json!({"fading_near_shape": 1e6});
    for (standard, rate, distance_m, changes) in [
        ("802.11b", 2.0, 5.0, &sensitive),
        ("802.11g", 6.0, 5.0, &sensitive),
        ("802.11g", 6.0, 30.0, &still),
    ] {
        let traffic = |bytes| json!({"kind": "cbr", "rate_bps": 6e6, "write_bytes": bytes});
        let long = traffic(1400);
        let strong = wifi(standard, rate, distance_m, changes.clone());
        let mut description = link(strong, long, "datagram", 20.0);
        let back = json!({
            "name": "g", "src": "STA", "dst": "SRV", "protocol": "datagram", "traffic": traffic(100),
        });
        let flows = description["flows"].as_array_mut().expect("flows");
        flows.push(back);
        let results = run(&description);
        let packets = |flow: usize, bytes: f64| results.flows[flow].goodput_bps / bytes;
        let ratio = packets(1, 100.0) / packets(0, 1400.0);
        assert_close(&format!("{standard} {rate}"), ratio, 1.0, 0.1);
    }
}

/// Two stations of one channel share what one would have; on channels of their own each has it all.
#[test]
fn stations_of_one_channel_share_it() {
    let both = |channels: [&str; 2]| {
        let mut description = tcp(
            wifi("802.11g", 54.0, 5.0, json!({"channel": channels[0]})),
            5.0,
        );
        let second = wifi("802.11g", 54.0, 5.0, json!({"channel": channels[1]}));
        let links = description["links"].as_array_mut().expect("links");
        links.push(json!({"ends": ["AP", "OTHER"], "wifi": second}));
        let mut flow = description["flows"][0].clone();
        flow["name"] = json!("g");
        flow["dst"] = json!("OTHER");
        description["flows"]
            .as_array_mut()
            .expect("flows")
            .push(flow);
        let results = run(&description);
        [0, 1].map(|flow| results.flows[flow].goodput_bps / 1e6)
    };
    let [first, second] = both(["6", "6"]);
    assert_close("both on one", first + second, 23.6, 0.1);
    for rate_mbps in both(["1", "6"]) {
        assert_close("each on its own", rate_mbps, 23.6, 0.05);
    }
}

#[test]
fn a_link_that_goes_down_loses_what_waits_and_comes_back() {
    let mut description = tcp(wifi("802.11g", 54.0, 10.0, json!({})), 8.0);
    description["links"][1]["down_s"] = json!([[1.0, 2.0]]);
    description["series_interval_s"] = json!(1.0);
    let results = run(&description);
    let series = &results.flows[0]
        .series
        .as_ref()
        .expect("a series")
        .goodput_bps;
    assert_eq!(series[1], 0.0);
    assert!(*series.last().expect("a rate") > 5e6, "{series:?}");
    assert!(results.links[2].dropped_down > 0);
}

/// A TCP ACK of 88 bytes takes four symbols of 54 Mbit/s and 6 us of extension: 148 bytes that noise can spoil in ns-3.
#[test]
fn the_receiver_of_ns3_loses_more_short_frames() {
    let lost = |receiver: &str, error_model: &str| {
        let changes = json!({"receiver": receiver, "error_model": error_model});
        let traffic = json!({"kind": "cbr", "rate_bps": 1e6, "write_bytes": 24});
        let wireless = wifi("802.11g", 54.0, 30.0, changes);
        let air = air(&run(&link(wireless, traffic, "datagram", 4.0)), "AP->STA");
        air.unanswered as f64 / air.attempts as f64
    };
    for error_model in ["table", "nist", "yans"] {
        let [standard, ns3] = ["standard", "ns3"].map(|receiver| lost(receiver, error_model));
        assert!(
            ns3 > 1.01 * standard,
            "{error_model}: {standard} and {ns3} of the frames"
        );
    }
}

#[test]
fn what_a_wireless_link_cannot_be_is_refused_with_its_place() {
    let refused = |change: fn(&mut Value), place: &str| {
        let mut description = tcp(wifi("802.11g", 54.0, 10.0, json!({})), 1.0);
        change(&mut description["links"][1]);
        let error = try_run(&description).expect_err("refused").to_string();
        assert!(error.starts_with(place), "{error}");
    };
    refused(
        |link| link["wifi"]["distance_m"] = json!(0),
        "links[1].wifi.distance_m: 0 is not",
    );
    refused(
        |link| link["wifi"]["phy_rate_bps"] = json!(11e6),
        "links[1].wifi.phy_rate_bps: 802.11g has no rate of 11 Mbit/s; it has 6, 9, 12",
    );
    refused(|link| link["rate_bps"] = json!(1e6), "links[1].rate_bps");
    refused(
        |link| link["wifi"] = Value::Null,
        "links[1].rate_bps: a link needs",
    );
}
