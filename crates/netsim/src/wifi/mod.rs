//! IEEE 802.11b and 802.11g: a medium that stations share (docs/simulator-wifi.md).
//!
//! | module | holds |
//! |---|---|
//! | [`standard`] | rates, frames, slots and times |
//! | [`propagation`] | path loss and fading |
//! | [`errors`] | whether a frame survives the noise |
//! | [`rate_control`] | the rate of the next frame |
//! | [`station`] | a queue and its contention for the medium |
//! | [`queueing`], [`fq_codel`] | what waits at a station, and a discipline in front of it |
//! | [`medium`] | distributed coordination: who sends when, and what arrives |
//! | [`media`] | media by channel, and the stations of links
//! | [`math`] | functions of a libm |

pub mod errors;
pub mod fq_codel;
pub mod math;
pub mod media;
pub mod medium;
pub mod propagation;
pub mod queueing;
pub mod rate_control;
pub mod standard;
pub mod station;
