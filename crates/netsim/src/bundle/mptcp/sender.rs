//! The sending half of an MPTCP connection: what goes over which subflow, and again over another.

use std::collections::VecDeque;

use serde::Serialize;

use super::scheduler::{Scheduler, SubflowView, View};
use super::window_rate::WindowRate;
use super::MptcpSettings;
use crate::hosts::Hosts;
use crate::tcp::events::PathState;
use crate::time::Nanos;

/// Data sequence space that a subflow carries from some number of its own on.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    sequence: u64,
    data: u64,
    bytes: u32,
}

/// A piece of data that a subflow was given and the receiver has not acknowledged.
#[derive(Debug, Clone, Copy)]
struct DataChunk {
    data: u64,
    bytes: u32,
    /// The subflows that it was given to, a bit each.
    subflows: u64,
    /// Whether it waits to be sent on another.
    reinject: bool,
}

/// What the sender knows of a subflow beyond its TCP.
#[derive(Debug, Default)]
struct Subflow {
    mappings: VecDeque<Mapping>,
    /// Its last transmission timed out, and nothing was acknowledged since.
    stale: bool,
    /// Redundant scheduling: what it has been given goes up to here.
    given: u64,
    /// Application bytes given to it.
    bytes: u64,
    penalised_at: Option<Nanos>,
    window_rate: WindowRate,
}

/// What happened beyond plain sending.
#[derive(Debug, Clone, Copy, Default, Serialize, PartialEq, Eq)]
pub struct Counters {
    /// Pieces sent again on another subflow, since theirs had a timeout or ended.
    pub reinjected: u64,
    /// Pieces sent again on a fast subflow because they held the window or the buffer back (Raiciu et al., NSDI 2012, 4.2).
    pub opportunistic_retransmissions: u64,
    /// Windows that were halved for that.
    pub penalties: u64,
}

/// One direction's data and its way to the subflows.
#[derive(Debug)]
pub struct DataSender {
    settings: MptcpSettings,
    /// 0: of the client, 1: of the server.
    side: usize,
    scheduler: Box<dyn Scheduler>,
    written: u64,
    /// The next byte that no subflow was given.
    next: u64,
    acknowledged: u64,
    /// Right edge of the peer's window.
    edge: u64,
    /// The application has more than the send buffer takes.
    starved: bool,
    pieces: VecDeque<DataChunk>,
    /// How many pieces wait to be sent on another subflow.
    reinjections: usize,
    subflows: Vec<Subflow>,
    views: Vec<SubflowView>,
    /// Lines of ns-3's log, and the sum of the rates by all windows in them.
    lines: u64,
    logged_bytes_per_s: f64,
    /// What happened beyond plain sending.
    pub counters: Counters,
}

impl DataSender {
    /// Nothing written.
    pub fn new(
        settings: MptcpSettings,
        side: usize,
        subflows: usize,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        Self {
            settings,
            side,
            scheduler,
            written: 0,
            next: 0,
            acknowledged: 0,
            edge: 0,
            starved: false,
            pieces: VecDeque::new(),
            reinjections: 0,
            subflows: (0..subflows).map(|_| Subflow::default()).collect(),
            views: Vec::new(),
            lines: 0,
            logged_bytes_per_s: 0.0,
            counters: Counters::default(),
        }
    }

    /// Whether subflows were given all that is written.
    pub fn is_drained(&self) -> bool {
        self.next == self.written
    }

    /// Application bytes given to each subflow.
    pub fn stream_bytes(&self) -> Vec<u64> {
        self.subflows.iter().map(|subflow| subflow.bytes).collect()
    }

    /// Mean rate of each subflow by its window.
    pub fn window_rates_bps(&self) -> Vec<f64> {
        let rates = self.subflows.iter().map(|subflow| subflow.window_rate);
        rates.map(|rate| rate.mean_bps()).collect()
    }

    /// The same as the mean over the lines of ns-3's log.
    pub fn logged_rates_bps(&self) -> Vec<f64> {
        let rates = self.subflows.iter().map(|subflow| subflow.window_rate);
        rates.map(|rate| rate.logged_bps()).collect()
    }

    /// The mean over all lines of what all subflows have together, which each line tells too.
    pub fn logged_rate_bps(&self) -> f64 {
        8.0 * self.logged_bytes_per_s / self.lines.max(1) as f64
    }

    /// Something has happened on a subflow, an ACK that advanced or something else: note its window.
    pub fn note_window(&mut self, now: Nanos, subflow: usize, path: &PathState, acked: bool) {
        let rate = &mut self.subflows[subflow].window_rate;
        if rate.note(now, path.cwnd_bytes, path.srtt, acked) {
            let rates = self
                .subflows
                .iter()
                .map(|one| one.window_rate.bytes_per_s());
            self.logged_bytes_per_s += rates.sum::<f64>();
            self.lines += 1;
        }
    }

