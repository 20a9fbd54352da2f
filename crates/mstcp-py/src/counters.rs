//! `mstcp._core.Counters`.

use pyo3::prelude::*;

#[pyclass(module = "mstcp._core", frozen, get_all)]
pub struct Counters {
    streams: Vec<(u64, u64, u64, u64, u64, u64, u64)>,
    out_of_order_frames: u64,
    reorder_bytes: usize,
    reorder_max_bytes: usize,
    queued_bytes: usize,
    unacknowledged_bytes: usize,
    duplicate_bytes: u64,
}

impl From<mstcp_proto::Counters> for Counters {
    fn from(from: mstcp_proto::Counters) -> Self {
        let streams = from.streams.iter().map(|stream| {
            (
                stream.frames_sent,
                stream.bytes_sent,
                stream.frames_received,
                stream.bytes_received,
                stream.out_of_order_frames,
                stream.resent_bytes,
                stream.stalls,
            )
        });
        Self {
            streams: streams.collect(),
            out_of_order_frames: from.out_of_order_frames,
            reorder_bytes: from.reorder_bytes,
            reorder_max_bytes: from.reorder_max_bytes,
            queued_bytes: from.queued_bytes,
            unacknowledged_bytes: from.unacknowledged_bytes,
            duplicate_bytes: from.duplicate_bytes,
        }
    }
}
