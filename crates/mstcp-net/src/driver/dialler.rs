//! The client's side of a driver: which streams are being opened, and when each is tried.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mstcp_proto::handshake::Client;
use mstcp_proto::redial::Redial;

use super::opening::{Opened, Opening, Progress};
use super::{SocketId, StreamId};
use crate::config::{ClientConfig, StreamSpec};
use crate::dial::{self, Route, Way};
use crate::error::Error;
use crate::sys;

/// How long a way may leave an attempt unanswered before another is tried as well, or two of its round trips if they take
/// longer: a second hello would open a second connection (RFC 8305, section 5).
const ATTEMPT_NS: u64 = 250_000_000;

/// An attempt that is under way.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) socket: SocketId,
    opening: Opening,
    began_ns: u64,
    deadline_ns: u64,
    purpose: Purpose,
}

#[derive(Debug)]
enum Purpose {
    /// It is to open the connection.
    First { way: usize, client: Box<Client> },
    /// It is to join it.
    Join { stream: StreamId },
}

/// A stream that is to be opened.
#[derive(Debug)]
struct Dial {
    stream: StreamId,
    route: Route,
    redial: Redial,
    at_ns: u64,
    /// While an attempt is under way.
    is_tried: bool,
    deadline_ns: u64,
}

/// What one attempt came to.
pub(super) enum Found {
    /// The connection is open, by this stream.
    First(Opened, StreamId, u64),
    /// A stream is open.
    Joined(Opened, StreamId, u64),
    /// No way leads to the peer.
    Failed(Error),
}

/// Opens the streams of one connection.
#[derive(Debug)]
pub(super) struct Dialler {
    config: Arc<ClientConfig>,
    /// What each stream was asked for; none: it was removed.
    pub(super) specs: Vec<Option<StreamSpec>>,
    destinations: Vec<SocketAddr>,
    ways: Vec<Way>,
    /// Places in `ways` that were not tried.
    untried: VecDeque<usize>,
    next_way_ns: u64,
    /// What the first way of those that failed says.
    failed: Option<(usize, Error)>,
    /// Of the connection, once it is open.
    client: Option<Client>,
    /// Where the first stream went.
    peer: Option<SocketAddr>,
    dials: Vec<Dial>,
    pub(super) attempts: Vec<Attempt>,
    is_over: bool,
}

impl Dialler {
    pub(super) fn new(
        config: Arc<ClientConfig>,
        destinations: Vec<SocketAddr>,
        specs: &[StreamSpec],
    ) -> Result<Self, Error> {
        if specs.is_empty() {
            let problem = "a connection has a stream: name one, StreamSpec::default() for any";
            return Err(Error::Config(problem.to_owned()));
        }
        for spec in specs {
            spec.check()?;
        }
        let ways = dial::ways(&destinations, specs)?;
        Ok(Self {
            config,
            specs: specs.iter().copied().map(Some).collect(),
            destinations,
            untried: (0..ways.len()).collect(),
            ways,
            next_way_ns: 0,
            failed: None,
            client: None,
            peer: None,
            dials: Vec::new(),
            attempts: Vec::new(),
            is_over: false,
        })
    }

    pub(super) fn connection_id(&self) -> Option<[u8; 16]> {
        self.client.as_ref().map(Client::connection_id)
    }

    fn is_open(&self) -> bool {
        self.client.is_some()
    }

    /// When something is due.
    pub(super) fn timeout_ns(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        let next_way = (!self.is_open() && !self.untried.is_empty()).then_some(self.next_way_ns);
        let waiting = self.dials.iter().filter(|dial| !dial.is_tried);
        let dials = waiting.map(|dial| dial.at_ns);
        let attempts = self.attempts.iter().map(|attempt| attempt.deadline_ns);
        dials.chain(attempts).chain(next_way).min()
    }

