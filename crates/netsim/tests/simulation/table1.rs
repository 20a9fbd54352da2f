//! The paper's butterfly (docs/butterfly.md) with the settings of ns-3's runs, and ns-3's figures.

use serde::Deserialize;
use serde_json::{json, Value};

/// A row of ns-3's.
#[derive(Deserialize)]
pub struct Reference {
    pub variant: char,
    pub case: String,
    pub flow: String,
    pub protocol: String,
    pub goodput_bps: f64,
    pub delay_mean_s: f64,
    pub delay_range_s: Option<[f64; 2]>,
}

pub fn ns3() -> Vec<Reference> {
    let mut document: Value =
        serde_json::from_str(include_str!("ns3-butterfly.json")).expect("JSON");
    serde_json::from_value(document["rows"].take()).expect("rows")
}

const PATHS: [[&str; 2]; 2] = [
    ["T0 S0 S4 T2", "T0 S0 S2 S3 S4 T2"],
    ["T1 S1 S5 T3", "T1 S1 S2 S3 S5 T3"],
];

/// A run of Table I, to be changed before it is read: 120 s of `protocol` in `scenario`.
pub fn butterfly(variant: char, scenario: u8, protocol: &str, seed: u64) -> Value {
    let long = if variant == 'b' { 4000.0 } else { 1000.0 };
    let link = |a: &str, b: &str, mbps: f64, delay_us: f64| json!({ "ends": [a, b], "rate_bps": mbps * 1e6, "delay_us": delay_us });
    json!({
        "format": 1,
        "seed": seed,
        "duration_s": 120.0,
        "packet_overhead_bytes": 22,
        "links": [
            link("T0", "S0", 80.0, 1000.0),
            link("T1", "S1", 80.0, 1000.0),
            link("S4", "T2", 80.0, 1000.0),
            link("S5", "T3", 80.0, 1000.0),
            link("S0", "S4", 5.0, 1000.0),
            link("S2", "S3", 10.0, 1000.0),
            link("S1", "S5", 30.0, 4000.0),
            link("S1", "S2", 10.0, 1000.0),
            link("S3", "S5", 15.0, 1000.0),
            link("S0", "S2", 10.0, long),
            link("S3", "S4", 5.0, long),
        ],
        "tcp": { "profile": "ns3", "sack": false, "pacing": "off" },
        "flows": [flow(0, scenario, protocol), flow(1, scenario, protocol)],
    })
}

fn flow(index: usize, scenario: u8, protocol: &str) -> Value {
    let (requested, rates) = match (scenario, index, protocol) {
        (1, 0, _) => (8.5, [4.25, 4.25]),
        (1, _, _) => (4.5, [0.0, 4.5]),
        (_, 0, "mstcp") => (8.95, [4.475, 4.475]),
        (_, 0, _) => (9.08, [4.54, 4.54]),
        (_, _, "mstcp") => (31.32, [26.85, 4.47]),
        _ => (31.80, [27.26, 4.54]),
    };
    let path = |(nodes, rate): (&&str, f64)| {
        let nodes: Vec<&str> = nodes.split(' ').collect();
        json!({ "path": nodes, "rate_bps": rate * 1e6 })
    };
    let paths: Vec<Value> = match protocol {
        "ospf" => vec![json!({ "path": "shortest" })],
        _ => PATHS[index]
            .iter()
            .zip(rates)
            .filter(|(_, rate)| *rate > 0.0)
            .map(path)
            .collect(),
    };
    json!({
        "name": (index + 1).to_string(),
        "src": (["T0", "T1"][index]),
        "dst": (["T2", "T3"][index]),
        "protocol": if protocol == "mstcp" { "mstcp" } else { "tcp" },
        "traffic": { "kind": "cbr", "rate_bps": requested * 1e6 },
        "paths": paths,
        "mstcp": { "binding": "early", "scheduler": "stochastic" },
    })
}