    /// Take bytes into the send buffer; false if they do not fit.
    pub fn write(&mut self, bytes: u64) -> bool {
        if self.written - self.acknowledged + bytes > self.settings.send_buffer_bytes {
            self.starved = true;
            return false;
        }
        self.starved = false;
        self.written += bytes;
        true
    }

    /// The data ACK: the next byte that the receiver expects.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Take the window that a SYN tells.
    pub fn on_first_window(&mut self, window: u64) {
        self.edge = self.edge.max(window);
    }

    /// Take a data ACK with the window that goes with it (RFC 8684, 3.3.1 and 3.3.5).
    pub fn on_data_ack(&mut self, number: u64, window: u64) {
        self.edge = self.edge.max(number + window);
        if number <= self.acknowledged {
            return;
        }
        self.acknowledged = number;
        while let Some(piece) = self.pieces.front() {
            if piece.data + u64::from(piece.bytes) > number {
                break;
            }
            self.reinjections -= usize::from(piece.reinject);
            self.pieces.pop_front();
        }
    }

    /// Forget the mappings that a subflow's ACK covers.
    pub fn on_subflow_ack(&mut self, subflow: usize, acknowledgement: u64) {
        let mappings = &mut self.subflows[subflow].mappings;
        while let Some(mapping) = mappings.front() {
            if mapping.sequence + u64::from(mapping.bytes) > acknowledgement {
                break;
            }
            mappings.pop_front();
        }
    }

    /// The data sequence number of a subflow's byte.
    pub fn data_of(&self, subflow: usize, sequence: u64) -> Option<u64> {
        let mappings = &self.subflows[subflow].mappings;
        let after = mappings.partition_point(|mapping| mapping.sequence <= sequence);
        let mapping = mappings.get(after.checked_sub(1)?)?;
        let offset = sequence - mapping.sequence;
        (offset < u64::from(mapping.bytes)).then(|| mapping.data + offset)
    }

    /// Note that a subflow's peer has acknowledged something.
    pub fn on_progress(&mut self, subflow: usize) {
        self.subflows[subflow].stale = false;
    }

    /// A subflow had a timeout or has ended: what it was given goes over the others too.
    pub fn reinject(&mut self, subflow: usize) {
        self.subflows[subflow].stale = true;
        for piece in &mut self.pieces {
            // What another carries already comes by that.
            if piece.subflows == 1 << subflow && !piece.reinject {
                piece.reinject = true;
                self.reinjections += 1;
            }
        }
    }

    /// Give subflows what their windows have room for.
    pub fn pump(&mut self, now: Nanos, ends: &[[u32; 2]], hosts: &mut Hosts) {
        loop {
            self.look(ends, hosts);
            let sent = self.reinject_one(ends, now, hosts)
                || self.send_copy(ends, now, hosts)
                || self.send_new(ends, now, hosts);
            if !sent {
                return;
            }
        }
    }

    /// See what the subflows are like. Those after a timeout count only if there is no other.
    fn look(&mut self, ends: &[[u32; 2]], hosts: &Hosts) {
        self.views.clear();
        let open = |end: &[u32; 2]| hosts.get(end[self.side]).tcp.is_open();
        let any_fresh = ends
            .iter()
            .zip(&self.subflows)
            .any(|(end, subflow)| open(end) && !subflow.stale);
        for (index, end) in ends.iter().enumerate() {
            if !open(end) || (any_fresh && self.subflows[index].stale) {
                continue;
            }
            let tcp = &hosts.get(end[self.side]).tcp;
            let path = tcp.path();
            self.views.push(SubflowView {
                index,
                srtt: path.srtt,
                rtt_variation: path.rtt_variation,
                cwnd: path.cwnd_bytes,
                in_flight: path.pipe_bytes,
                room: path.room_bytes,
                segment: path.segment_bytes,
            });
        }
    }