    /// Give up what took too long, and begin what is due. `id` makes numbers for sockets.
    pub(super) fn due(&mut self, now_ns: u64, mut id: impl FnMut() -> SocketId) -> Option<Found> {
        if self.is_over {
            return None;
        }
        while let Some(late) = (self.attempts.iter()).position(|one| one.deadline_ns <= now_ns) {
            let attempt = &self.attempts[late];
            let error = Error::NoAnswer {
                peer: attempt.opening.route.destination,
                seconds: (now_ns - attempt.began_ns).div_ceil(1_000_000_000),
            };
            if let Some(found) = self.fail(now_ns, late, error) {
                return Some(found);
            }
        }
        while !self.is_open() && self.next_way_ns <= now_ns {
            let Some(way) = self.untried.pop_front() else {
                break;
            };
            if let Err(error) = self.try_way(now_ns, way, id()) {
                if let Some(found) = self.note_failed(now_ns, way, error) {
                    return Some(found);
                }
            }
        }
        for at in 0..self.dials.len() {
            if !self.dials[at].is_tried && self.dials[at].at_ns <= now_ns {
                self.try_join(now_ns, at, id());
            }
        }
        None
    }

    fn try_way(&mut self, now_ns: u64, way: usize, socket: SocketId) -> Result<(), Error> {
        self.next_way_ns = now_ns + ATTEMPT_NS;
        let (stream, route) = self.ways[way];
        let priority = self.specs[stream].map_or(0, |spec| spec.priority);
        let config = &self.config;
        let count = self.specs.len() as u32;
        let payload_bytes = config.frame_payload_bytes as u32;
        let mut client = Client::new(&config.secret, sys::random(), count, payload_bytes);
        if config.authenticate_frames {
            client = client.with_records();
        }
        self.attempts.push(Attempt {
            socket,
            opening: Opening::new(config, route, priority)?,
            began_ns: now_ns,
            deadline_ns: now_ns + config.transport.connect_timeout.as_nanos() as u64,
            purpose: Purpose::First {
                way,
                client: Box::new(client),
            },
        });
        Ok(())
    }

    fn try_join(&mut self, now_ns: u64, at: usize, socket: SocketId) {
        let dial = &mut self.dials[at];
        let Some(spec) = self.specs[dial.stream.index()] else {
            return;
        };
        let Ok(opening) = Opening::new(&self.config, dial.route, spec.priority) else {
            let attempt = dial.redial.attempt(0);
            dial.at_ns = now_ns + attempt.delay_ns;
            dial.deadline_ns = attempt.timeout_ns;
            return;
        };
        dial.is_tried = true;
        self.attempts.push(Attempt {
            socket,
            opening,
            began_ns: now_ns,
            deadline_ns: now_ns + dial.deadline_ns,
            purpose: Purpose::Join {
                stream: dial.stream,
            },
        });
    }

    /// Go on with the attempt on a socket; none: it goes on, or another has to.
    pub(super) fn on_ready(
        &mut self,
        now_ns: u64,
        socket: SocketId,
        is_readable: bool,
    ) -> Option<Found> {
        let at = self.attempts.iter().position(|one| one.socket == socket)?;
        let attempt = &mut self.attempts[at];
        let client = match &mut attempt.purpose {
            Purpose::First { client, .. } => client,
            Purpose::Join { .. } => self.client.as_mut()?,
        };
        let was_connected = attempt.opening.is_connected();
        let progress = match is_readable {
            true => attempt.opening.on_readable(client),
            false => attempt.opening.on_writable(client),
        };
        if !was_connected && attempt.opening.is_connected() {
            let round_trip_ns = now_ns - attempt.began_ns;
            self.next_way_ns = self.next_way_ns.max(now_ns + 2 * round_trip_ns);
        }
        match progress {
            Ok(Progress::Waits) => None,
            Ok(Progress::Done { id }) => Some(self.finish(now_ns, at, id)),
            Err(error) => self.fail(now_ns, at, error),
        }
    }

    fn finish(&mut self, now_ns: u64, at: usize, id: u32) -> Found {
        let attempt = self.attempts.swap_remove(at);
        let took_ns = now_ns - attempt.began_ns;
        let opened = attempt.opening.into_opened(id);
        match attempt.purpose {
            Purpose::First { way, client } => {
                self.client = Some(*client);
                self.peer = Some(opened.route.destination);
                // What others said is of no use: the server knows them as connections of their own, and forgets them.
                self.attempts.clear();
                self.untried.clear();
                for (stream, route) in dial::others(&self.ways, way) {
                    self.open(now_ns, StreamId::from_index(stream), route, took_ns, false);
                }
                Found::First(opened, StreamId::from_index(self.ways[way].0), took_ns)
            }
            Purpose::Join { stream } => {
                self.dials.retain(|dial| dial.stream != stream);
                Found::Joined(opened, stream, took_ns)
            }
        }
    }

