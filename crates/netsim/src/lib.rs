//! A packet-level discrete-event simulator: pure, seeded, the same bytes of output on every machine.
//!
//! | module | holds |
//! |---|---|
//! | [`time`] | simulated time |
//! | [`tcp`] | TCP after the RFCs, sans-IO |
#![forbid(unsafe_code)]

pub mod tcp;
pub mod time;
