//! TCP after the RFCs, sans-IO: segments, application calls and `now` go in, segments and timers come out.
//!
//! A stream carries a number of bytes, not their values: what the application wrote is delivered in order, so a shell that
//! wants the values keeps them in a queue of its own beside the stream.
//!
//! | module | holds |
//! |---|---|
//! | [`config`] | settings, and the profiles `rfc`, `ns3` and `linux` with their differences by name |
//! | [`endpoint`] | one side of a connection: set-up, close, the order of what is sent (RFC 9293) |
//! | [`events`] | what an endpoint tells its user |
//! | [`sender`] | send buffer, window, Nagle, retransmission and persist timers |
//! | [`scoreboard`] | what is under way: SACKed, lost, sent again (RFC 6675) |
//! | [`recovery`] | loss detectors (RFC 6582, RFC 6675), reductions (RFC 6937), responses to spurious loss |
//! | [`congestion`] | the congestion window: Reno (RFC 5681), CUBIC (RFC 9438), BBR |
//! | [`delivery_rate`] | samples of the delivery rate, for BBR |
//! | [`rtt`] | round-trip time and retransmission timeout (RFC 6298) |
//! | [`ns3`] | what imitates ns-3: its profiles, and the rules that they name |
//! | [`options`] | what options take on the wire |
//! | [`order`] | TCP-DOOR's packet numbers |
//! | [`pacing`] | sending at a given rate |
//! | [`receiver`] | reassembly, delayed ACKs, SACK blocks, window (RFC 5681 4.2, RFC 2018) |
//! | [`statistics`] | counters and the state of the window |

pub mod config;
pub mod congestion;
pub mod delivery_rate;
pub mod endpoint;
pub mod events;
mod held_acks;
pub mod ns3;
pub mod options;
pub mod order;
pub mod pacing;
pub mod receiver;
pub mod recovery;
pub mod rtt;
pub mod scoreboard;
pub mod segment;
pub mod sender;
pub mod statistics;

pub use config::{Config, Profile};
pub use endpoint::{Endpoint, State};
pub use events::Events;
pub use segment::Segment;
pub use statistics::Statistics;
