//! Proofs by weak duality: while solving ([`duality`]), and of any answer, from it alone ([`audit`]).

pub(crate) mod audit;
pub(crate) mod distances;
pub(crate) mod duality;
