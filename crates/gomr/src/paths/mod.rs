//! TODO

pub(crate) mod disjoint;
pub(crate) mod least_delay;
pub(crate) mod yen;
