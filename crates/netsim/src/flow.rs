//! One flow: its application at both ends.

use std::collections::VecDeque;

use crate::bundle::Bundle;
use crate::metrics::Meter;
use crate::time::Nanos;
use crate::traffic::Source;

/// What carries a flow.
#[derive(Debug)]
pub enum Carrier {
    /// TCP connections with a protocol over them.
    Connections(Box<dyn Bundle>),
    /// Packets without acknowledgement, on this route.
    Datagrams {
        /// Cursor at the route's beginning.
        route: u32,
    },
}

/// Where a flow is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Its start has not come.
    Waiting,
    /// Its connections are being opened.
    Opening,
    /// Its application writes.
    Writing,
}

/// One flow.
#[derive(Debug)]
pub struct Flow {
    /// Its name in the results.
    pub name: String,
    /// What carries it.
    pub carrier: Carrier,
    /// When its application writes.
    pub source: Source,
    /// Bytes of a write.
    pub write_bytes: u32,
    /// When the connections are opened.
    pub start: Nanos,
    /// When the application stops writing.
    pub stop: Nanos,
    /// Where it is in its life.
    pub phase: Phase,
    /// What the receiving application has read.
    pub meter: Meter,
    /// Writes that were tried and writes that found no room, since the measurement began.
    pub ticks: [u64; 2],
    /// Bytes written and bytes read, since the start.
    pub totals: [u64; 2],
    /// The end of each write that has not been read, in bytes of the flow, and when it was made.
    stamps: VecDeque<(u64, Nanos)>,
}

impl Flow {
    /// A flow that waits for its start.
    pub fn new(
        name: String,
        carrier: Carrier,
        source: Source,
        write_bytes: u32,
        span: [Nanos; 2],
    ) -> Self {
        Self {
            name,
            carrier,
            source,
            write_bytes,
            start: span[0],
            stop: span[1],
            phase: Phase::Waiting,
            meter: Meter::default(),
            ticks: [0; 2],
            totals: [0; 2],
            stamps: VecDeque::new(),
        }
    }

    /// Note a write that was taken.
    pub fn on_written(&mut self, now: Nanos, bytes: u32) {
        self.totals[0] += u64::from(bytes);
        self.stamps.push_back((self.totals[0], now));
    }

    /// Note that the next bytes in order were read.
    pub fn on_read(&mut self, now: Nanos, mut bytes: u64) {
        while bytes > 0 {
            let Some(&(end, written)) = self.stamps.front() else {
                debug_assert!(false, "more was read than written");
                return;
            };
            let part = bytes.min(end - self.totals[1]);
            self.meter.record(part, now - written);
            self.totals[1] += part;
            bytes -= part;
            if self.totals[1] == end {
                self.stamps.pop_front();
            }
        }
    }

    /// Note that a datagram has arrived.
    pub fn on_datagram(&mut self, now: Nanos, bytes: u32, written: Nanos) {
        self.totals[1] += u64::from(bytes);
        self.meter.record(u64::from(bytes), now - written);
    }
}
