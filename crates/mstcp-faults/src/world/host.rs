//! A host: its core, and an application that writes a pattern, reads one, and closes.

use mstcp_proto::{scheduler, Config, Connection, Event, Outcome, Slice, Unanswered};

use super::{Transfer, World, MS};

/// The application's bytes repeat after this many: a prime, so that no two frames are alike.
const PERIOD: usize = 65_521;
/// What an application writes at once, and the most that it lets wait.
const WRITE_BYTES: usize = 1 << 17;
/// A trace tells of pauses that are longer.
const LONG_PAUSE_NS: u64 = 500 * MS;
pub(super) const PAYLOAD_BYTES: usize = 1428;

pub(super) struct Host {
    pub(super) core: Connection,
    pub(super) written: u64,
    pub(super) read: u64,
    pub(super) ended: bool,
    pub(super) is_shut: bool,
    pub(super) shut_ns: u64,
    pub(super) outcome: Option<Outcome>,
    pub(super) closed_ns: u64,
    /// The host does nothing before.
    pub(super) busy_until_ns: u64,
    /// The application reads nothing before.
    pub(super) reads_from_ns: u64,
    pub(super) unread: Vec<Slice>,
    pub(super) unread_bytes: usize,
}

impl Host {
    pub(super) fn new(core: Connection) -> Self {
        Self {
            core,
            written: 0,
            read: 0,
            ended: false,
            is_shut: false,
            shut_ns: 0,
            outcome: None,
            closed_ns: 0,
            busy_until_ns: 0,
            reads_from_ns: 0,
            unread: Vec::new(),
            unread_bytes: 0,
        }
    }
}

impl World {
    /// Let a host do what has come for it.
    pub(super) fn wake(&mut self, side: usize) {
        for index in 0..self.streams.len() {
            self.receive(side, index);
        }
        if self.sides[side].outcome.is_some() {
            return;
        }
        self.read(side);
        self.pump(side);
        while let Some(event) = self.sides[side].core.poll_event() {
            self.tell(|| format!("host {side}: {event:?}"));
            match event {
                Event::StreamGone { slot } => self.close(side, slot, true),
                Event::Opened
                | Event::Addresses(_)
                | Event::StreamJoined { .. }
                | Event::StreamRefused { .. }
                | Event::StreamStalled { .. }
                | Event::StreamRecovered { .. } => {}
                Event::Closed(outcome) => {
                    self.sides[side].outcome = Some(outcome);
                    self.sides[side].closed_ns = self.now_ns;
                    if let Some(farewell) = self.sides[side].core.farewell().filter(|_| side == 1) {
                        let id = self.client.connection_id();
                        self.admission.remember(self.now_ns, &id, farewell);
                    }
                    for slot in 0..64 {
                        self.close(side, slot, false);
                    }
                }
            }
        }
    }

    fn receive(&mut self, side: usize, index: usize) {
        let now_ns = self.now_ns;
        let path = self.streams[index].path;
        if side == 0 && self.streams[index].joining.is_some() {
            // It waits behind the server's answer.
            self.streams[index].pipes[1].arrive(now_ns);
            return;
        }
        let Some(slot) = self.streams[index].slots[side] else {
            self.refuse(side, index);
            return;
        };
        let pipe = &mut self.streams[index].pipes[1 - side];
        if pipe.arrive(now_ns) {
            self.pauses.note_used(path, now_ns);
        }
        while let Some(piece) = self.streams[index].pipes[1 - side].read() {
            let of = &mut self.sides[side];
            if of.outcome.is_some() {
                continue;
            }
            let before = of.unread.len();
            let result = of.core.on_slice(slot, &piece, &mut of.unread);
            let came: usize = of.unread[before..].iter().map(|slice| slice.len()).sum();
            of.unread_bytes += came;
            if let Err(error) = result {
                self.is_wrong = true;
                self.tell(|| format!("host {side} refuses what stream {slot} brings: {error}"));
            }
            if came > 0 {
                let pause_ns = self.pauses.note_delivered(1 - side, now_ns);
                if pause_ns > LONG_PAUSE_NS {
                    self.tell(|| format!("host {side} waited {:.3} s", pause_ns as f64 * 1e-9));
                }
            }
        }
        let is_reset = self.streams[index].reset_at_ns[side].is_some_and(|at_ns| at_ns <= now_ns);
        if is_reset || self.streams[index].pipes[1 - side].has_ended(now_ns) {
            let proper = self.sides[side].core.on_stream_end(slot).unwrap_or(false);
            self.streams[index].slots[side] = None;
            self.let_go(side, index, !proper);
        }
    }

