//! The restricted master programme, and its simplex with generalised upper bounds.
//!
//! [`master`] holds the programme and its basis, [`exchange`] one exchange of basic variables, [`values`] the prices and rates
//! that belong to a basis; [`primal`] and [`dual`] choose what is exchanged.

pub(crate) mod bounds;
pub(crate) mod dense;
pub(crate) mod devex;
pub(crate) mod differences;
pub(crate) mod dual;
pub(crate) mod exchange;
pub(crate) mod factor;
pub(crate) mod inverse;
pub(crate) mod loads;
pub(crate) mod master;
pub(crate) mod primal;
pub(crate) mod product;
pub(crate) mod rise;
pub(crate) mod sizes;
pub(crate) mod sparse;
pub(crate) mod values;
