//! MSTCP: the library's own protocol core at both ends.
//!
//! TCP here counts bytes and carries none, so beside each direction of each stream goes a [`Pipe`] of the real bytes that the
//! core made; what TCP delivers is popped from it. What the application reads is compared with what it wrote.

use std::sync::Arc;

use mstcp_proto::{Config, Connection, Scheduler, Slice, Unanswered};

use super::pipe::{ByteRun, Pipe};
use super::{Bundle, BundleReport, StreamEnd};
use crate::description::Binding;
use crate::error::Error;
use crate::hosts::Hosts;
use crate::tcp::Events;
use crate::time::Nanos;

/// Length after which the written bytes repeat: a prime, so that frames differ from each other.
const PATTERN_PERIOD: usize = 4093;

/// What an MSTCP flow is made of.
#[derive(Debug, Clone)]
pub struct MstcpSettings {
    /// When a frame is given to a stream.
    pub binding: Binding,
    /// Take for delivered what a stream took; else the library's whole protocol, with late binding.
    pub trust_streams: bool,
    /// Application bytes in a full frame.
    pub frame_payload_bytes: usize,
    /// Memory for frames that are ahead.
    pub reorder_buffer_bytes: usize,
    /// Late binding: bytes of the application that are in no stream's acknowledged past, at most.
    pub send_buffer_bytes: u64,
    /// Late binding: of each stream, the bytes that may wait unsent in its socket.
    pub unsent_limit_bytes: Vec<u32>,
}

/// One stream of an MSTCP flow.
#[derive(Debug, Clone, Copy)]
pub struct StreamSettings {
    /// Endpoints at client and server.
    pub ends: [u32; 2],
    /// Rate of its path: its weight.
    pub rate_bps: f64,
    /// Propagation delay of its path.
    pub delay: Nanos,
}

/// A flow over several TCP connections. Of pairs, the first is the client's, or what the client sends.
#[derive(Debug)]
pub struct Mstcp {
    settings: MstcpSettings,
    sides: [Connection; 2],
    streams: Vec<Stream>,
    /// What each stream's path is allocated.
    rates_bps: Vec<f64>,
    pattern: Arc<Vec<u8>>,
    written: [u64; 2],
    read: [u64; 2],
    bytes_wrong: u64,
    /// With early binding: of writes that were taken, what waits for a stream with room.
    owed_bytes: usize,
    /// Kept for its memory: what a stream has just brought, as far as it is in order.
    in_order: Vec<Slice>,
}

#[derive(Debug)]
struct Stream {
    ends: [u32; 2],
    /// What client and server have written and the other has not read.
    pipes: [Pipe; 2],
}

impl Mstcp {
    /// A flow over these connections, whose frames `scheduler` spreads.
    pub fn new(
        settings: MstcpSettings,
        streams: &[StreamSettings],
        schedulers: [Box<dyn Scheduler>; 2],
        max_write_bytes: usize,
    ) -> Result<Self, Error> {
        let config = Config {
            stream_count: streams.len(),
            frame_payload_bytes: settings.frame_payload_bytes,
            send_queue_bytes: usize::MAX / 2,
            reorder_buffer_bytes: settings.reorder_buffer_bytes,
        };
        let weights: Vec<f64> = streams.iter().map(|stream| stream.rate_bps).collect();
        let connection = |scheduler| {
            let mut connection = Connection::new(config, scheduler)?;
            if settings.trust_streams {
                // The paper's MSTCP acknowledges nothing of its own.
                connection.trust_streams();
            }
            connection.set_weights(&weights)?;
            for (index, stream) in streams.iter().enumerate() {
                connection.set_delay(index, stream.delay)?;
            }
            Ok::<_, mstcp_proto::LocalError>(connection)
        };
        let [client, server] = schedulers;
        let stream = |stream: &StreamSettings| Stream {
            ends: stream.ends,
            pipes: Default::default(),
        };
        Ok(Self {
            sides: [connection(client)?, connection(server)?],
            streams: streams.iter().map(stream).collect(),
            rates_bps: weights,
            pattern: Arc::new(pattern(PATTERN_PERIOD + max_write_bytes)),
            written: [0; 2],
            read: [0; 2],
            bytes_wrong: 0,
            owed_bytes: 0,
            in_order: Vec::new(),
            settings,
        })
    }

