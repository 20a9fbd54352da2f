//! Client and server, the paths between them, and a clock that jumps to what happens next.

mod dialling;
mod host;
mod network;

use mstcp_proto::handshake::{Admission, ClientHandshake};
use mstcp_proto::Outcome;
use mstcp_proto::ReconnectBackoff;
use mstcp_proto::SplitMix64;

use crate::path::Path;
use crate::report::Pauses;

use dialling::{id, DialState};
use host::{connection, pattern, Host, PAYLOAD_BYTES};
use network::Stream;

const MS: u64 = 1_000_000;

/// What is transferred.
#[derive(Debug, Clone)]
pub struct Transfer {
    /// Bytes from client and server.
    pub bytes: [u64; 2],
    /// Receive window of each side.
    pub window_bytes: usize,
    /// By name; see [`mstcp_proto::scheduler`].
    pub scheduler: &'static str,
}

/// One transfer in both directions over paths that break.
pub struct World {
    /// Virtual time, in nanoseconds.
    pub now_ns: u64,
    /// By index; strike them by [`World::strike`].
    pub paths: Vec<Path>,
    transfer: Transfer,
    streams: Vec<Stream>,
    sides: [Host; 2],
    dials: Vec<(DialState, ReconnectBackoff)>,
    /// By path: hellos that a relay keeps, whose client has given up.
    kept_hellos: Vec<u32>,
    client: ClientHandshake,
    admission: Admission,
    rng: SplitMix64,
    pattern: Vec<u8>,
    /// How often the clock has moved.
    pub steps: u64,
    /// What is measured.
    pub pauses: Pauses,
    /// A side did what it may not, or a byte differs.
    pub is_wrong: bool,
    /// Whether no host was held up at the last look.
    did_run: bool,
    /// Whether to say on standard error what happens.
    pub is_traced: bool,
}

impl World {
    /// A connection over these paths that has just been opened.
    pub fn new(paths: Vec<Path>, transfer: Transfer, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed ^ 0x5eed);
        let rates: Vec<f64> = paths.iter().map(|path| path.rate_bps).collect();
        let mut client = ClientHandshake::new(
            b"secret",
            id(&mut rng),
            rates.len() as u32,
            PAYLOAD_BYTES as u32,
        );
        let mut admission = Admission::new(b"secret", 1);
        let side = |seed| Host::new(connection(&transfer, rates[0], seed));
        let mut sides = [side(seed), side(seed + 1)];
        sides[0].core.reopen_streams();
        let dials = rates
            .iter()
            .map(|_| (DialState::Up, ReconnectBackoff::new(1)));
        let mut world = Self {
            now_ns: 1,
            steps: 0,
            pauses: Pauses::new(paths.len()),
            dials: dials.collect(),
            kept_hellos: vec![0; paths.len()],
            streams: Vec::new(),
            sides,
            rng: SplitMix64::new(seed ^ 0xfa17),
            pattern: pattern(),
            is_wrong: false,
            did_run: true,
            is_traced: false,
            paths,
            transfer,
            client: ClientHandshake::new(b"", [0; 16], 1, 1),
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

    /// Whether both applications have everything and both sides are over.
    pub fn is_over(&self) -> bool {
        self.sides.iter().all(|side| side.outcome.is_some())
    }

    /// Whether every byte arrived, once, in order, and the connection ended properly.
    pub fn is_equal(&self) -> bool {
        let complete = (0..2).all(|side| self.sides[side].read == self.transfer.bytes[1 - side]);
        let delivered = |side: &Host| side.outcome == Some(Outcome::Delivered);
        !self.is_wrong && complete && self.sides.iter().all(delivered)
    }

    /// Whether both directions are through.
    pub fn is_through(&self) -> bool {
        (0..2).all(|side| self.sides[side].read == self.transfer.bytes[1 - side])
    }

    /// The longest time from an application's close to the end, in nanoseconds.
    pub fn longest_close_ns(&self) -> u64 {
        let took = |side: &Host| side.closed_ns.saturating_sub(side.shut_ns);
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

    fn tell(&self, what: impl FnOnce() -> String) {
        if self.is_traced {
            eprintln!("{:9.3} {}", self.now_ns as f64 * 1e-9, what());
        }
    }

    /// Have a host do nothing for a while, as one whose event loop is blocked.
    pub fn block(&mut self, side: usize, until_ns: u64) {
        self.sides[side].busy_until_ns = until_ns;
        self.tell(|| format!("host {side} is held up until {:.3}", until_ns as f64 * 1e-9));
        self.note_paths();
    }

    /// Have an application read nothing for a while.
    pub fn read_late(&mut self, side: usize, until_ns: u64) {
        self.sides[side].reads_from_ns = until_ns;
        self.tell(|| {
            format!(
                "host {side} does not read until {:.3}",
                until_ns as f64 * 1e-9
            )
        });
        self.note_paths();
    }

    /// Tell the measurement which directions work.
    fn note_paths(&mut self) {
        let carries = |direction: usize| self.paths.iter().any(|path| path.carries(direction));
        let runs = self
            .sides
            .iter()
            .all(|side| side.busy_until_ns <= self.now_ns);
        for direction in 0..2 {
            let reads = self.sides[1 - direction].reads_from_ns <= self.now_ns;
            let fair = carries(0) && carries(1) && runs && reads;
            self.pauses.note_fair(direction, fair, self.now_ns);
        }
        if !(runs && self.did_run) {
            self.pauses.put_off(self.now_ns);
        }
        self.did_run = runs;
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
                DialState::Up => u64::MAX,
                DialState::Waiting { at_ns, .. } => *at_ns,
                DialState::Connecting {
                    done_at_ns,
                    until_ns,
                    ..
                } => (*done_at_ns).min(*until_ns),
            });
        }
        next_ns
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
}
