//! Client and server, the paths between them, and a clock that jumps to what happens next.

use mstcp_core::handshake::{Admission, Client, CONFIRM_BYTES};
use mstcp_core::redial::Redial;
use mstcp_core::rng::SplitMix64;
use mstcp_core::{scheduler, Config, Connection, Event, Outcome, Slice};

use crate::path::{Fault, Health, Path};
use crate::pipe::Pipe;
use crate::report::Pauses;

const MS: u64 = 1_000_000;
/// TCP tries again after this, then after twice the time, and so on.
const RETRY_NS: u64 = 200 * MS;
const LONGEST_RETRY_NS: u64 = 30_000 * MS;
/// The application's bytes repeat after so many: a prime, so that no two frames are alike.
const PERIOD: usize = 65_521;
/// What an application writes at once, and the most that it lets wait.
const WRITE_BYTES: usize = 1 << 17;
const PAYLOAD_BYTES: usize = 1428;

/// What is transferred.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Bytes from client and server.
    pub bytes: [u64; 2],
    /// Of each side's window.
    pub window_bytes: usize,
    /// By name; see [`mstcp_core::scheduler`].
    pub scheduler: &'static str,
}

/// A stream: its path, its two pipes, and the slot that each side has it in.
#[derive(Debug)]
struct Stream {
    path: usize,
    pipes: [Pipe; 2],
    /// None: this side has closed it.
    slots: [Option<usize>; 2],
    /// When TCP will tell a side that it was reset.
    reset_at_ns: [Option<u64>; 2],
}

/// How the client stands with a path.
#[derive(Debug)]
enum Dial {
    /// It has a stream.
    Up,
    /// The next attempt begins then.
    Waiting { at_ns: u64, timeout_ns: u64 },
    /// The hello was said; the answer is there then, unless the path fails, or it is given up.
    Connecting {
        started_ns: u64,
        done_at_ns: u64,
        until_ns: u64,
    },
}

struct Side {
    core: Connection,
    written: u64,
    read: u64,
    ended: bool,
    is_shut: bool,
    shut_ns: u64,
    outcome: Option<Outcome>,
    closed_ns: u64,
    /// The host does nothing before.
    busy_until_ns: u64,
    /// The application reads nothing before.
    reads_from_ns: u64,
    unread: Vec<Slice>,
    unread_bytes: usize,
}

/// One transfer in both directions over paths that break.
pub struct World {
    /// Virtual time, in nanoseconds.
    pub now_ns: u64,
    /// By index; strike them by [`World::strike`].
    pub paths: Vec<Path>,
    transfer: Transfer,
    streams: Vec<Stream>,
    sides: [Side; 2],
    dials: Vec<(Dial, Redial)>,
    client: Client,
    admission: Admission,
    rng: SplitMix64,
    pattern: Vec<u8>,
    /// How often the clock has moved.
    pub steps: u64,
    /// What is measured.
    pub pauses: Pauses,
    /// A side did what it may not, or a byte differs.
    pub is_wrong: bool,
}

