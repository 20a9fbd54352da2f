//! What an endpoint tells its user.

use crate::time::Nanos;

/// What has happened at an endpoint since it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Events {
    /// Bytes of data that the peer has acknowledged.
    pub acknowledged_bytes: u64,
    /// The connection has come to be open.
    pub opened: bool,
    /// Data was taken for lost: a fast recovery began.
    pub lost: bool,
    /// The retransmission timer expired.
    pub timed_out: bool,
    /// The peer's window opened further, or a duplicate opened the congestion window.
    pub window_opened: bool,
    /// The connection has ended, by a close or a failure.
    pub ended: bool,
}

/// The path of a connection, as its sender sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PathState {
    /// Smoothed round-trip time; 0 until measured.
    pub srtt: Nanos,
    /// Mean deviation of the round-trip time.
    pub rtt_variation: Nanos,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// Bytes estimated to be under way.
    pub pipe_bytes: u64,
    /// Bytes that the window has room for beyond all that waits to be sent, first time or again.
    pub room_bytes: u64,
    /// Bytes of a full segment.
    pub segment_bytes: u64,
}
