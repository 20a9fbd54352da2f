//! Speed with many flows: TCP sources of a constant rate over one link, each between hosts of its own. `many_flows [flows ...]`
//!
//! Prints million events in a second of processor time, and the ratio to the first. The caches hold ten flows, and not ten thousand.

use netsim::{Description, Simulation};
use serde_json::json;

/// Events of each run.
const EVENTS: u64 = 6_000_000;
const FLOW_BPS: f64 = 1e6;

fn description(flows: usize) -> Description {
    let mut links = vec![json!({
        "ends": ["L", "R"], "rate_bps": 1.2 * FLOW_BPS * flows as f64, "delay_us": 5000.0, "queue_packets": 1000,
    })];
    for index in 0..flows {
        for (host, switch) in [("S", "L"), ("D", "R")] {
            links.push(json!({
                "ends": [format!("{host}{index}"), switch], "rate_bps": 1e8, "delay_us": 1000.0 + index as f64 % 97.0,
            }));
        }
    }
    let flows: Vec<_> = (0..flows)
        .map(|index| {
            json!({
                "name": index.to_string(), "src": format!("S{index}"), "dst": format!("D{index}"), "protocol": "tcp",
                "start_s": 0.01 * index as f64 / flows as f64,
                "traffic": { "kind": "cbr", "rate_bps": FLOW_BPS },
                "paths": [{ "path": [format!("S{index}"), "L", "R", format!("D{index}")] }],
            })
        })
        .collect();
    let text =
        json!({ "format": 1, "duration_s": 1e6, "links": links, "flows": flows }).to_string();
    Description::from_json(&text).expect("the description is right")
}

/// Seconds that this thread has been on a processor (Linux).
fn processor_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    let nanoseconds = text.split(' ').next().expect("three numbers");
    nanoseconds.parse::<f64>().expect("a number") / 1e9
}

/// Million events a second, the best of three runs' parts: other programs only ever make it slower.
fn speed(flows: usize) -> f64 {
    let mut simulation = Simulation::new(&description(flows)).expect("the description is right");
    simulation.run(EVENTS / 3).expect("it runs");
    let part = || {
        let began = processor_s();
        simulation.run(EVENTS / 3).expect("it runs");
        EVENTS as f64 / 3e6 / (processor_s() - began)
    };
    std::iter::repeat_with(part).take(3).fold(0.0, f64::max)
}

fn main() {
    let mut counts: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number of flows"))
        .collect();
    if counts.is_empty() {
        counts = vec![10, 100, 1000, 2000, 10_000];
    }
    let mut first = None;
    for flows in counts {
        let speed = speed(flows);
        let first = *first.get_or_insert(speed);
        println!(
            "{flows:6} flows: {speed:5.2} M events a second, {:.2} of the first",
            speed / first
        );
    }
}
