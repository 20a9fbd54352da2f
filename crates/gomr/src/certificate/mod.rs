//! TODO

pub(crate) mod audit;
pub(crate) mod distances;
pub(crate) mod duality;