    /// Let a side's application read, write and close, and its streams send.
    fn read(&mut self, side: usize) {
        let of = &mut self.sides[side];
        if of.reads_from_ns > self.now_ns {
            return;
        }
        for slice in of.unread.drain(..) {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                let from = (of.read % PERIOD as u64) as usize;
                let (piece, later) = rest.split_at(rest.len().min(WRITE_BYTES));
                self.is_wrong |= piece != &self.pattern[from..from + piece.len()];
                of.read += piece.len() as u64;
                rest = later;
            }
            of.core.on_consumed(slice.len());
        }
        of.unread_bytes = 0;
        if of.read == self.transfer.bytes[1 - side] {
            self.pauses.note_through(1 - side, self.now_ns);
        }
    }

    fn write(&mut self, side: usize) {
        let of = &mut self.sides[side];
        let total = self.transfer.bytes[side];
        while of.written < total && of.core.queued_bytes() < WRITE_BYTES {
            let from = (of.written % PERIOD as u64) as usize;
            let length = (total - of.written).min(WRITE_BYTES as u64) as usize;
            if of.core.write(&self.pattern[from..from + length]).is_err() {
                self.is_wrong = true;
                return;
            }
            of.written += length as u64;
        }
        if of.written == total && !of.ended {
            of.ended = true;
            of.core.end();
        }
        let has_all = of.unread_bytes == 0 && of.core.is_ended();
        if of.ended && has_all && !of.is_shut {
            of.is_shut = true;
            of.shut_ns = self.now_ns;
            of.core.shut();
        }
    }

    pub(super) fn pump(&mut self, side: usize) {
        if self.sides[side].outcome.is_some() {
            return;
        }
        let streams_to_query = self.sides[side].core.streams_to_query(self.now_ns);
        for stream in &self.streams {
            if let Some(slot) = stream.slots[side] {
                if streams_to_query.contains(slot) {
                    let unanswered = match stream.pipes[side].retry_ns {
                        0 => Unanswered::Nothing,
                        _ => Unanswered::SentAgain,
                    };
                    let core = &mut self.sides[side].core;
                    core.on_unanswered(self.now_ns, slot, unanswered);
                }
                let _ = self.sides[side].core.on_writable(slot);
                let unsent = stream.pipes[side].unsent_bytes();
                let _ = self.sides[side].core.on_unsent(self.now_ns, slot, unsent);
            }
        }
        loop {
            self.write(side);
            let Some((slot, size)) = self.sides[side].core.poll_frame(self.now_ns) else {
                break;
            };
            let position = self
                .streams
                .iter()
                .position(|stream| stream.slots[side] == Some(slot));
            let Some(index) = position else {
                let _ = self.sides[side].core.on_stream_end(slot);
                continue;
            };
            // As the library, which asks TCP every 10 ms what a stream carries.
            let path = &self.paths[self.streams[index].path];
            let (rate_bps, relay_bytes) = (path.visible_rate_bps(), path.relay_bytes);
            let pipe = &mut self.streams[index].pipes[side];
            let mut bytes = Vec::with_capacity(size);
            self.sides[side]
                .core
                .rest(slot, |piece| bytes.extend_from_slice(piece));
            bytes.truncate(pipe.room(rate_bps));
            let taken = bytes.len();
            if taken > 0 {
                pipe.push(bytes);
                pipe.fill_relay(relay_bytes);
            }
            match self.sides[side].core.on_sent(slot, taken) {
                Ok(true) => pipe.is_shut = true,
                Ok(false) => {}
                Err(_) => self.is_wrong = true,
            }
        }
    }
}

pub(super) fn connection(transfer: &Transfer, rate_bps: f64, seed: u64) -> Connection {
    let config = Config {
        stream_count: 1,
        frame_payload_bytes: PAYLOAD_BYTES,
        send_queue_bytes: usize::MAX / 2,
        reorder_buffer_bytes: transfer.window_bytes,
    };
    let made = scheduler::by_name(transfer.scheduler, seed).and_then(|scheduler| {
        let mut core = Connection::new(config, scheduler)?;
        core.set_weights(&[rate_bps])?;
        Ok(core)
    });
    match made {
        Ok(core) => core,
        Err(error) => unreachable!("{error}"),
    }
}

fn byte(at: usize) -> u8 {
    (at.wrapping_mul(0x9e37_79b1) >> 13) as u8
}

/// What the applications write, over and over.
pub(super) fn pattern() -> Vec<u8> {
    (0..PERIOD + WRITE_BYTES)
        .map(|at| byte(at % PERIOD))
        .collect()
}
