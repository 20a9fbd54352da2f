//! What the butterfly's settings do (docs/butterfly.md), PPFS and MSTCP. `turnoffs [seeds] [seconds]`

#[path = "../tests/common/butterfly.rs"]
#[allow(dead_code)]
mod butterfly;

use butterfly::{butterfly, run};
use serde_json::{json, Value};

type Change = (&'static str, char, u8, &'static str, fn(&mut Value));

const CHANGES: [Change; 12] = [
    ("PPFS as it is, 6.01", 'a', 1, "ppfs", |_| ()),
    ("PPFS, SACK on: 1.2 to 3.2", 'a', 1, "ppfs", |d| {
        d["tcp"]["sack"] = json!(true)
    }),
    ("PPFS, PRR: 3.4", 'a', 1, "ppfs", |d| {
        d["tcp"]["recovery"] = json!("prr")
    }),
    ("PPFS, 100-packet queues: 4.2", 'a', 1, "ppfs", |d| {
        for link in d["links"].as_array_mut().expect("links") {
            link["queue_packets"] = json!(100);
        }
    }),
    ("PPFS, ACKs split: 1.3 to 3.7", 'a', 1, "ppfs", |d| {
        for flow in d["flows"].as_array_mut().expect("flows") {
            flow["ack_path"] = json!("split");
        }
    }),
    ("scenario 2: PPFS, SACK on", 'a', 2, "ppfs", |d| {
        d["tcp"]["sack"] = json!(true)
    }),
    ("scenario 2: PPFS, ACKs split", 'a', 2, "ppfs", |d| {
        for flow in d["flows"].as_array_mut().expect("flows") {
            flow["ack_path"] = json!("split");
        }
    }),
    ("MSTCP weighted, early", 'a', 2, "mstcp", |d| {
        scheduler(d, "weighted", "early")
    }),
    ("MSTCP earliest, early", 'a', 2, "mstcp", |d| {
        scheduler(d, "earliest", "early")
    }),
    ("MSTCP weighted, late", 'a', 2, "mstcp", |d| {
        scheduler(d, "weighted", "late")
    }),
    ("MSTCP earliest, late, paced", 'a', 2, "mstcp", |d| {
        scheduler(d, "earliest", "late");
        d["tcp"]["pacing"] = json!("allocated");
    }),
    ("MSTCP stochastic, late, paced", 'a', 2, "mstcp", |d| {
        scheduler(d, "stochastic", "late");
        d["tcp"]["pacing"] = json!("allocated");
    }),
];

fn scheduler(description: &mut Value, name: &str, binding: &str) {
    for flow in description["flows"].as_array_mut().expect("flows") {
        flow["mstcp"] = json!({ "scheduler": name, "binding": binding, "trust_streams": true });
    }
}

fn main() {
    let number = |index: usize, default: f64| {
        std::env::args()
            .nth(index)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (seeds, seconds) = (number(1, 3.0) as u64, number(2, 60.0));
    for (name, variant, scenario, protocol, change) in CHANGES {
        println!("{name}");
        for seed in 1..=seeds {
            let mut description = butterfly(variant, scenario, protocol, seed);
            description["duration_s"] = json!(seconds);
            change(&mut description);
            let results = run(&description);
            for flow in &results.flows {
                let delay = flow.delay_s.map_or(f64::NAN, |delay| delay.mean * 1e3);
                print!(
                    "   flow {}: {:7.3} Mbit/s {:7.2} ms",
                    flow.flow,
                    flow.goodput_bps / 1e6,
                    delay
                );
                let timeouts: u64 = flow.streams.iter().map(|stream| stream.timeouts).sum();
                let again: u64 = flow.streams.iter().map(|stream| stream.retransmits).sum();
                print!(
                    " ({again} again, {timeouts} timeouts, skipped {})",
                    flow.ticks_skipped
                );
            }
            println!();
        }
    }
}
