//! Globally optimal multipath routing: exact, incremental, certified.
//!
//! [`Engine`] takes a [`Problem`] (a directed network and flows that ask for rates), finds paths and
//! rates that are optimal over *all* paths, and proves it ([`Certificate`]). Events (flows that come, go
//! and change, links that fail and return) are followed by a solve from the last optimal basis.
//!
//! The method is column generation: a master linear programme over the paths known so far, solved by a
//! simplex with generalised upper bounds (`master.rs`), and shortest-path pricing over the duals
//! (`pricing.rs`). Whole matrices of demands are routed with those of a source together (`by_source.rs`).
//! Everything is deterministic.

#![forbid(unsafe_code)]

mod allocation;
mod audit;
mod basis;
mod by_source;
mod certify;
mod churn;
mod colgen;
mod constrained;
mod disjoint;
mod dual;
mod engine;
mod events;
mod face;
mod forest;
mod graph;
mod halt;
mod master;
mod nearest;
mod objectives;
mod pricing;
mod primal;
mod problem;
#[cfg(test)]
mod random;
mod rescue;
mod tight;
mod tolls;
mod tree;
mod yen;

pub use allocation::{Allocation, Certificate, Changes, FlowAllocation, FlowId, PathRate, Summary};
pub use audit::{audit, Answer, Audit, Cut};
pub use by_source::{max_concurrent, route_by_source, Concurrent, Routing};
pub use churn::LeastChanges;
pub use colgen::Effort;
pub use disjoint::{disjoint_paths, Apart};
pub use engine::Engine;
pub use face::{Face, FaceCommodity, FacePath};
pub use halt::HaltTest;
pub use nearest::{DelayArc, Nearest};
pub use objectives::{Objective, SEGMENTS};
pub use problem::{Arc, Error, Flow, Problem};
pub use yen::shortest_paths;
