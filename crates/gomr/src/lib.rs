//! Globally optimal multipath routing: exact, incremental, certified.
//!
//! [`Engine`] takes a [`Problem`] (a directed network and flows that ask for rates), finds paths and
//! rates that are optimal over *all* paths, and proves it ([`Certificate`]). Events (flows that come, go
//! and change, links that fail and return) are followed by a solve from the last optimal basis.
//!
//! The method is column generation: a master linear programme over the paths known so far, solved by a
//! simplex with generalised upper bounds (`lp/`), and shortest-path pricing over the duals
//! (`pricing/`). Whole matrices of demands are routed with those of a source together (`by_source/`), regular networks
//! over classes of arcs and demands (`symmetry/`).
//! `docs/gomr-algorithm.md` leads through the files. Everything is deterministic.

#![forbid(unsafe_code)]

mod allocation;
mod by_source;
mod certificate;
mod graph;
mod halt;
mod incremental;
mod lp;
mod objectives;
mod paths;
mod pricing;
mod problem;
#[cfg(test)]
mod random;
mod settings;
mod solver;
mod start;
mod symmetry;

pub use allocation::{Allocation, Certificate, Changes, FlowAllocation, FlowId, PathRate, Summary};
pub use by_source::{max_concurrent, route_by_source, ConcurrentFlow, Routing};
pub use certificate::audit::{audit, Audit, Cut, PathRates};
pub use halt::HaltTest;
pub use incremental::engine::Engine;
pub use incremental::optimal_face::{FaceCommodity, FacePath, OptimalFace};
pub use incremental::reallocation::MinimumReallocation;
pub use objectives::{Objective, SEGMENTS};
pub use paths::cheapest::PathSearch;
pub use paths::disjoint::{disjoint_paths, Apart};
pub use paths::least_delay::{DelayArc, LeastDelayTrees};
pub use paths::yen::shortest_paths;
pub use problem::{Arc, Error, Flow, Problem};
pub use solver::Effort;
pub use symmetry::{max_concurrent_by_symmetry, solve_by_symmetry, Symmetric};
