//! What a connection tells about itself.

use super::recovery::Phase;
use crate::time::Nanos;

/// Counters since the start and the present state of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Segments with data sent, first time or again.
    pub data_segments_sent: u64,
    /// Segments with data sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Reductions of the window that were taken back as spurious.
    pub undone_reductions: u64,
    /// Duplicate ACKs received.
    pub duplicate_acks: u64,
    /// Segments with data received.
    pub data_segments_received: u64,
    /// Those of them ahead of the next expected byte.
    pub out_of_order_segments: u64,
    /// Those of them with nothing new.
    pub duplicate_segments: u64,
    /// The most bytes held for reassembly at one time.
    pub reassembly_max_bytes: u64,
    /// Segments sent without data, SYN or FIN.
    pub pure_acks_sent: u64,
    /// Bytes acknowledged by the peer.
    pub bytes_acknowledged: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Congestion window in bytes.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes.
    pub ssthresh_bytes: u64,
    /// Bytes estimated to be under way.
    pub pipe_bytes: u64,
    /// Smoothed round-trip time.
    pub srtt: Option<Nanos>,
    /// Retransmission timeout.
    pub rto: Nanos,
    /// What the loss recovery is doing.
    pub phase: Phase,
}
