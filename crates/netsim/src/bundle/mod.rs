//! What carries a flow over TCP connections: the seam for plain TCP, MSTCP, and other multipath protocols.

pub mod mptcp;
mod mstcp;
mod pipe;
mod plain;

pub use mptcp::{Mptcp, MptcpSettings, SubflowSettings};
pub use mstcp::{Mstcp, MstcpSettings, StreamSettings};
pub use plain::{Plain, SocketLimits};

use serde::Serialize;

use crate::error::Error;
use crate::hosts::{Hosts, Side};
use crate::tcp::{Events, Segment};
use crate::time::Nanos;

/// One end of one of a flow's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamEnd {
    /// Which of the flow's connections.
    pub stream: usize,
    /// Which end of it.
    pub side: Side,
}

/// What becomes of a stream at a fixed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamChange {
    /// It is opened.
    Join,
    /// It is given up.
    Leave,
}

/// The TCP connections of one flow with the protocol over them, both ends.
pub trait Bundle: std::fmt::Debug + Send {
    /// Write `bytes` at the client; false if there is no room for all of them, which then leaves no trace.
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error>;

    /// Whether a write that was refused stays refused, and leaves no trace, until something happens to a connection.
    fn refuses_until_an_event(&self) -> bool {
        false
    }

    /// Write bytes of requests at the server, which go back to the client: how many were taken.
    fn ask(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<u32, Error>;

    /// Take what has happened at an endpoint by a segment or a timer: how many bytes the application at its side has read by that.
    fn on_events(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        events: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error>;

    /// When [`on_timer`](Self::on_timer) is to be called next, for protocols with timers of their own.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// Do what is due: how many bytes the application at the server has read by that.
    fn on_timer(&mut self, _now: Nanos, _hosts: &mut Hosts) -> Result<u64, Error> {
        Ok(0)
    }

    /// Look at a segment with an option of MPTCP before its endpoint does.
    fn on_arrival(
        &mut self,
        _now: Nanos,
        _place: StreamEnd,
        _segment: &Segment,
        _hosts: &mut Hosts,
    ) {
    }

    /// Complete a segment that leaves an endpoint of which [`Host::wrapped`](crate::hosts::Host::wrapped) is set.
    fn on_transmit(&mut self, _place: StreamEnd, _segment: &mut Segment) {}

    /// The endpoints that open the flow; others follow by themselves.
    fn openers(&self) -> Vec<u32> {
        self.streams().iter().map(|ends| ends[0]).collect()
    }

    /// Whether the application at a side may begin to write: all connections are open there, unless one is enough.
    fn is_open(&self, side: Side, hosts: &Hosts) -> bool {
        let is_open = |ends: &[u32; 2]| hosts.get(ends[side as usize]).tcp.is_open();
        self.streams().iter().all(is_open)
    }

    /// Add or remove a stream at a fixed time of the run.
    fn change(&mut self, _now: Nanos, _stream: usize, _change: StreamChange, _hosts: &mut Hosts) {}

    /// Learn what a stream's path is from now on: the rate allocated to it, and its propagation delay.
    fn reroute(&mut self, _stream: usize, _rate_bps: f64, _delay: Nanos) -> Result<(), Error> {
        Ok(())
    }

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
    /// Bytes that wait for earlier ones.
    pub reorder_buffer_bytes: Option<u64>,
    /// The most bytes that ever did.
    pub reorder_buffer_max_bytes: Option<u64>,
    /// Application bytes sent on each stream.
    pub stream_bytes: Vec<u64>,
    /// Bytes read that differ from what was written.
    pub bytes_wrong: u64,
    /// What MPTCP alone has.
    pub mptcp: Option<MptcpReport>,
}

/// What an MPTCP connection has done beyond plain sending, client to server, from the start of the run.
#[derive(Debug, Clone, Default, Serialize, PartialEq)]
pub struct MptcpReport {
    /// The sender's counters.
    #[serde(flatten)]
    pub counters: mptcp::Counters,
    /// Packets that brought the receiver nothing new.
    pub duplicate_packets: u64,
    /// By subflow: the mean over time of its congestion window by its smoothed round trip, bit/s.
    pub window_rates_bps: Vec<f64>,
    /// The same as the mean over the lines that the MPTCP model of ns-3 logs: one for each ACK that advances or change of the window.
    pub logged_rates_bps: Vec<f64>,
    /// Of all subflows together, the mean over all lines: its `gThroughput`.
    pub logged_rate_bps: f64,
}