    fn view(&self) -> View<'_> {
        View {
            subflows: &self.views,
            unsent: self.written - self.next,
            window_room: self.edge.saturating_sub(self.next),
        }
    }

    fn reinject_one(&mut self, ends: &[[u32; 2]], now: Nanos, hosts: &mut Hosts) -> bool {
        if self.reinjections == 0 {
            return false;
        }
        let Some(place) = self.pieces.iter().position(|piece| piece.reinject) else {
            return false;
        };
        let piece = self.pieces[place];
        let fits = |flow: &&SubflowView| {
            flow.room >= u64::from(piece.bytes) && piece.subflows >> flow.index & 1 == 0
        };
        let best = self.views.iter().filter(fits).min_by_key(|flow| flow.srtt);
        let Some(index) = best.map(|flow| flow.index) else {
            return false;
        };
        self.pieces[place].reinject = false;
        self.reinjections -= 1;
        self.counters.reinjected += 1;
        self.give(index, place, ends, now, hosts);
        true
    }

    /// Redundant scheduling: a piece that others were given and this subflow was not.
    fn send_copy(&mut self, ends: &[[u32; 2]], now: Nanos, hosts: &mut Hosts) -> bool {
        if !self.scheduler.is_redundant() {
            return false;
        }
        for view in 0..self.views.len() {
            let SubflowView { index, room, .. } = self.views[view];
            let from = self.subflows[index].given;
            let place = self.pieces.partition_point(|piece| piece.data < from);
            let Some(piece) = self.pieces.get(place) else {
                continue;
            };
            if room >= u64::from(piece.bytes) {
                self.subflows[index].given = piece.data + u64::from(piece.bytes);
                if piece.subflows >> index & 1 == 0 {
                    self.give(index, place, ends, now, hosts);
                }
                return true;
            }
        }
        false
    }

    fn send_new(&mut self, ends: &[[u32; 2]], now: Nanos, hosts: &mut Hosts) -> bool {
        let unsent = self.written - self.next;
        if unsent == 0 {
            // The send buffer is what limits: Linux retransmits, and does not penalise.
            return self.starved && self.unblock(false, ends, now, hosts);
        }
        let segment = self.views.first().map_or(1, |view| view.segment);
        let bytes = unsent.min(segment) as u32;
        if self.next + u64::from(bytes) > self.edge {
            self.scheduler.on_blocked();
            return self.unblock(true, ends, now, hosts);
        }
        let view = View {
            subflows: &self.views,
            ..self.view()
        };
        let Some(index) = self.scheduler.choose(&view) else {
            return false;
        };
        self.pieces.push_back(DataChunk {
            data: self.next,
            bytes,
            subflows: 0,
            reinject: false,
        });
        self.next += u64::from(bytes);
        self.subflows[index].given = self.next;
        self.give(index, self.pieces.len() - 1, ends, now, hosts);
        true
    }

    /// Opportunistic retransmission, and penalisation (Raiciu et al., NSDI 2012, 4.2; `mptcp_rcv_buf_optimization` of Linux's MPTCP
    /// v0.9x): the piece at the left edge goes over the fastest subflow with room too, if a much slower one has it, and that one's
    /// window is halved, once a round trip of the fast one.
    fn unblock(
        &mut self,
        penalise: bool,
        ends: &[[u32; 2]],
        now: Nanos,
        hosts: &mut Hosts,
    ) -> bool {
        let Some(&fast) = self.view().fastest_with_room() else {
            return false;
        };
        let Some(&piece) = self.pieces.front() else {
            return false;
        };
        if penalise && self.settings.penalisation {
            self.penalise(&fast, &piece, ends, now, hosts);
        }
        let carriers = || {
            let carries = |view: &&SubflowView| piece.subflows >> view.index & 1 == 1;
            self.views.iter().filter(carries)
        };
        let worth = carriers().any(|slow| slow.cwnd <= 4 * slow.segment)
            || (carriers().next().is_some() && carriers().all(|slow| 4 * fast.srtt < slow.srtt));
        let new_here = piece.subflows >> fast.index & 1 == 0;
        if !(self.settings.opportunistic && new_here && worth) || fast.room < u64::from(piece.bytes)
        {
            return false;
        }
        self.counters.opportunistic_retransmissions += 1;
        self.give(fast.index, 0, ends, now, hosts);
        true
    }

    fn penalise(
        &mut self,
        fast: &SubflowView,
        piece: &DataChunk,
        ends: &[[u32; 2]],
        now: Nanos,
        hosts: &mut Hosts,
    ) {
        let since = self.subflows[fast.index].penalised_at;
        if since.is_some_and(|since| now < since + fast.srtt) {
            return;
        }
        for slow in &self.views {
            let carries = piece.subflows >> slow.index & 1 == 1;
            if carries && slow.index != fast.index && fast.srtt < slow.srtt {
                hosts.get_mut(ends[slow.index][self.side]).tcp.penalise();
                self.counters.penalties += 1;
                self.subflows[fast.index].penalised_at = Some(now);
            }
        }
    }

    /// Give a subflow a piece.
    fn give(
        &mut self,
        index: usize,
        place: usize,
        ends: &[[u32; 2]],
        now: Nanos,
        hosts: &mut Hosts,
    ) {
        let piece = &mut self.pieces[place];
        piece.subflows |= 1 << index;
        let subflow = &mut self.subflows[index];
        let endpoint = ends[index][self.side];
        subflow.mappings.push_back(Mapping {
            sequence: hosts.get(endpoint).tcp.write_position(),
            data: piece.data,
            bytes: piece.bytes,
        });
        subflow.bytes += u64::from(piece.bytes);
        hosts.write_apart(now, endpoint, piece.bytes);
    }
}
