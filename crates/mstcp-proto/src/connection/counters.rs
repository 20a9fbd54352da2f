//! What a connection and its streams have carried.

use super::Connection;

/// What one stream has carried, both directions. Bytes are application bytes, without headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounters {
    /// Data frames sent.
    pub frames_sent: u64,
    /// Application bytes sent.
    pub bytes_sent: u64,
    /// Data frames received.
    pub frames_received: u64,
    /// Application bytes received.
    pub bytes_received: u64,
    /// Frames received before an earlier one.
    pub out_of_order_frames: u64,
    /// Bytes sent that another stream had carried before.
    pub resent_bytes: u64,
    /// How often it was found to bring nothing through.
    pub stalls: u64,
}

/// What a connection has carried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// Each stream's part.
    pub streams: Vec<StreamCounters>,
    /// Frames received before an earlier one, over all streams.
    pub out_of_order_frames: u64,
    /// Application bytes in the reorder buffer now.
    pub reorder_bytes: usize,
    /// The most application bytes that were ever in the reorder buffer.
    pub reorder_max_bytes: usize,
    /// Application bytes in the send queue now.
    pub queued_bytes: usize,
    /// Application bytes sent that the peer has not acknowledged.
    pub unacknowledged_bytes: usize,
    /// Application bytes that arrived more than once.
    pub duplicate_bytes: u64,
}

impl Connection {
    /// What has been carried so far.
    pub fn counters(&self) -> Counters {
        let reassembly = self.receiver.reassembly();
        let streams: Vec<_> = self
            .sender
            .sent()
            .zip(self.receiver.received())
            .map(|(sent, received)| StreamCounters {
                frames_sent: sent.frames,
                bytes_sent: sent.bytes,
                frames_received: received.frames,
                bytes_received: received.bytes,
                out_of_order_frames: received.out_of_order_frames,
                resent_bytes: sent.resent_bytes,
                stalls: sent.stalls,
            })
            .collect();
        Counters {
            out_of_order_frames: streams
                .iter()
                .map(|stream| stream.out_of_order_frames)
                .sum(),
            streams,
            reorder_bytes: reassembly.waiting_bytes(),
            reorder_max_bytes: reassembly.max_waiting_bytes(),
            queued_bytes: self.sender.queued_bytes(),
            unacknowledged_bytes: self.sender.unacknowledged_bytes(),
            duplicate_bytes: reassembly.duplicate_bytes(),
        }
    }
}