    /// Early binding: one draw for each frame; if the stream drawn is full the frame stays, and the next write draws again. A write
    /// is taken once a part of it is sent: the rest goes before all that is written later.
    fn write_early(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        if !self.send_owed(now, hosts)? {
            return Ok(false);
        }
        let refused_bytes = self.sides[0].queued_bytes() as u32;
        self.queue(0, bytes.saturating_sub(refused_bytes))?;
        let mut is_taken = false;
        while self.send_early(now, hosts)?.is_some() {
            is_taken = true;
        }
        if is_taken {
            self.owed_bytes = self.sides[0].queued_bytes();
        }
        Ok(is_taken)
    }

    /// With early binding, send what waits of a write that was taken: whether nothing waits any more.
    fn send_owed(&mut self, now: Nanos, hosts: &mut Hosts) -> Result<bool, Error> {
        while self.owed_bytes > 0 {
            let Some(sent_bytes) = self.send_early(now, hosts)? else {
                return Ok(false);
            };
            self.owed_bytes -= sent_bytes;
        }
        Ok(true)
    }

    /// Send the first frame that waits, if the stream drawn has room for it. Returns the bytes of the application in it.
    fn send_early(&mut self, now: Nanos, hosts: &mut Hosts) -> Result<Option<usize>, Error> {
        let queued_bytes = self.sides[0].queued_bytes();
        if queued_bytes == 0 {
            return Ok(None);
        }
        let Some((index, count)) = self.sides[0].poll_frame(now) else {
            return Ok(None);
        };
        if hosts.send_buffer_free(self.streams[index].ends[0]) < count as u32 {
            self.sides[0].on_sent(index, 0)?;
            self.sides[0].on_writable(index)?;
            return Ok(None);
        }
        self.send(0, now, index, count, hosts)?;
        Ok(Some(queued_bytes - self.sides[0].queued_bytes()))
    }

    /// Late binding: what is written waits in the core's queue for a stream with room.
    fn write_late(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        let alive = self.sides[0].alive();
        let outstanding: u64 = alive
            .iter()
            .map(|index| hosts.get(self.streams[index].ends[0]))
            .map(|host| u64::from(host.tcp.unacknowledged_bytes()))
            .sum();
        let held = outstanding + self.sides[0].queued_bytes() as u64;
        if held + u64::from(bytes) > self.settings.send_buffer_bytes {
            return Ok(false);
        }
        self.queue(0, bytes)?;
        self.give(0, now, hosts)?;
        Ok(true)
    }

    fn queue(&mut self, side: usize, mut bytes: u32) -> Result<(), Error> {
        while bytes > 0 {
            let from = (self.written[side] % PATTERN_PERIOD as u64) as usize;
            let count = (bytes as usize).min(self.pattern.len() - from);
            let part = Slice::new(Arc::clone(&self.pattern), from..from + count);
            self.sides[side].write_slice(part)?;
            self.written[side] += count as u64;
            bytes -= count as u32;
        }
        Ok(())
    }

    /// Give frames to streams while the scheduler finds one with room.
    fn give(&mut self, side: usize, now: Nanos, hosts: &mut Hosts) -> Result<(), Error> {
        // Without trust there are acknowledgements and questions to send too.
        while !self.settings.trust_streams || self.sides[side].queued_bytes() > 0 {
            let Some((index, count)) = self.sides[side].poll_frame(now) else {
                break;
            };
            let endpoint = self.streams[index].ends[side];
            // As the library does, which asks the kernel when it looks for room.
            let unsent = hosts.get(endpoint).tcp.unsent_bytes();
            self.sides[side].on_unsent(now, index, unsent as usize)?;
            let limit = self.settings.unsent_limit_bytes[index];
            if unsent + (count as u32).min(limit / 2) > limit
                || hosts.send_buffer_free(endpoint) < count as u32
            {
                self.sides[side].on_sent(index, 0)?;
                continue;
            }
            self.send(side, now, index, count, hosts)?;
        }
        Ok(())
    }

