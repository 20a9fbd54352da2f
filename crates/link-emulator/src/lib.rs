//! The pure core of the link emulator: what happens to a frame on a link, and when.
//!
//! Nothing here does I/O, reads a clock or draws from a hidden source of randomness. Times are nanoseconds since
//! any fixed origin and come in as arguments; the binary `link-emulator` is the shell that supplies them.
//!
//! | module | holds |
//! |---|---|
//! | [`shape`] | what a link direction is: rate, delay, queue limits, loss, jitter |
//! | [`shaper`] | one direction: a queue, a transmitter, a pipe |
//! | [`air`] | Wi-Fi: media that directions share
//! | [`fabric`] | all directions: one total order of releases, counters, memory |
//! | [`arena`] | where the frames wait |
//! | [`request`] | the JSON lines that a client sends |
//! | [`checksum`] | finishing the checksums that a sender left to its network card |
//! | [`random`] | seeded random numbers |
#![forbid(unsafe_code)]

pub mod arena;
pub mod checksum;
pub mod fabric;
pub mod random;
pub mod request;
pub mod shape;
pub mod shaper;
pub mod wireless_media;
