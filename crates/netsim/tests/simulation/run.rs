//! Runs of whole simulations, whose packets and bytes are all accounted for.

use netsim::{Description, Error, Results, Simulation};
use serde_json::Value;

/// Run a description to its end.
pub fn try_run(description: &Value) -> Result<Results, Error> {
    let mut simulation = Simulation::new(&Description::from_json(&description.to_string())?)?;
    simulation.run(u64::MAX)?;
    Ok(simulation.results())
}

/// The same of a description that is right.
pub fn run(description: &Value) -> Results {
    let results = try_run(description).expect("the description is right");
    let counters = results.counters;
    let ends = counters.packets_delivered + counters.packets_dropped + counters.packets_in_flight;
    assert_eq!(counters.packets_sent, ends);
    assert!(results.flows.iter().all(|flow| flow.bytes_wrong == 0));
    results
}

/// Fail where a value is farther from what it should be than a share of that.
pub fn assert_close(what: &str, is: f64, should: f64, relative: f64) {
    assert!(
        (is / should - 1.0).abs() <= relative,
        "{what} is {is}, should be {should} within {relative}"
    );
}
