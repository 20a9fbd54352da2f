//! One flow: its application at both ends.

use std::collections::VecDeque;

use crate::bundle::Bundle;
use crate::description::WhenFull;
use crate::metrics::Meter;
use crate::prefetch::prefetch;
use crate::requests::Transfers;
use crate::time::Nanos;
use crate::traffic::{Lateness, Source, WriteRate};

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

/// The offset behind each write, or each read in order, and when it was made.
pub type OffsetLog = Vec<(u64, Nanos)>;

/// One flow.
#[derive(Debug)]
pub struct Flow {
    /// Its name in the results.
    pub name: String,
    /// What carries it.
    pub carrier: Carrier,
    /// The endpoint that its application writes to, if it has one, or the first of them.
    pub writer: u32,
    /// When its application writes.
    pub source: Source,
    /// Bytes of a write.
    pub write_bytes: u32,
    /// What becomes of a write that finds the send buffer full.
    pub when_full: WhenFull,
    /// Bytes that are written as soon as there is room: files, answers, writes that wait.
    pub backlog: u64,
    /// How fast the backlog is written at most.
    pub write_rate: Option<WriteRate>,
    /// How late the writes of a rate are.
    pub lateness: Lateness,
    /// Files and answers.
    pub transfers: Option<Box<Transfers>>,
    /// When the connections are opened.
    pub start: Nanos,
    /// The application begins no earlier.
    pub write_from: Nanos,
    /// When the application stops writing.
    pub stop: Nanos,
    /// When the first write was due.
    pub begun: Option<Nanos>,
    /// Where it is in its life.
    pub phase: Phase,
    /// When the protocol over its connections is to be asked next.
    pub timer: Nanos,
    /// What the receiving application has read.
    pub meter: Meter,
    /// Writes that were tried and writes that found no room, since the measurement began.
    pub ticks: [u64; 2],
    /// Bytes written and bytes read, since the start.
    pub totals: [u64; 2],
    /// Each write and each read, if that is wanted.
    pub log: Option<Box<[OffsetLog; 2]>>,
    /// The end of each write that has not been read, in bytes of the flow, and when it was made.
    stamps: VecDeque<(u64, Nanos)>,
}

/// What a flow's application writes.
#[derive(Debug)]
pub struct Application {
    /// When.
    pub source: Source,
    /// Bytes of a write.
    pub write_bytes: u32,
    /// What becomes of a write that finds the send buffer full.
    pub when_full: WhenFull,
    /// Bytes of a file; none if it has no end or there is none.
    pub file_bytes: Option<u64>,
    /// How fast it writes what lies before it; none: as there is room.
    pub write_rate: Option<WriteRate>,
    /// How late its writes are.
    pub lateness: Lateness,
}

impl Flow {
    /// A flow that waits for its start.
    ///
    /// `times`: when connections are opened, when the application begins at the earliest, and when it stops.
    pub fn new(
        name: String,
        carrier: Carrier,
        application: Application,
        [start, write_from, stop]: [Nanos; 3],
    ) -> Self {
        let Application {
            source,
            write_bytes,
            when_full,
            file_bytes,
            write_rate,
            lateness,
        } = application;
        let mut transfers = None;
        if file_bytes.is_some() || matches!(source, Source::Requests(_)) {
            let mut wanted = Transfers::default();
            if let Some(bytes) = file_bytes {
                wanted.want(write_from, bytes, true);
            }
            transfers = Some(Box::new(wanted));
        }
        let backlog = match source {
            Source::Bulk => file_bytes.unwrap_or(u64::MAX),
            _ => 0,
        };
        let streams = match &carrier {
            Carrier::Connections(bundle) => bundle.streams(),
            Carrier::Datagrams { .. } => Vec::new(),
        };
        Self {
            name,
            writer: streams.first().map_or(0, |ends| ends[0]),
            source,
            write_bytes,
            when_full,
            backlog,
            write_rate,
            lateness,
            transfers,
            start: match carrier {
                Carrier::Connections(_) => start,
                Carrier::Datagrams { .. } => write_from,
            },
            write_from,
            stop,
            carrier,
            begun: None,
            phase: Phase::Waiting,
            timer: Nanos::MAX,
            meter: Meter::default(),
            ticks: [0; 2],
            totals: [0; 2],
            log: None,
            stamps: VecDeque::new(),
        }
    }

    /// Fetch what a write or a read needs beyond the flow itself.
    pub(crate) fn prefetch(&self) {
        let stamps = self.stamps.front().into_iter().chain(self.stamps.back());
        stamps.for_each(prefetch);
        if let Carrier::Connections(bundle) = &self.carrier {
            prefetch(&**bundle);
        }
    }

    /// Fetch where the delay of what is read at a time will be counted.
    pub(crate) fn prefetch_read(&self, now: Nanos) {
        if let Some(&(_, written)) = self.stamps.front() {
            self.meter.delay.prefetch(now.saturating_sub(written));
        }
    }

    /// Note a write that was taken.
    pub fn on_written(&mut self, now: Nanos, bytes: u32) {
        if let Some(rate) = &mut self.write_rate {
            rate.on_written(now, bytes);
        }
        self.totals[0] += u64::from(bytes);
        self.stamps.push_back((self.totals[0], now));
        if let Some(log) = &mut self.log {
            log[0].push((self.totals[0], now));
        }
    }

    /// Note that the next bytes in order were read: how many answers or files that made whole.
    pub fn on_read(&mut self, now: Nanos, mut bytes: u64) -> u32 {
        while bytes > 0 {
            let Some(&(end, written)) = self.stamps.front() else {
                debug_assert!(false, "more was read than written");
                break;
            };
            let part = bytes.min(end - self.totals[1]);
            self.meter.record(part, now - written);
            self.totals[1] += part;
            bytes -= part;
            if self.totals[1] == end {
                self.stamps.pop_front();
            }
        }
        let read = self.totals[1];
        if let Some(log) = &mut self.log {
            log[1].push((read, now));
        }
        match &mut self.transfers {
            Some(transfers) => transfers.on_read(now, read),
            None => 0,
        }
    }

    /// For how long an on/off source has been on.
    pub fn on_until(&self, now: Nanos) -> Nanos {
        match (&self.source, self.begun) {
            (Source::OnOff(periods), Some(begun)) => periods.on_until(now.saturating_sub(begun)),
            _ => 0,
        }
    }

    /// Add bytes that the application is to write.
    pub fn add_backlog(&mut self, now: Nanos, bytes: u64) {
        if let (0, Some(rate)) = (self.backlog, &mut self.write_rate) {
            rate.begin(now);
        }
        self.backlog += bytes;
    }

    /// Whether the application may write of its backlog.
    pub fn may_write(&self, now: Nanos) -> bool {
        self.backlog > 0
            && now < self.stop
            && self.begun.is_some_and(|begun| begun <= now)
            && self.write_rate.map_or(true, |rate| rate.next() <= now)
    }

    /// Make a request.
    pub fn ask(&mut self, now: Nanos) {
        if let (Source::Requests(requests), Some(transfers)) =
            (&mut self.source, &mut self.transfers)
        {
            transfers.want(now, requests.ask(), self.meter.is_measuring());
        }
    }

    /// Note that a datagram has arrived.
    pub fn on_datagram(&mut self, now: Nanos, bytes: u32, written: Nanos) {
        self.totals[1] += u64::from(bytes);
        self.meter.record(u64::from(bytes), now - written);
    }
}
