//! Matrices of demands, those of one source routed together.
//!
//! Where each node sends to nearly every other, a commodity for each pair is far more than the simplex needs to
//! see. Here a column is a shortest-path tree of a source with all that it serves of the source's demands on it, and
//! the linear programme has one row for each source and each arc that may fill up (Dantzig-Wolfe decomposition
//! by source; L. R. Ford and D. R. Fulkerson, Management Science 5, 1958). It has the same optimum, since any
//! routing of a source's demands is a mixture of trees. Prices that are mixed with the best ones so far
//! keep it from jumping about (P. Wentges, Int. Trans. Operational Research 4, 1997).

mod by_demand;
mod concurrent;
mod source_master;
mod sources;
mod sweeps;
mod throughput;

pub use concurrent::{max_concurrent, ConcurrentFlow};
pub use throughput::{route_by_source, Routing};
