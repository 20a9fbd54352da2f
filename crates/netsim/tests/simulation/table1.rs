//! The paper's butterfly (docs/butterfly.md) with the settings of ns-3's runs, and ns-3's figures.

use serde_json::{json, Value};

/// ns-3 3.37 (goodput Mbit/s, mean delay ms, its range over seeds).
pub struct Reference {
    pub variant: char,
    pub scenario: u8,
    pub flow: usize,
    pub protocol: &'static str,
    pub goodput_mbps: f64,
    pub delay_ms: f64,
    pub range_ms: [f64; 2],
}

/// Variants a (S0-S2 and S3-S4 at 1 ms) and b (4 ms), 120 s. Three cells of PPFS's flow 2, which varies most, are of ns-3 3.39
/// with up to 12 seeds; its TCP is 3.37's (docs/simulator.md).
pub const NS3: [Reference; 24] = [
    row('a', 1, 1, "mstcp", 8.50, 12.5, [12.2, 12.7]),
    row('a', 1, 1, "ppfs", 6.01, 169.6, [169.6; 2]),
    row('a', 1, 1, "ospf", 4.54, 225.82, [225.82; 2]),
    row('a', 1, 2, "mstcp", 4.50, 8.2, [8.2; 2]),
    row('a', 1, 2, "ppfs", 4.50, 23.95, [19.9, 27.9]),
    row('a', 1, 2, "ospf", 4.50, 6.38, [6.38; 2]),
    row('a', 2, 1, "mstcp", 8.92, 158.0, [135.0, 178.0]),
    row('a', 2, 1, "ppfs", 6.01, 169.8, [169.8; 2]),
    row('a', 2, 1, "ospf", 4.54, 225.73, [225.73; 2]),
    row('a', 2, 2, "mstcp", 31.28, 65.0, [41.0, 100.0]),
    row('a', 2, 2, "ppfs", 18.88, 49.7, [49.1, 50.3]),
    row('a', 2, 2, "ospf", 9.08, 109.65, [109.65; 2]),
    row('b', 1, 1, "mstcp", 8.50, 17.46, [17.46; 2]),
    row('b', 1, 1, "ppfs", 6.01, 169.7, [169.7; 2]),
    row('b', 1, 1, "ospf", 4.54, 225.82, [225.82; 2]),
    row('b', 1, 2, "mstcp", 4.50, 8.24, [8.24; 2]),
    row('b', 1, 2, "ppfs", 4.50, 22.2, [19.5, 23.8]),
    row('b', 1, 2, "ospf", 4.50, 6.38, [6.38; 2]),
    row('b', 2, 1, "mstcp", 8.92, 164.0, [156.0, 173.0]),
    row('b', 2, 1, "ppfs", 6.01, 169.6, [169.6; 2]),
    row('b', 2, 1, "ospf", 4.54, 225.73, [225.73; 2]),
    row('b', 2, 2, "mstcp", 31.29, 71.0, [48.0, 98.0]),
    row('b', 2, 2, "ppfs", 18.94, 49.6, [48.7, 50.4]),
    row('b', 2, 2, "ospf", 9.08, 109.65, [109.65; 2]),
];

const fn row(
    variant: char,
    scenario: u8,
    flow: usize,
    protocol: &'static str,
    goodput_mbps: f64,
    delay_ms: f64,
    range_ms: [f64; 2],
) -> Reference {
    Reference {
        variant,
        scenario,
        flow,
        protocol,
        goodput_mbps,
        delay_ms,
        range_ms,
    }
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
