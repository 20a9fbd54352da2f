//! What becomes of bytes between the hosts, and of TCP's ends and resets.

use super::dialling::PendingJoin;
use super::{World, MS};
use crate::path::{Fault, Health};
use crate::pipe::Pipe;

/// TCP tries again after this, then after twice the time, and so on.
const RETRY_NS: u64 = 200 * MS;
const MAX_RETRY_NS: u64 = 30_000 * MS;

/// A stream: its path, its two pipes, and the slot that each side has it in.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) path: usize,
    pub(super) pipes: [Pipe; 2],
    /// None: this side has closed it.
    pub(super) slots: [Option<usize>; 2],
    /// When TCP will tell a side that it was reset.
    pub(super) reset_at_ns: [Option<u64>; 2],
    /// The server says in it that the connection has ended, and throws away what comes.
    pub(super) is_farewell: bool,
    /// The client has not read the server's answer.
    pub(super) joining: Option<PendingJoin>,
}

impl World {
    /// Do something to a path.
    pub fn strike(&mut self, path: usize, fault: Fault) {
        let now_ns = self.now_ns;
        self.tell(|| format!("path {path}: {fault:?}"));
        self.paths[path].is_cut |=
            matches!(fault, Fault::Reset | Fault::Swallow | Fault::HalfClose(_));
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
        if was.contains(&Health::Held) {
            self.release_hellos(path);
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

    /// Whether bytes leave a relay or a host in this direction of a stream: also those that are thrown away.
    pub(super) fn may_move(&self, stream: &Stream, direction: usize) -> bool {
        let pipe = &stream.pipes[direction];
        match self.paths[stream.path].health[direction] {
            Health::Held => pipe.wants_to_send() && pipe.may_hold(),
            Health::Dropped => pipe.wants_to_send(),
            Health::Works | Health::Swallowed => true,
        }
    }

    /// Move bytes out of a host, or out of a relay.
    pub(super) fn send(&mut self, index: usize, direction: usize) {
        let now_ns = self.now_ns;
        let path = self.streams[index].path;
        let (health, delay_ns) = (
            self.paths[path].health[direction],
            self.paths[path].delay_ns,
        );
        let relay_bytes = self.paths[path].relay_bytes;
        let pipe = &mut self.streams[index].pipes[direction];
        pipe.fill_relay(relay_bytes);
        if pipe.free_at_ns > now_ns || !(pipe.wants_to_send() || pipe.has_held()) {
            return;
        }
        match health {
            Health::Dropped => {
                pipe.retry_ns = (2 * pipe.retry_ns).clamp(RETRY_NS, MAX_RETRY_NS);
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

    /// Answer what comes for a socket that is closed with a reset.
    pub(super) fn refuse(&mut self, side: usize, index: usize) {
        let stream = &mut self.streams[index];
        let path = &self.paths[stream.path];
        let came = stream.pipes[1 - side].arrive(self.now_ns);
        while stream.pipes[1 - side].read().is_some() {}
        if came && path.works(side) && !stream.is_farewell {
            stream.reset_at_ns[1 - side].get_or_insert(self.now_ns + path.delay_ns);
        }
    }

    /// Close a side's socket of the stream in this slot.
    pub(super) fn close(&mut self, side: usize, slot: usize, is_reset: bool) {
        let position = self
            .streams
            .iter()
            .position(|stream| stream.slots[side] == Some(slot));
        if let Some(index) = position {
            self.streams[index].slots[side] = None;
            self.let_go(side, index, is_reset);
        }
    }

    /// Have the other side learn that this one closed a socket, as far as the path lets it; a client opens it again.
    pub(super) fn let_go(&mut self, side: usize, index: usize, is_reset: bool) {
        let path = self.streams[index].path;
        let at_ns = self.now_ns + self.paths[path].delay_ns;
        self.tell(|| {
            format!("host {side} closes its socket on path {path}, by a reset: {is_reset}")
        });
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
}
