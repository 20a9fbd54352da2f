//! TODO

pub(crate) mod balance;
pub(crate) mod balanced;
pub(crate) mod crash;
pub(crate) mod crossover;
pub(crate) mod least_cost;
