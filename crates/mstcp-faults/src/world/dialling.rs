//! The client's streams: hellos on paths that work, and again where they were lost.

use mstcp_proto::code;
use mstcp_proto::handshake::{ClientHello, NotAdmitted, CONFIRM_BYTES};
use mstcp_proto::hello::{self, PREFIX_BYTES};
use mstcp_proto::ReconnectBackoff;
use mstcp_proto::SplitMix64;

use super::network::Stream;
use super::{World, MS};
use crate::path::Health;

/// How the client stands with a path.
#[derive(Debug)]
pub(super) enum DialState {
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

/// A stream that the server has admitted and of which the client does not know yet.
#[derive(Debug)]
pub(super) struct PendingJoin {
    greeting: ClientHello,
    answer: Vec<u8>,
}

/// Why the server has no stream of a hello.
#[derive(Debug, PartialEq, Eq)]
enum Rejection {
    /// It gave the connection up, or a relay has just brought more hellos than it takes streams: the client tries again.
    Refused,
    /// None is wanted any more, or something is wrong.
    Over,
}

impl World {
    /// Say the hellos of a new stream on a path that works, and add it on both sides.
    pub(super) fn open(&mut self, path: usize) {
        match self.admit(path) {
            Ok(index) => self.confirm(index),
            Err(Rejection::Refused) => self.redial(path, Some(self.now_ns)),
            Err(Rejection::Over) => {}
        }
    }

    fn greet(&mut self) -> Option<ClientHello> {
        let nonce = nonce(&mut self.rng);
        self.client.greet(nonce, 0, &[]).ok()
    }

    /// Have a new hello arrive at the server, which adds the stream; returns its place.
    fn admit(&mut self, path: usize) -> Result<usize, Rejection> {
        let greeting = self.greet().ok_or(Rejection::Over)?;
        let server = &self.sides[1];
        let alive = (server.outcome.is_none()).then(|| server.core.alive().iter().count());
        let nonce = nonce(&mut self.rng);
        let admission = &mut self.admission;
        let admitted = match admission.admit(self.now_ns, &greeting.bytes, nonce, |_| alive) {
            Ok(admitted) => admitted,
            Err(NotAdmitted::Ended { answer }) => {
                self.bid_farewell(path, &greeting, &answer);
                return Err(Rejection::Over);
            }
            Err(NotAdmitted::Refused { code, .. })
                if alive.is_none() || code == code::LIMIT_EXCEEDED =>
            {
                return Err(Rejection::Refused);
            }
            Err(_) => {
                self.is_wrong = true;
                return Err(Rejection::Over);
            }
        };
        let id = greeting.hello.stream_id;
        let slot = self.add_stream(1, path, id).ok_or(Rejection::Over)?;
        let core = &mut self.sides[1].core;
        let _ = core.expect_confirm(slot, admitted.confirm);
        self.streams.push(Stream {
            path,
            pipes: Default::default(),
            slots: [None, Some(slot)],
            reset_at_ns: [None; 2],
            is_farewell: false,
            joining: Some(PendingJoin {
                greeting,
                answer: admitted.answer,
            }),
        });
        Ok(self.streams.len() - 1)
    }

    /// Have the server's answer arrive at the client, which adds the stream too.
    fn confirm(&mut self, index: usize) {
        let path = self.streams[index].path;
        let Some(joining) = self.streams[index].joining.take() else {
            return;
        };
        let Ok(confirm) = self.client.on_answer(&joining.greeting, &joining.answer) else {
            self.is_wrong = true;
            return;
        };
        debug_assert_eq!(confirm.len(), CONFIRM_BYTES);
        let id = joining.greeting.hello.stream_id;
        let Some(slot) = self.add_stream(0, path, id) else {
            self.let_go(0, index, true);
            return;
        };
        self.tell(|| format!("stream {id} opens on path {path}, slot {slot} of the client"));
        self.streams[index].slots[0] = Some(slot);
        self.streams[index].pipes[0].push(confirm);
        self.dials[path].0 = DialState::Up;
        self.paths[path].is_cut = false;
    }

    /// Add a stream to a side's core; none if that is over, or full.
    fn add_stream(&mut self, side: usize, path: usize, id: u32) -> Option<usize> {
        let rate_bps = self.paths[path].visible_rate_bps();
        let delay_ns = self.paths[path].visible_delay_ns();
        let core = &mut self.sides[side].core;
        let slot = match id {
            0 => 0,
            _ => core.add_stream(id, rate_bps).ok()?,
        };
        let _ = core.set_delay(slot, delay_ns);
        Some(slot)
    }

    /// The stream on a path of which the server alone knows.
    fn joining(&self, path: usize) -> Option<usize> {
        let joins = |stream: &Stream| stream.path == path && stream.joining.is_some();
        self.streams.iter().position(joins)
    }

