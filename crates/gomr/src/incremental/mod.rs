//! Events, and what they change: the live [`engine`], its flows as commodities ([`membership`]), its answers
//! ([`answer`]) and the optimum that moves flows least ([`reallocation`]).

pub(crate) mod best_so_far;
pub(crate) mod engine;
pub(crate) mod eviction;
pub(crate) mod membership;
pub(crate) mod nearest_rates;
pub(crate) mod optimal_face;
pub(crate) mod rates_by_flow;
pub(crate) mod reallocation;
pub(crate) mod reported;
