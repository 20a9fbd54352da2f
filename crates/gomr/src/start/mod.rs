//! The first basis: from what fits at once ([`crash`]), from balanced rates ([`balanced`]) or from a flow of least cost
//! ([`least_cost`]); rates that are no basis yet are pushed into one ([`crossover`]).

pub(crate) mod balance;
pub(crate) mod balanced;
pub(crate) mod crash;
pub(crate) mod crossover;
pub(crate) mod least_cost;
