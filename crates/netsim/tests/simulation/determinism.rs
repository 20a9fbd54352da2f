//! The same description gives the same bytes, however the run is cut and wherever it happens.

use netsim::{Description, Simulation};
use serde_json::{json, Value};

use super::table1::butterfly;

fn description(seed: u64) -> Value {
    let mut description = butterfly('b', 2, "mstcp", seed);
    description["duration_s"] = json!(3.0);
    description["series_interval_s"] = json!(0.25);
    description["links"][4]["loss"] = json!(0.001);
    description["links"][5]["jitter_us"] = json!(300.0);
    description
}

#[test]
fn a_run_in_slices_is_the_run_at_once() {
    let text = description(7).to_string();
    let whole = netsim::run(&text).expect("a run");
    let mut simulation =
        Simulation::new(&Description::from_json(&text).expect("right")).expect("right");
    while !simulation.run(997).expect("a run") {}
    assert_eq!(simulation.results().to_json(), whole);
}

#[test]
fn threads_do_not_matter_and_seeds_do() {
    let alone: Vec<String> = (0..4)
        .map(|seed| netsim::run(&description(seed).to_string()).expect("a run"))
        .collect();
    let threads: Vec<_> = (0..4)
        .map(|seed| {
            std::thread::spawn(move || netsim::run(&description(seed).to_string()).expect("a run"))
        })
        .collect();
    for (thread, expected) in threads.into_iter().zip(&alone) {
        assert_eq!(&thread.join().expect("no panic"), expected);
    }
    assert_ne!(alone[0], alone[1]);
}

/// The digest of a run's bytes, made on one machine: another machine or compiler must find the same.
#[test]
fn the_bytes_are_those_of_every_machine() {
    let text = netsim::run(&description(1).to_string()).expect("a run");
    // FNV-1a.
    let digest = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    assert_eq!(format!("{digest:016x}"), "cbf1aeafeca4ec5e");
}