impl World {
    /// A connection over these paths that has just been opened.
    pub fn new(paths: Vec<Path>, transfer: Transfer, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed ^ 0x5eed);
        let rates: Vec<f64> = paths.iter().map(|path| path.rate_bps).collect();
        let mut client = Client::new(
            b"secret",
            id(&mut rng),
            rates.len() as u32,
            PAYLOAD_BYTES as u32,
        );
        let mut admission = Admission::new(b"secret", 1);
        let side = |seed| Side::new(connection(&transfer, rates[0], seed));
        let sides = [side(seed), side(seed + 1)];
        let dials = rates.iter().map(|_| (Dial::Up, Redial::new(1)));
        let mut world = Self {
            now_ns: 1,
            steps: 0,
            pauses: Pauses::new(paths.len()),
            dials: dials.collect(),
            streams: Vec::new(),
            sides,
            rng: SplitMix64::new(seed ^ 0xfa17),
            pattern: (0..PERIOD + WRITE_BYTES)
                .map(|at| byte(at % PERIOD))
                .collect(),
            is_wrong: false,
            paths,
            transfer,
            client: Client::new(b"", [0; 16], 1, 1),
            admission: Admission::new(b"", 1),
        };
        std::mem::swap(&mut world.client, &mut client);
        std::mem::swap(&mut world.admission, &mut admission);
        for path in 0..world.paths.len() {
            world.open(path);
        }
        for side in 0..2 {
            world.pump(side);
        }
        world
    }

    /// Say the hellos of a new stream on a path that works, and add it on both sides.
    fn open(&mut self, path: usize) {
        let nonces = [(); 2].map(|()| nonce(&mut self.rng));
        let Ok(greeting) = self.client.greet(nonces[0], 0, &[]) else {
            return;
        };
        let alive = self.sides[1].core.alive().iter().count();
        let Ok(admitted) = self
            .admission
            .admit(&greeting.bytes, nonces[1], |_| Some(alive))
        else {
            self.is_wrong = true;
            return;
        };
        let Ok(confirm) = self.client.on_answer(&greeting, &admitted.answer) else {
            self.is_wrong = true;
            return;
        };
        let id = greeting.hello.stream_id;
        let slots = [0, 1].map(|side: usize| match id {
            0 => Some(0),
            _ => {
                let rate_bps = self.paths[path].rate_bps;
                self.sides[side].core.add_stream(id, rate_bps).ok()
            }
        });
        let (Some(client_slot), Some(server_slot)) = (slots[0], slots[1]) else {
            return; // one of them is over, or full
        };
        let delay_ns = self.paths[path].delay_ns;
        for (side, slot) in [client_slot, server_slot].into_iter().enumerate() {
            let _ = self.sides[side].core.set_delay(slot, delay_ns);
        }
        let _ = self.sides[1]
            .core
            .expect_confirm(server_slot, admitted.confirm);
        let mut stream = Stream {
            path,
            pipes: Default::default(),
            slots: [Some(client_slot), Some(server_slot)],
            reset_at_ns: [None; 2],
        };
        debug_assert_eq!(confirm.len(), CONFIRM_BYTES);
        stream.pipes[0].push(confirm);
        self.streams.push(stream);
        self.dials[path].0 = Dial::Up;
    }

    /// Whether both applications have everything and both sides are over.
    pub fn is_over(&self) -> bool {
        self.sides.iter().all(|side| side.outcome.is_some())
    }

    /// Whether every byte arrived, once, in order, and the connection ended properly.
    pub fn is_equal(&self) -> bool {
        let complete = (0..2).all(|side| self.sides[side].read == self.transfer.bytes[1 - side]);
        let delivered = |side: &Side| side.outcome == Some(Outcome::Delivered);
        !self.is_wrong && complete && self.sides.iter().all(delivered)
    }

    /// Whether both directions are through.
    pub fn is_through(&self) -> bool {
        (0..2).all(|side| self.sides[side].read == self.transfer.bytes[1 - side])
    }

    /// The longest time from an application's close to the end, in nanoseconds.
    pub fn longest_close_ns(&self) -> u64 {
        let took = |side: &Side| side.closed_ns.saturating_sub(side.shut_ns);
        self.sides.iter().map(took).max().unwrap_or(0)
    }

    /// Bytes that were sent more than once, both directions.
    pub fn resent_bytes(&self) -> u64 {
        let streams = self
            .sides
            .iter()
            .flat_map(|side| side.core.counters().streams);
        streams.map(|stream| stream.resent_bytes).sum()
    }

    /// Have a host do nothing for a while, as one whose event loop is blocked.
    pub fn block(&mut self, side: usize, until_ns: u64) {
        self.sides[side].busy_until_ns = until_ns;
        self.note_paths();
    }

    /// Have an application read nothing for a while.
    pub fn read_late(&mut self, side: usize, until_ns: u64) {
        self.sides[side].reads_from_ns = until_ns;
        self.note_paths();
    }

    /// Do something to a path.
    pub fn strike(&mut self, path: usize, fault: Fault) {
        let now_ns = self.now_ns;
        match fault {
            Fault::Reset => self.reset_streams(path),
            Fault::Blackhole => self.paths[path].health = [Health::Dropped; 2],
            Fault::Swallow => self.paths[path].health = [Health::Swallowed; 2],
            Fault::StopOneWay(direction) => self.paths[path].health[direction] = Health::Held,
            Fault::Slow => self.paths[path].is_slow = true,
            Fault::HalfClose(direction) => {
                for stream in self.streams.iter_mut().filter(|stream| stream.path == path) {
                    let pipe = &mut stream.pipes[direction];
                    pipe.is_torn = true;
                    pipe.end_at_ns
                        .get_or_insert(now_ns + self.paths[path].delay_ns);
                }
            }
            Fault::Repair => self.repair(path),
        }
        self.note_paths();
    }

    fn repair(&mut self, path: usize) {
        let was = self.paths[path].health;
        self.paths[path].health = [Health::Works; 2];
        self.paths[path].is_slow = false;
        let mut torn = false;
        for stream in self.streams.iter_mut().filter(|stream| stream.path == path) {
            for (direction, pipe) in stream.pipes.iter_mut().enumerate() {
                torn |= pipe.is_torn;
                if was[direction] == Health::Held {
                    pipe.free_at_ns = self.now_ns;
                }
            }
        }
        if torn && was.contains(&Health::Swallowed) {
            self.reset_streams(path);
        }
        if was.iter().any(|health| *health != Health::Works) {
            self.pauses.note_repaired(path, self.now_ns);
        }
    }

    fn reset_streams(&mut self, path: usize) {
        let at_ns = self.now_ns + self.paths[path].delay_ns;
        for stream in self.streams.iter_mut().filter(|stream| stream.path == path) {
            stream.reset_at_ns = stream.reset_at_ns.map(|old| Some(old.unwrap_or(at_ns)));
        }
    }

    /// Tell the measurement which directions work.
    fn note_paths(&mut self) {
        let works = |direction: usize| self.paths.iter().any(|path| path.works(direction));
        let runs = self
            .sides
            .iter()
            .all(|side| side.busy_until_ns <= self.now_ns);
        for direction in 0..2 {
            let reads = self.sides[1 - direction].reads_from_ns <= self.now_ns;
            let fair = works(0) && works(1) && runs && reads;
            self.pauses.note_fair(direction, fair, self.now_ns);
        }
        if !runs {
            self.pauses.put_off(self.now_ns);
        }
        for (path, of) in self.paths.iter().enumerate() {
            if !(of.works(0) && of.works(1)) {
                self.pauses.note_broken(path);
            }
        }
    }

    /// Let time pass until then, or until both sides are over.
    pub fn run_until(&mut self, until_ns: u64) {
        while !self.is_over() && self.now_ns < until_ns {
            let changes = self
                .sides
                .iter()
                .flat_map(|side| [side.busy_until_ns, side.reads_from_ns]);
            let change_ns = changes.filter(|at_ns| *at_ns > self.now_ns).min();
            let stop_ns = until_ns.min(change_ns.unwrap_or(until_ns));
            let next_ns = self.next_ns().max(self.now_ns + 1);
            self.steps += 1;
            if next_ns >= stop_ns {
                self.now_ns = stop_ns;
                // A host or an application goes on.
                self.note_paths();
            } else {
                self.now_ns = next_ns;
                self.step();
            }
        }
        self.note_paths();
    }

    /// When something happens next.
    fn next_ns(&self) -> u64 {
        let mut next_ns = u64::MAX;
        for stream in &self.streams {
            for (direction, pipe) in stream.pipes.iter().enumerate() {
                let moves = pipe.wants_to_send() || pipe.has_held();
                if moves && self.may_move(stream, direction) {
                    next_ns = next_ns.min(pipe.free_at_ns);
                }
                let reader = &self.sides[1 - direction];
                let open = stream.slots[1 - direction].is_some();
                let ends = pipe.ends_at_ns().filter(|_| open);
                for at_ns in pipe.arrives_at_ns().into_iter().chain(ends) {
                    next_ns = next_ns.min(at_ns.max(reader.busy_until_ns));
                }
            }
            for (side, at_ns) in stream.reset_at_ns.iter().enumerate() {
                if let (Some(at_ns), Some(_)) = (at_ns, stream.slots[side]) {
                    next_ns = next_ns.min((*at_ns).max(self.sides[side].busy_until_ns));
                }
            }
        }
        for side in self.sides.iter().filter(|side| side.outcome.is_none()) {
            if let Some(at_ns) = side.core.timeout_ns() {
                next_ns = next_ns.min(at_ns.max(side.busy_until_ns));
            }
            if side.unread_bytes > 0 {
                next_ns = next_ns.min(side.reads_from_ns.max(side.busy_until_ns));
            }
        }
        for (dial, _) in &self.dials {
            next_ns = next_ns.min(match dial {
                Dial::Up => u64::MAX,
                Dial::Waiting { at_ns, .. } => *at_ns,
                Dial::Connecting {
                    done_at_ns,
                    until_ns,
                    ..
                } => (*done_at_ns).min(*until_ns),
            });
        }
        next_ns
    }

    /// Whether bytes leave a relay or a host in this direction of a stream: also those that are thrown away.
    fn may_move(&self, stream: &Stream, direction: usize) -> bool {
        let pipe = &stream.pipes[direction];
        match self.paths[stream.path].health[direction] {
            Health::Held => pipe.wants_to_send() && pipe.may_hold(),
            Health::Dropped => pipe.wants_to_send(),
            Health::Works | Health::Swallowed => true,
        }
    }

    fn step(&mut self) {
        for index in 0..self.streams.len() {
            for direction in 0..2 {
                self.send(index, direction);
            }
        }
        for side in 0..2 {
            if self.sides[side].busy_until_ns <= self.now_ns {
                self.wake(side);
            }
        }
        self.streams.retain(|stream| stream.slots != [None, None]);
        self.dial();
    }

    /// Move bytes out of a host, or out of a relay.
    fn send(&mut self, index: usize, direction: usize) {
        let now_ns = self.now_ns;
        let path = self.streams[index].path;
        let (health, delay_ns) = (
            self.paths[path].health[direction],
            self.paths[path].delay_ns,
        );
        let pipe = &mut self.streams[index].pipes[direction];
        if pipe.free_at_ns > now_ns || !(pipe.wants_to_send() || pipe.has_held()) {
            return;
        }
        match health {
            Health::Dropped => {
                pipe.retry_ns = (2 * pipe.retry_ns).clamp(RETRY_NS, LONGEST_RETRY_NS);
                pipe.free_at_ns = now_ns + pipe.retry_ns;
            }
            Health::Held if pipe.may_hold() => {
                if let Some(piece) = pipe.take_segment() {
                    pipe.free_at_ns = now_ns + self.paths[path].sending_ns(piece.len());
                    pipe.hold(piece);
                }
            }
            Health::Held => {}
            Health::Swallowed => {
                pipe.is_torn = true;
                while pipe.release().is_some() {}
                if let Some(piece) = pipe.take_segment() {
                    pipe.free_at_ns = now_ns + self.paths[path].sending_ns(piece.len());
                }
            }
            Health::Works if pipe.is_torn => {
                while pipe.release().or_else(|| pipe.take_segment()).is_some() {}
            }
            Health::Works => {
                pipe.retry_ns = 0;
                let piece = pipe.release().or_else(|| pipe.take_segment());
                match piece {
                    Some(piece) => {
                        pipe.free_at_ns = now_ns + self.paths[path].sending_ns(piece.len());
                        pipe.fly(pipe.free_at_ns + delay_ns, piece);
                    }
                    None if pipe.is_shut => pipe.end_at_ns = Some(now_ns + delay_ns),
                    None => {}
                }
            }
        }
    }

    /// Let a host do what has come for it.
    fn wake(&mut self, side: usize) {
        for index in 0..self.streams.len() {
            self.receive(side, index);
        }
        if self.sides[side].outcome.is_some() {
            return;
        }
        self.read(side);
        self.pump(side);
        while let Some(event) = self.sides[side].core.poll_event() {
            match event {
                Event::StreamGone { slot } => self.close(side, slot, true),
                Event::StreamStalled { .. } | Event::StreamRecovered { .. } => {}
                Event::Closed(outcome) => {
                    self.sides[side].outcome = Some(outcome);
                    self.sides[side].closed_ns = self.now_ns;
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
            if of.core.on_slice(slot, &piece, &mut of.unread).is_err() {
                self.is_wrong = true;
            }
            let came: usize = of.unread[before..].iter().map(|slice| slice.len()).sum();
            of.unread_bytes += came;
            if came > 0 {
                self.pauses.note_delivered(1 - side, now_ns);
            }
        }
        let is_reset = self.streams[index].reset_at_ns[side].is_some_and(|at_ns| at_ns <= now_ns);
        if is_reset || self.streams[index].pipes[1 - side].has_ended(now_ns) {
            let proper = self.sides[side].core.on_stream_end(slot).unwrap_or(false);
            self.streams[index].slots[side] = None;
            self.let_go(side, index, !proper);
        }
    }

    /// Answer what comes for a socket that is closed with a reset.
    fn refuse(&mut self, side: usize, index: usize) {
        let stream = &mut self.streams[index];
        let path = &self.paths[stream.path];
        let came = stream.pipes[1 - side].arrive(self.now_ns);
        while stream.pipes[1 - side].read().is_some() {}
        if came && path.works(side) {
            stream.reset_at_ns[1 - side].get_or_insert(self.now_ns + path.delay_ns);
        }
    }

    /// Close a side's socket of the stream in this slot.
    fn close(&mut self, side: usize, slot: usize, is_reset: bool) {
        let found = self
            .streams
            .iter()
            .position(|stream| stream.slots[side] == Some(slot));
        if let Some(index) = found {
            self.streams[index].slots[side] = None;
            self.let_go(side, index, is_reset);
        }
    }

    /// Have the other side learn that this one closed a socket, as far as the path lets it; a client opens it again.
    fn let_go(&mut self, side: usize, index: usize, is_reset: bool) {
        let path = self.streams[index].path;
        let at_ns = self.now_ns + self.paths[path].delay_ns;
        let stream = &mut self.streams[index];
        if is_reset && self.paths[path].works(side) {
            stream.reset_at_ns[1 - side].get_or_insert(at_ns);
        } else if !is_reset {
            stream.pipes[side].is_shut = true;
        }
        if side == 0 && is_reset && self.sides[0].outcome.is_none() {
            self.redial(path, None);
        }
    }

    /// Have the client open a stream on a path again.
    fn redial(&mut self, path: usize, failed_from_ns: Option<u64>) {
        let rtt_ns = 2 * self.paths[path].delay_ns;
        let (dial, redial) = &mut self.dials[path];
        if failed_from_ns.is_none() {
            *redial = Redial::new((2 * rtt_ns).max(1));
        }
        let attempt = redial.attempt(failed_from_ns.map_or(0, |from_ns| self.now_ns - from_ns));
        *dial = Dial::Waiting {
            at_ns: self.now_ns + attempt.delay_ns,
            timeout_ns: attempt.timeout_ns,
        };
    }

    fn dial(&mut self) {
        let now_ns = self.now_ns;
        for path in 0..self.paths.len() {
            if self.sides[0].outcome.is_some() {
                self.dials[path].0 = Dial::Up;
            }
            let works = self.paths[path].works(0) && self.paths[path].works(1);
            let rtt_ns = 2 * self.paths[path].delay_ns;
            match self.dials[path].0 {
                Dial::Waiting { at_ns, timeout_ns } if at_ns <= now_ns => {
                    self.dials[path].0 = Dial::Connecting {
                        started_ns: now_ns,
                        // A SYN that was dropped comes again after a second.
                        done_at_ns: now_ns + if works { 2 * rtt_ns } else { 1000 * MS },
                        until_ns: now_ns + timeout_ns,
                    };
                }
                Dial::Connecting {
                    until_ns,
                    started_ns,
                    ..
                } if until_ns <= now_ns => self.redial(path, Some(started_ns)),
                Dial::Connecting {
                    done_at_ns,
                    started_ns,
                    until_ns,
                } if done_at_ns <= now_ns => {
                    if works && self.sides[1].outcome.is_none() {
                        self.open(path);
                        self.pump(0);
                        self.pump(1);
                    } else {
                        self.dials[path].0 = Dial::Connecting {
                            started_ns,
                            done_at_ns: u64::MAX,
                            until_ns,
                        };
                    }
                }
                _ => {}
            }
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

    fn pump(&mut self, side: usize) {
        if self.sides[side].outcome.is_some() {
            return;
        }
        for stream in &self.streams {
            if let Some(slot) = stream.slots[side] {
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
            let found = self
                .streams
                .iter()
                .position(|stream| stream.slots[side] == Some(slot));
            let Some(index) = found else {
                let _ = self.sides[side].core.on_stream_end(slot);
                continue;
            };
            let rate_bps = self.paths[self.streams[index].path].rate_bps;
            let pipe = &mut self.streams[index].pipes[side];
            let mut bytes = Vec::with_capacity(size);
            self.sides[side]
                .core
                .rest(slot, |piece| bytes.extend_from_slice(piece));
            bytes.truncate(pipe.room(rate_bps));
            let taken = bytes.len();
            if taken > 0 {
                pipe.push(bytes);
            }
            match self.sides[side].core.on_sent(slot, taken) {
                Ok(true) => pipe.is_shut = true,
                Ok(false) => {}
                Err(_) => self.is_wrong = true,
            }
        }
    }
}

impl Side {
    fn new(core: Connection) -> Self {
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

fn connection(transfer: &Transfer, rate_bps: f64, seed: u64) -> Connection {
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

fn nonce(rng: &mut SplitMix64) -> [u8; 32] {
    std::array::from_fn(|_| rng.next_u64() as u8)
}

fn id(rng: &mut SplitMix64) -> [u8; 16] {
    std::array::from_fn(|_| rng.next_u64() as u8)
}