    /// Have what the client said on a path arrive where it can: a relay keeps a hello, or the server's answer to it.
    fn connect(&mut self, path: usize) {
        let [to_server, to_client] = self.paths[path].health;
        if to_server == Health::Works && self.joining(path).is_none() {
            match to_client {
                Health::Works => return self.open(path),
                Health::Held => {
                    self.tell(|| format!("a join on path {path} reaches the server alone"));
                    let _ = self.admit(path);
                }
                _ => {}
            }
        } else if let (Some(index), Health::Works) = (self.joining(path), to_client) {
            return self.confirm(index);
        }
        if let DialState::Connecting { done_at_ns, .. } = &mut self.dials[path].0 {
            *done_at_ns = u64::MAX;
        }
    }

    /// Have the client give an attempt up, and begin another.
    fn abandon(&mut self, path: usize, started_ns: u64) {
        if self.paths[path].health[0] == Health::Held {
            self.kept_hellos[path] += 1;
        }
        if let Some(index) = self.joining(path) {
            self.streams[index].joining = None;
            if self.paths[path].works(0) {
                let at_ns = self.now_ns + self.paths[path].delay_ns;
                self.streams[index].reset_at_ns[1] = Some(at_ns);
            }
        }
        self.redial(path, Some(started_ns));
    }

    /// Have relays pass on what they kept of attempts: hellos of those that were given up, and their resets behind them.
    pub(super) fn release_hellos(&mut self, path: usize) {
        for _ in 0..std::mem::take(&mut self.kept_hellos[path]) {
            if let Ok(index) = self.admit(path) {
                let at_ns = self.now_ns + self.paths[path].delay_ns;
                self.streams[index].joining = None;
                self.streams[index].reset_at_ns[1] = Some(at_ns);
            }
        }
        let rtt_ns = 2 * self.paths[path].delay_ns;
        if let DialState::Connecting { done_at_ns, .. } = &mut self.dials[path].0 {
            *done_at_ns = (*done_at_ns).min(self.now_ns + rtt_ns);
        }
    }

    /// Have the client learn by a stream of its own that the server closed the connection with everything delivered.
    fn bid_farewell(&mut self, path: usize, greeting: &ClientHello, answer: &[u8]) {
        let length = hello_bytes(answer);
        if self.client.on_answer(greeting, &answer[..length]).is_err() {
            self.is_wrong = true;
            return;
        }
        let rate_bps = self.paths[path].visible_rate_bps();
        let id = greeting.hello.stream_id;
        let Ok(slot) = self.sides[0].core.add_stream(id, rate_bps) else {
            return;
        };
        self.tell(|| format!("stream {id} on path {path} hears from a server that has closed"));
        let mut stream = Stream {
            path,
            pipes: Default::default(),
            slots: [Some(slot), None],
            reset_at_ns: [None; 2],
            is_farewell: true,
            joining: None,
        };
        stream.pipes[1].push(answer[length..].to_vec());
        stream.pipes[1].is_shut = true;
        self.dials[path].0 = DialState::Up;
        self.paths[path].is_cut = false;
        self.streams.push(stream);
    }

    /// Have the client open a stream on a path again.
    pub(super) fn redial(&mut self, path: usize, failed_from_ns: Option<u64>) {
        let rtt_ns = 2 * self.paths[path].delay_ns;
        let (dial, redial) = &mut self.dials[path];
        if failed_from_ns.is_none() {
            *redial = ReconnectBackoff::new((2 * rtt_ns).max(1));
        }
        let attempt = redial.attempt(failed_from_ns.map_or(0, |from_ns| self.now_ns - from_ns));
        *dial = DialState::Waiting {
            at_ns: self.now_ns + attempt.delay_ns,
            timeout_ns: attempt.timeout_ns,
        };
    }

    pub(super) fn dial(&mut self) {
        let now_ns = self.now_ns;
        for path in 0..self.paths.len() {
            if self.sides[0].outcome.is_some() {
                self.dials[path].0 = DialState::Up;
            }
            let is_dropped = self.paths[path].health.contains(&Health::Dropped);
            let rtt_ns = 2 * self.paths[path].delay_ns;
            match self.dials[path].0 {
                DialState::Waiting { at_ns, timeout_ns } if at_ns <= now_ns => {
                    self.dials[path].0 = DialState::Connecting {
                        started_ns: now_ns,
                        // A SYN that was dropped comes again after a second.
                        done_at_ns: now_ns + if is_dropped { 1000 * MS } else { 2 * rtt_ns },
                        until_ns: now_ns + timeout_ns,
                    };
                }
                DialState::Connecting {
                    until_ns,
                    started_ns,
                    ..
                } if until_ns <= now_ns => self.abandon(path, started_ns),
                DialState::Connecting { done_at_ns, .. } if done_at_ns <= now_ns => {
                    self.connect(path);
                    self.pump(0);
                    self.pump(1);
                }
                _ => {}
            }
        }
    }
}

/// How long the hello is that an answer begins with, in bytes.
fn hello_bytes(answer: &[u8]) -> usize {
    let prefix: [u8; PREFIX_BYTES] = std::array::from_fn(|place| answer[place]);
    PREFIX_BYTES + hello::rest_bytes(&prefix).unwrap_or(0)
}

fn nonce(rng: &mut SplitMix64) -> [u8; 32] {
    std::array::from_fn(|_| rng.next_u64() as u8)
}

pub(super) fn id(rng: &mut SplitMix64) -> [u8; 16] {
    std::array::from_fn(|_| rng.next_u64() as u8)
}
