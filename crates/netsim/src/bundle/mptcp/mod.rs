//! Multipath TCP (RFC 8684): subflows are TCP connections of their own, and over them lies the connection with a sequence space, data
//! ACKs and a receive window of its own.
//!
//! TCP here counts bytes and carries none, so the connection's data is numbers too: a mapping says which part of it a subflow's bytes
//! are. Each side's half of a direction is a [`DataSender`] or a [`DataReceiver`]; segments carry what passes between them.

mod ns3_dsack;
mod receiver;
pub mod scheduler;
mod sender;
mod window_rate;

use ns3_dsack::Ns3DSackSender;
pub use receiver::DataReceiver;
pub use sender::{Counters, DataSender};

use serde::Deserialize;

use super::{Bundle, BundleReport, MptcpReport, StreamChange, StreamEnd};
use crate::error::Error;
use crate::hosts::{Hosts, Side};
use crate::tcp::segment::MptcpKind;
use crate::tcp::{Events, Segment};
use crate::time::{Nanos, SECOND};

/// What raises duplicate ACKs on a subflow.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum DuplicateAcks {
    /// Disorder within the subflow, as with plain TCP (RFC 8684, 3.3.2; Linux).
    Subflow,
    /// Disorder of the connection too: a subflow acknowledges only what is in order for the connection (the MPTCP model of ns-3 by
    /// Chihani and Collange, 2011).
    Connection,
}

/// How long data waits for subflows to join: the example of ns-3's MPTCP writes a second after it has connected.
const JOINING_MAX: Nanos = SECOND;

/// Settings of an MPTCP connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MptcpSettings {
    /// Bytes written and not acknowledged at the connection's level, at most.
    pub send_buffer_bytes: u64,
    /// The receive window, which the subflows share.
    pub receive_buffer_bytes: u64,
    /// What raises duplicate ACKs.
    pub duplicate_acks: DuplicateAcks,
    /// Send again on a fast subflow what blocks the window or the buffer.
    pub opportunistic: bool,
    /// Halve the window of the subflow that blocks the receive window.
    pub penalisation: bool,
    /// Send what a subflow had before a timeout over the others too, and give it nothing new for the present.
    pub reinjection: bool,
    /// As ns-3's MPTCP: data waits until all subflows are open, [`JOINING_MAX`] at most; new data leaves when something is acknowledged, not
    /// at once when a window opens otherwise; options are as long as there.
    pub as_in_ns3: bool,
    /// Take blocks that report what waits for the connection for duplicates of what it waits for, as the D-SACK of ns-3's MPTCP.
    pub reports_held: bool,
}

/// A subflow: its endpoints, client and server, and whether it is opened with the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubflowSettings {
    /// Client and server.
    pub ends: [u32; 2],
    /// Whether it joins at a time of its own ([`StreamChange::Join`]).
    pub joins_later: bool,
}

/// A flow over MPTCP. Of pairs, the first is the client's, or what the client sends.
#[derive(Debug)]
pub struct Mptcp {
    settings: MptcpSettings,
    subflows: Vec<SubflowSettings>,
    ends: Vec<[u32; 2]>,
    senders: [DataSender; 2],
    receivers: [DataReceiver; 2],
    /// When the subflows that open with the connection were opened.
    joined_at: Option<Nanos>,
    /// Whether what happens now lets new data out, if that is asked.
    progress: bool,
    /// D-SACK state of the client's data, if the receiver reports what waits.
    reports: Option<Ns3DSackSender>,
}

impl Mptcp {
    /// A connection over these subflows; the first one opens it.
    pub fn new(
        settings: MptcpSettings,
        subflows: Vec<SubflowSettings>,
        schedulers: [Box<dyn scheduler::Scheduler>; 2],
        hosts: &mut Hosts,
    ) -> Self {
        let count = subflows.len();
        let ends: Vec<[u32; 2]> = subflows.iter().map(|subflow| subflow.ends).collect();
        for &endpoint in ends.iter().flatten() {
            let host = hosts.get_mut(endpoint);
            host.wrapped = true;
            host.tcp.grant(settings.receive_buffer_bytes);
            if settings.duplicate_acks == DuplicateAcks::Connection {
                host.tcp.hold_for_connection();
            }
        }
        let [client, server] = schedulers;
        Self {
            settings,
            subflows,
            ends,
            senders: [
                DataSender::new(settings, 0, count, client),
                DataSender::new(settings, 1, count, server),
            ],
            receivers: [DataReceiver::new(count), DataReceiver::new(count)],
            joined_at: None,
            progress: false,
            reports: settings.reports_held.then(Ns3DSackSender::default),
        }
    }

