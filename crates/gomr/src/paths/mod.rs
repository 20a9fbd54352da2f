//! Shortest, disjoint and least-delay paths for callers, beside the programme.

pub(crate) mod cheapest;
pub(crate) mod disjoint;
pub(crate) mod least_delay;
pub(crate) mod yen;
