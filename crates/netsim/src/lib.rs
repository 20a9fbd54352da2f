//! A packet-level discrete-event simulator: pure, seeded, the same bytes of output on every machine.
//!
//! [`run`] takes a description as JSON and returns results as JSON; [`Simulation`] does the same in steps.
//!
//! | module | holds |
//! |---|---|
//! | [`description`], [`tcp_description`], [`wifi_description`] | what a run is: the JSON that comes in |
//! | [`build`] | from names to numbers, from paths to routes |
//! | [`simulation`] | the engine: one loop over the events |
//! | [`queue`] | events in the total order of time and sequence |
//! | [`link`] | one direction of a link: queue, transmitter, wire |
//! | [`network`] | the graph and its shortest paths |
//! | [`switch`] | pinned, shortest, hashed and split routes |
//! | [`hosts`] | TCP endpoints and their places |
//! | [`tcp`] | TCP after the RFCs, sans-IO |
//! | [`bundle`] | protocols over TCP connections: plain, MSTCP |
//! | [`wireless`] | the engine's part that lets shared media act |
//! | [`applications`] | the engine's part that lets applications write, ask and read |
//! | [`flow`], [`traffic`], [`requests`] | applications: what they write, when, and what is read |
//! | [`methods`] | congestion controls, schedulers and responses of the caller's |
//! | [`metrics`], [`results`] | histograms and series; the JSON that goes out |
//! | [`packet`] | packets in an arena |
//! | [`random`] | one seeded generator per purpose |
//! | [`trace`] | packets as CSV and pcap |
//! | [`wifi`] | 802.11b and 802.11g: media that stations share |
//! | [`time`] | simulated time |
//! | [`error`] | what can go wrong |
#![deny(unsafe_code)]

mod ahead;
pub mod applications;
pub mod build;
pub mod bundle;
pub mod description;
pub mod error;
pub mod flow;
pub mod hosts;
pub mod link;
pub mod methods;
pub mod metrics;
pub mod network;
pub mod packet;
mod prefetch;
mod queue;
pub mod random;
pub mod requests;
pub mod results;
pub mod simulation;
pub mod switch;
pub mod tcp;
pub mod tcp_description;
pub mod time;
pub mod trace;
pub mod traffic;
pub mod wifi;
pub mod wifi_description;
pub mod wireless;

pub use description::Description;
pub use error::Error;
pub use results::Results;
pub use simulation::Simulation;

/// Make a whole run: a description in JSON to results in JSON.
///
/// # Errors
/// [`Error::Description`] names what the description has wrong.
pub fn run(description: &str) -> Result<String, Error> {
    let mut simulation = Simulation::new(&Description::from_json(description)?)?;
    simulation.run(u64::MAX)?;
    Ok(simulation.results().to_json())
}