    /// The first subflow is open: the client opens the others.
    fn join_others(&mut self, now: Nanos, events: &Events, hosts: &mut Hosts) {
        if self.joined_at.is_some() || !events.opened {
            return;
        }
        self.joined_at = Some(now);
        for subflow in &self.subflows[1..] {
            if !subflow.joins_later {
                hosts.open(now, subflow.ends[0]);
            }
        }
    }

    /// Whether data of a side may leave.
    fn may_send(&self, now: Nanos, side: usize, hosts: &Hosts) -> bool {
        let is_open = |subflow: &SubflowSettings| {
            subflow.joins_later || hosts.get(subflow.ends[side]).tcp.is_open()
        };
        !self.settings.as_in_ns3
            || self.joined_at.is_some_and(|at| now >= at + JOINING_MAX)
            || self.subflows.iter().all(is_open)
    }

    /// Give the subflows what their windows have room for.
    fn pump(&mut self, now: Nanos, side: usize, hosts: &mut Hosts) {
        let moves = !self.settings.as_in_ns3 || self.progress || self.is_idle(side, hosts);
        if moves && self.may_send(now, side, hosts) {
            self.senders[side].pump(now, &self.ends, hosts);
        }
    }

    /// Whether nothing is under way.
    fn is_idle(&self, side: usize, hosts: &Hosts) -> bool {
        let mut flows = self.ends.iter().map(|ends| &hosts.get(ends[side]).tcp);
        flows.all(|tcp| tcp.acknowledged() == tcp.next())
    }

    /// Data came over one path that left before what other paths have brought: with TCP-DOOR the peer hears of it on all of them.
    fn report_disorder(&mut self, receiver: usize, hosts: &mut Hosts) {
        if self.settings.duplicate_acks == DuplicateAcks::Connection {
            for ends in &self.ends {
                hosts.get_mut(ends[receiver]).tcp.report_disorder();
            }
        }
    }

    /// Take the blocks of an ACK that report what waits for the connection.
    fn take_report(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        segment: &Segment,
        hosts: &mut Hosts,
    ) {
        let Some(reports) = &mut self.reports else {
            return;
        };
        let blocks = segment.sack_blocks().next();
        if let (Side::Client, Some((start, _))) = (stream_end.side, blocks) {
            reports.on_report(
                now,
                [stream_end.stream as u64, start],
                &self.senders[0],
                &self.ends,
                hosts,
            );
        }
    }

    /// Let subflows acknowledge what is now in order for the connection.
    fn release(&mut self, receiver: usize, hosts: &mut Hosts) {
        if self.settings.duplicate_acks != DuplicateAcks::Connection {
            return;
        }
        for (subflow, ends) in self.ends.iter().enumerate() {
            let from = self.receivers[receiver].held_from(subflow);
            hosts.hold_from(ends[receiver], from);
        }
    }
}