    /// Whether so little waits unsent in a stream's socket that its kernel, which has sent what it may, calls it writable again.
    fn has_room(&self, now: Nanos, stream: usize, endpoint: u32, hosts: &mut Hosts) -> bool {
        hosts.push(now, endpoint);
        hosts.get(endpoint).tcp.unsent_bytes() < self.settings.unsent_limit_bytes[stream] / 2
    }

    /// Give a stream the frame of `count` bytes that the core offers for it.
    fn send(
        &mut self,
        side: usize,
        now: Nanos,
        index: usize,
        count: usize,
        hosts: &mut Hosts,
    ) -> Result<(), Error> {
        let stream = &mut self.streams[index];
        let (pipe, pattern) = (&mut stream.pipes[side], &self.pattern[..]);
        self.sides[side].rest(index, |piece| pipe.push(piece, pattern));
        hosts.write(now, stream.ends[side], count as u32);
        self.sides[side].on_sent(index, count)?;
        Ok(())
    }

    /// Take what has happened at a stream whose fate the library's protocol looks after.
    fn on_stream_events(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        events: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let (stream, side) = (stream_end.stream, stream_end.side as usize);
        let is_used = self.sides[side].alive().contains(stream);
        let readable = hosts.readable(self.streams[stream].ends[side]) > 0;
        let read = match is_used && readable {
            true => self.receive(side, now, stream, hosts)?,
            false => 0,
        };
        if events.ended && is_used {
            self.sides[side].on_stream_end(stream)?;
        }
        self.work(side, now, hosts)?;
        Ok(read)
    }

    /// Let a side of the library's protocol look at its streams and the time, and send what it has to. Streams that it gives up are
    /// reset, and not opened again.
    fn work(&mut self, side: usize, now: Nanos, hosts: &mut Hosts) -> Result<(), Error> {
        let streams_to_query = self.sides[side].streams_to_query(now);
        for index in 0..self.streams.len() {
            let endpoint = self.streams[index].ends[side];
            if streams_to_query.contains(index) {
                let tcp = &hosts.get(endpoint).tcp;
                let unanswered = match tcp.is_unanswered() {
                    true => Unanswered::SentAgain,
                    false if tcp.next() > tcp.acknowledged() => Unanswered::Sent,
                    false => Unanswered::Nothing,
                };
                self.sides[side].on_unanswered(now, index, unanswered);
            }
            if self.sides[side].is_blocked(index) && self.has_room(now, index, endpoint, hosts) {
                self.sides[side].on_writable(index)?;
            }
        }
        self.give(side, now, hosts)?;
        while let Some(event) = self.sides[side].poll_event() {
            if let mstcp_proto::Event::StreamGone { slot } = event {
                hosts.abort(self.streams[slot].ends[side]);
            }
        }
        Ok(())
    }

    /// Read what a side has, of all streams: one that was held back may go on when another brought what was missing.
    fn receive(
        &mut self,
        side: usize,
        now: Nanos,
        changed: usize,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let before = self.read[1 - side];
        let mut index = changed;
        loop {
            let endpoint = self.streams[index].ends[side];
            if hosts.readable(endpoint) > 0 && self.sides[side].readable().contains(index) {
                let count = hosts.read(now, endpoint, u32::MAX) as usize;
                self.take(side, index, count)?;
                self.check(side);
            }
            let next = (0..self.streams.len()).find(|&other| {
                hosts.readable(self.streams[other].ends[side]) > 0
                    && self.sides[side].readable().contains(other)
            });
            match next {
                Some(other) => index = other,
                None => break,
            }
        }
        Ok(self.read[1 - side] - before)
    }

    /// Give a side the next `count` bytes of a stream.
    fn take(&mut self, side: usize, stream: usize, mut count: usize) -> Result<(), Error> {
        let pipe = &mut self.streams[stream].pipes[1 - side];
        let (connection, in_order) = (&mut self.sides[side], &mut self.in_order);
        while let Some((run, left)) = pipe.pop(count) {
            count = left;
            match run {
                ByteRun::Pattern(range) => {
                    let part = Slice::new(Arc::clone(&self.pattern), range);
                    connection.on_slice(stream, &part, in_order)?;
                }
                ByteRun::Own(bytes, range) => {
                    let bytes = &bytes[range.start.into()..range.end.into()];
                    connection.on_copied(stream, bytes, in_order)?;
                }
            }
        }
        Ok(())
    }

