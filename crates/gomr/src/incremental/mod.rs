//! TODO

pub(crate) mod answer;
pub(crate) mod best_so_far;
pub(crate) mod engine;
pub(crate) mod eviction;
pub(crate) mod membership;
pub(crate) mod nearest_rates;
pub(crate) mod optimal_face;
pub(crate) mod reallocation;
pub(crate) mod reported;