impl Bundle for Mptcp {
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        let taken = self.senders[0].write(u64::from(bytes));
        // Refused, it may still be what makes the sender look for a way around a blocked piece.
        self.pump(now, 0, hosts);
        Ok(taken)
    }

    fn ask(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<u32, Error> {
        let taken = self.senders[1].write(u64::from(bytes));
        self.pump(now, 1, hosts);
        Ok(if taken { bytes } else { 0 })
    }

    fn on_arrival(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        segment: &Segment,
        hosts: &mut Hosts,
    ) {
        let side = stream_end.side as usize;
        let sender = &mut self.senders[side];
        match segment.data_ack() {
            Some(number) => sender.on_data_ack(number, segment.window_bytes),
            None => sender.on_first_window(segment.window_bytes),
        }
        self.take_report(now, stream_end, segment, hosts);
        if let Some(start) = segment.mapping() {
            let end = start + u64::from(segment.payload_bytes);
            let late =
                self.receivers[side].on_packet(stream_end.stream, segment.sequence, start, end);
            if late && !segment.retransmission {
                self.report_disorder(side, hosts);
            }
            self.release(side, hosts);
        }
    }

    fn on_transmit(&mut self, stream_end: StreamEnd, segment: &mut Segment) {
        if segment.rst {
            return;
        }
        let side = stream_end.side as usize;
        if segment.syn {
            segment.mptcp = match (stream_end.side, stream_end.stream) {
                (Side::Client, 0) => MptcpKind::Capable,
                (Side::Server, 0) => MptcpKind::CapableAnswer,
                (Side::Client, _) => MptcpKind::Join,
                (Side::Server, _) => MptcpKind::JoinAnswer,
            };
            return;
        }
        segment.set_data_ack(self.receivers[side].next(), self.settings.as_in_ns3);
        if segment.payload_bytes > 0 {
            segment.push &= self.senders[side].is_drained();
            let data = self.senders[side].data_of(stream_end.stream, segment.sequence);
            debug_assert!(
                data.is_some(),
                "bytes of a subflow that are mapped to nothing"
            );
            if let Some(number) = data {
                segment.set_mapping(number);
                if let (true, Side::Client, Some(reports)) =
                    (segment.retransmission, stream_end.side, &mut self.reports)
                {
                    reports.on_resent(number);
                }
            }
        }
    }

    fn on_events(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        events: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let (subflow, side) = (stream_end.stream, stream_end.side as usize);
        let endpoint = self.ends[subflow][side];
        hosts.read(now, endpoint, u32::MAX);
        if stream_end.side == Side::Client && subflow == 0 {
            self.join_others(now, events, hosts);
        }
        let sender = &mut self.senders[side];
        if events.acknowledged_bytes > 0 {
            sender.on_progress(subflow);
            sender.on_subflow_ack(subflow, hosts.get(endpoint).tcp.acknowledged());
        }
        let path = hosts.get(endpoint).tcp.path();
        sender.note_window(now, subflow, &path, events.acknowledged_bytes > 0);
        if (events.timed_out && self.settings.reinjection) || events.ended {
            sender.reinject(subflow);
        }
        self.progress = events.acknowledged_bytes > 0 || events.window_opened;
        self.pump(now, side, hosts);
        self.progress = false;
        let bytes = self.receivers[side].read();
        if bytes > 0 && self.receivers[side].ahead_bytes() == 0 {
            for ends in &self.ends {
                hosts.acknowledge_read(ends[side]);
            }
        }
        Ok(bytes)
    }

    fn streams(&self) -> Vec<[u32; 2]> {
        self.ends.clone()
    }

    fn openers(&self) -> Vec<u32> {
        vec![self.ends[0][0]]
    }

    fn is_open(&self, side: Side, hosts: &Hosts) -> bool {
        hosts.get(self.ends[0][side as usize]).tcp.is_open()
    }

    fn change(&mut self, now: Nanos, stream: usize, change: StreamChange, hosts: &mut Hosts) {
        let [client, _] = self.ends[stream];
        match change {
            StreamChange::Join => hosts.open(now, client),
            StreamChange::Leave => {
                hosts.abort(client);
                self.senders[0].reinject(stream);
                self.pump(now, 0, hosts);
            }
        }
    }

    fn report(&self) -> BundleReport {
        let received = &self.receivers[1];
        BundleReport {
            frames: Some(received.packets),
            out_of_order_frames: Some(received.out_of_order_packets),
            reorder_buffer_bytes: Some(received.ahead_bytes()),
            reorder_buffer_max_bytes: Some(received.ahead_max_bytes),
            stream_bytes: self.senders[0].stream_bytes(),
            bytes_wrong: 0,
            mptcp: Some(MptcpReport {
                counters: self.senders[0].counters,
                duplicate_packets: received.duplicate_packets,
                window_rates_bps: self.senders[0].window_rates_bps(),
                logged_rates_bps: self.senders[0].logged_rates_bps(),
                logged_rate_bps: self.senders[0].logged_rate_bps(),
            }),
        }
    }
}
