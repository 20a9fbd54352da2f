//! TODO

pub(crate) mod bounds;
pub(crate) mod devex;
pub(crate) mod differences;
pub(crate) mod dual;
pub(crate) mod exchange;
pub(crate) mod inverse;
pub(crate) mod loads;
pub(crate) mod master;
pub(crate) mod primal;
pub(crate) mod rise;
pub(crate) mod sizes;
pub(crate) mod sparse;
pub(crate) mod values;
