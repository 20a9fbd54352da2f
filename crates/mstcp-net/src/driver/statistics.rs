//! What a connection has carried, and what TCP knows of its paths.

use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::time::Duration;

use super::{Driver, StreamId};
use crate::sys;

/// What a connection has carried so far.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Its streams, those that are lost included until another has their place.
    pub streams: Vec<StreamStatistics>,
    /// Application bytes that no socket has taken.
    pub queued_bytes: usize,
    /// Application bytes sent that the peer has not acknowledged.
    pub unacknowledged_bytes: usize,
    /// Bytes that came ahead of others and wait for them.
    pub reorder_bytes: usize,
    /// The most that ever waited so.
    pub reorder_max_bytes: usize,
    /// Bytes that came more than once.
    pub duplicate_bytes: u64,
}

/// What one stream has carried so far.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct StreamStatistics {
    /// Which.
    pub stream: StreamId,
    /// Its own address.
    pub local: SocketAddr,
    /// The peer's address.
    pub peer: SocketAddr,
    /// Whether it carries bytes now.
    pub is_open: bool,
    /// Whether nothing comes through it now.
    pub is_stalled: bool,
    /// The goodput that it is paced at, in bit/s, if it is.
    pub rate_bps: Option<f64>,
    /// See [`crate::StreamSpec::priority`].
    pub priority: u8,
    /// Application bytes sent on it, those that were sent again included.
    pub sent_bytes: u64,
    /// Application bytes that came on it.
    pub received_bytes: u64,
    /// Application bytes that others had lost, sent again on it.
    pub resent_bytes: u64,
    /// How often it has stalled.
    pub stalls: u64,
    /// What TCP knows of its path, where the system says.
    pub path: Option<PathStatistics>,
}

/// What TCP knows of a path.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PathStatistics {
    /// What it recently delivered, or could by its window, in bit/s.
    pub delivery_rate_bps: f64,
    /// The smoothed round-trip time, queues included.
    pub round_trip: Duration,
}

impl Driver {
    /// What the connection has carried, and how its paths are; one system call a stream.
    pub fn statistics(&self) -> Statistics {
        let counters = self.endpoint.core.counters();
        let stalled = self.endpoint.core.stalled();
        let streams = self.slots.iter().zip(&counters.streams).enumerate();
        let streams = streams.map(|(at, (slot, counted))| {
            let descriptor = slot.open.as_ref().map(|open| open.descriptor.as_raw_fd());
            StreamStatistics {
                stream: slot.stream,
                local: slot.local,
                peer: slot.peer,
                is_open: slot.open.is_some(),
                is_stalled: slot.open.is_some() && stalled.contains(at),
                rate_bps: slot.spec.rate_bps,
                priority: slot.spec.priority,
                sent_bytes: counted.bytes_sent,
                received_bytes: counted.bytes_received,
                resent_bytes: counted.resent_bytes,
                stalls: counted.stalls,
                path: descriptor
                    .and_then(sys::path)
                    .map(|(path, _)| PathStatistics {
                        delivery_rate_bps: path.rate_bps,
                        round_trip: Duration::from_nanos(2 * path.delay_ns),
                    }),
            }
        });
        Statistics {
            streams: streams.collect(),
            queued_bytes: counters.queued_bytes,
            unacknowledged_bytes: counters.unacknowledged_bytes,
            reorder_bytes: counters.reorder_bytes,
            reorder_max_bytes: counters.reorder_max_bytes,
            duplicate_bytes: counters.duplicate_bytes,
        }
    }
}
