//! What carries a flow over TCP connections: the seam for plain TCP, MSTCP, and other multipath protocols.

mod mstcp;
mod plain;

pub use mstcp::{Mstcp, MstcpSettings, StreamSettings};
pub use plain::Plain;

use crate::error::Error;
use crate::hosts::{Hosts, Side};
use crate::time::Nanos;

/// The TCP connections of one flow with the protocol over them, both ends.
pub trait Bundle: std::fmt::Debug + Send {
    /// Write `bytes` at the client; false if there is no room for all of them, which then leaves no trace.
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error>;

    /// Write bytes of requests at the server, which go back to the client: how many were taken.
    fn ask(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<u32, Error>;

    /// Note that a segment or a timer has changed an endpoint: how many bytes the application at its side has read by that.
    fn on_change(
        &mut self,
        now: Nanos,
        stream: usize,
        side: Side,
        hosts: &mut Hosts,
    ) -> Result<u64, Error>;

    /// The connections: endpoints at client and server.
    fn streams(&self) -> Vec<[u32; 2]>;

    /// What the protocol over TCP has seen.
    fn report(&self) -> BundleReport;
}

/// What a protocol over TCP has seen; `None` where it has no such thing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BundleReport {
    /// Frames that the receiver was given.
    pub frames: Option<u64>,
    /// Those of them that came before an earlier one.
    pub out_of_order_frames: Option<u64>,
    /// The most bytes that ever waited for earlier ones.
    pub reorder_buffer_max_bytes: Option<u64>,
    /// Application bytes sent on each stream.
    pub stream_bytes: Vec<u64>,
    /// Bytes read that differ from what was written.
    pub bytes_wrong: u64,
}