    /// Compare what came in order at a side with what the other has written.
    fn check(&mut self, side: usize) {
        let read = &mut self.read[1 - side];
        for slice in self.in_order.drain(..) {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let from = (*read % PATTERN_PERIOD as u64) as usize;
                let count = rest.len().min(self.pattern.len() - from);
                let (now, later) = rest.split_at(count);
                let expected = &self.pattern[from..from + count];
                if now != expected {
                    let wrong = now.iter().zip(expected).filter(|(is, should)| is != should);
                    self.bytes_wrong += wrong.count() as u64;
                }
                *read += count as u64;
                rest = later;
            }
            self.sides[side].on_consumed(slice.len());
        }
    }
}

impl Bundle for Mstcp {
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        match self.settings.binding {
            Binding::Early => self.write_early(now, bytes, hosts),
            Binding::Late => self.write_late(now, bytes, hosts),
        }
    }

    fn reroute(&mut self, stream: usize, rate_bps: f64, delay: Nanos) -> Result<(), Error> {
        self.rates_bps[stream] = rate_bps;
        for side in &mut self.sides {
            if self.rates_bps.iter().sum::<f64>() > 0.0 {
                side.set_weights(&self.rates_bps)?;
            }
            side.set_delay(stream, delay)?;
        }
        Ok(())
    }

    fn refuses_until_an_event(&self) -> bool {
        // With early binding the next write may draw another stream, which has room.
        self.settings.binding == Binding::Late
    }

    fn ask(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<u32, Error> {
        self.queue(1, bytes)?;
        self.give(1, now, hosts)?;
        Ok(bytes)
    }

    fn on_events(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        events: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let (stream, side) = (stream_end.stream, stream_end.side as usize);
        if !self.settings.trust_streams {
            return self.on_stream_events(now, stream_end, events, hosts);
        }
        let read = match hosts.readable(self.streams[stream].ends[side]) {
            0 => 0,
            _ => self.receive(side, now, stream, hosts)?,
        };
        // With early binding the client's streams never count as blocked.
        if self.sides[side].is_blocked(stream)
            && self.has_room(now, stream, self.streams[stream].ends[side], hosts)
        {
            self.sides[side].on_writable(stream)?;
            self.give(side, now, hosts)?;
        }
        if self.owed_bytes > 0 {
            self.send_owed(now, hosts)?;
        }
        Ok(read)
    }

    fn next_timer(&self) -> Option<Nanos> {
        let timers = self.sides.iter().filter_map(Connection::timeout_ns);
        timers.min()
    }

    fn on_timer(&mut self, now: Nanos, hosts: &mut Hosts) -> Result<u64, Error> {
        self.work(0, now, hosts)?;
        self.work(1, now, hosts)?;
        Ok(0)
    }

    fn streams(&self) -> Vec<[u32; 2]> {
        self.streams.iter().map(|stream| stream.ends).collect()
    }

    fn report(&self) -> BundleReport {
        let [sent, received] = [0, 1].map(|side: usize| self.sides[side].counters());
        BundleReport {
            frames: Some(
                received
                    .streams
                    .iter()
                    .map(|stream| stream.frames_received)
                    .sum(),
            ),
            out_of_order_frames: Some(received.out_of_order_frames),
            reorder_buffer_bytes: Some(received.reorder_bytes as u64),
            reorder_buffer_max_bytes: Some(received.reorder_max_bytes as u64),
            stream_bytes: sent
                .streams
                .iter()
                .map(|stream| stream.bytes_sent)
                .collect(),
            bytes_wrong: self.bytes_wrong,
            mptcp: None,
        }
    }
}

/// Bytes that repeat after `PATTERN_PERIOD`.
fn pattern(length: usize) -> Vec<u8> {
    let byte = |index: usize| (((index % PATTERN_PERIOD) * 0x9e37_79b1) >> 11) as u8;
    (0..length).map(byte).collect()
}
