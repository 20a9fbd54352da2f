//! The client's streams: hellos on paths that work, and again where they were lost.

use mstcp_core::handshake::{Greeting, NotAdmitted, CONFIRM_BYTES};
use mstcp_core::hello::{self, PREFIX_BYTES};
use mstcp_core::redial::Redial;
use mstcp_core::rng::SplitMix64;

use super::network::Stream;
use super::{World, MS};

/// How the client stands with a path.
#[derive(Debug)]
pub(super) enum Dial {
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

impl World {
    /// Say the hellos of a new stream on a path that works, and add it on both sides.
    pub(super) fn open(&mut self, path: usize) {
        let nonces = [(); 2].map(|()| nonce(&mut self.rng));
        let Ok(greeting) = self.client.greet(nonces[0], 0, &[]) else {
            return;
        };
        let server = &self.sides[1];
        let alive = (server.outcome.is_none()).then(|| server.core.alive().iter().count());
        let admitted = match self
            .admission
            .admit(self.now_ns, &greeting.bytes, nonces[1], |_| alive)
        {
            Ok(admitted) => admitted,
            Err(NotAdmitted::Ended { answer }) => {
                return self.bid_farewell(path, &greeting, &answer)
            }
            // The server gave the connection up: the client tries until it does too.
            Err(NotAdmitted::Refused { .. }) if alive.is_none() => {
                return self.redial(path, Some(self.now_ns));
            }
            Err(_) => {
                self.is_wrong = true;
                return;
            }
        };
        let Ok(confirm) = self.client.on_answer(&greeting, &admitted.answer) else {
            self.is_wrong = true;
            return;
        };
        let id = greeting.hello.stream_id;
        let slots = [0, 1].map(|side: usize| match id {
            0 => Some(0),
            _ => {
                let rate_bps = self.paths[path].visible_rate_bps();
                self.sides[side].core.add_stream(id, rate_bps).ok()
            }
        });
        let (Some(client_slot), Some(server_slot)) = (slots[0], slots[1]) else {
            return; // one of them is over, or full
        };
        self.tell(|| {
            format!("stream {id} opens on path {path}, slots {client_slot} and {server_slot}")
        });
        let delay_ns = self.paths[path].visible_delay_ns();
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
            is_farewell: false,
        };
        debug_assert_eq!(confirm.len(), CONFIRM_BYTES);
        stream.pipes[0].push(confirm);
        self.use_stream(stream);
    }

    fn use_stream(&mut self, stream: Stream) {
        self.dials[stream.path].0 = Dial::Up;
        self.paths[stream.path].is_cut = false;
        self.streams.push(stream);
    }

    /// Have the client learn by a stream of its own that the server closed the connection with everything delivered.
    fn bid_farewell(&mut self, path: usize, greeting: &Greeting, answer: &[u8]) {
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
        };
        stream.pipes[1].push(answer[length..].to_vec());
        stream.pipes[1].is_shut = true;
        self.use_stream(stream);
    }

    /// Have the client open a stream on a path again.
    pub(super) fn redial(&mut self, path: usize, failed_from_ns: Option<u64>) {
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

    pub(super) fn dial(&mut self) {
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
                    if works {
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