    /// Open a stream, however often that takes.
    pub(super) fn open(
        &mut self,
        now_ns: u64,
        stream: StreamId,
        route: Route,
        took_ns: u64,
        is_again: bool,
    ) {
        if self.is_over || self.specs[stream.index()].is_none() {
            return;
        }
        let mut redial = Redial::new(took_ns);
        let attempt = redial.attempt(0);
        self.dials.push(Dial {
            stream,
            route,
            redial,
            at_ns: now_ns + if is_again { attempt.delay_ns } else { 0 },
            is_tried: false,
            deadline_ns: attempt.timeout_ns,
        });
    }

    /// Have a further stream; none: the destination has no address of its source's family.
    pub(super) fn add(&mut self, now_ns: u64, spec: StreamSpec) -> Result<StreamId, Error> {
        spec.check()?;
        let peer = self.peer.or(self.destinations.first().copied());
        let route = peer.and_then(|peer| dial::way_of(&spec, peer, &self.destinations));
        let route = route.ok_or_else(|| {
            Error::Config("the destination has no address of this source's family".to_owned())
        })?;
        let stream = StreamId::from_index(self.specs.len());
        self.specs.push(Some(spec));
        self.open(now_ns, stream, route, 0, false);
        Ok(stream)
    }

    /// Open a stream no more; true if it was being opened.
    pub(super) fn remove(&mut self, stream: StreamId) -> bool {
        let before = self.dials.len();
        self.dials.retain(|dial| dial.stream != stream);
        self.attempts.retain(
            |one| !matches!(one.purpose, Purpose::Join { stream: other } if other == stream),
        );
        if let Some(spec) = self.specs.get_mut(stream.index()) {
            *spec = None;
        }
        before > self.dials.len()
    }

    /// Try all that waits at once, from whatever addresses the host has now.
    pub(super) fn network_changed(&mut self, now_ns: u64) {
        self.next_way_ns = now_ns;
        for dial in &mut self.dials {
            dial.redial = Redial::new(0);
            dial.deadline_ns = dial.redial.attempt(0).timeout_ns;
            dial.route = dial.route.forget_source();
            dial.at_ns = match dial.is_tried {
                true => dial.at_ns,
                false => now_ns,
            };
        }
    }

    /// Open nothing more.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
        self.attempts.clear();
        self.dials.clear();
    }

    fn fail(&mut self, now_ns: u64, at: usize, error: Error) -> Option<Found> {
        let attempt = self.attempts.swap_remove(at);
        match attempt.purpose {
            Purpose::First { way, .. } => self.note_failed(now_ns, way, error),
            Purpose::Join { stream } => {
                let dial = self.dials.iter_mut().find(|dial| dial.stream == stream)?;
                let next = dial.redial.attempt(now_ns - attempt.began_ns);
                dial.is_tried = false;
                dial.at_ns = now_ns + next.delay_ns;
                dial.deadline_ns = next.timeout_ns;
                None
            }
        }
    }

    /// Note that a way does not lead to the peer; the next is tried at once.
    fn note_failed(&mut self, now_ns: u64, way: usize, error: Error) -> Option<Found> {
        let is_final = error.is_final();
        if is_final || self.failed.as_ref().map_or(true, |(first, _)| way < *first) {
            self.failed = Some((way, error));
        }
        let has_more = !self.untried.is_empty() || !self.attempts.is_empty();
        if has_more && !is_final {
            self.next_way_ns = now_ns;
            return None;
        }
        self.stop();
        self.failed.take().map(|(_, error)| Found::Failed(error))
    }

    /// The sockets that are to be watched, and which of them for room.
    pub(super) fn watched(&self) -> impl Iterator<Item = (SocketId, &Arc<OwnedFd>, bool)> {
        self.attempts
            .iter()
            .map(|one| (one.socket, one.opening.socket(), one.opening.wants_room()))
    }
}
