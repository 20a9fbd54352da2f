//! The client's side of a driver: which streams are being opened, and when each is tried.
//!
//! All streams connect to the destination's first address at once, and to the next a moment later (RFC 8305). The first that is
//! connected says the hello that opens the connection, the others join once it is answered; another says it where no answer comes.

mod first;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mstcp_proto::handshake::{ClientHandshake, ClientHello};
use mstcp_proto::ReconnectBackoff;

use super::opening::{OpenedStream, OpeningStream, Progress, REASON};
use super::{SocketId, StreamId};
use crate::config::{ClientConfig, StreamSpec};
use crate::dial::{self, Candidate, Route};
use crate::error::Error;
use crate::interfaces::Interfaces;
use crate::sys;
use first::FirstHello;

/// An attempt that is under way.
#[derive(Debug)]
struct DialAttempt {
    socket: SocketId,
    stream: StreamId,
    opening: OpeningStream,
    began_ns: u64,
    deadline_ns: u64,
    round_trip_ns: u64,
    /// Its deadline is for all of it.
    is_redial: bool,
    /// Says the first hello of a connection that it opens, whose frames carry this many bytes.
    own: Option<(Box<ClientHandshake>, usize)>,
}

/// A stream that is to join.
#[derive(Debug)]
struct PendingDial {
    stream: StreamId,
    route: Route,
    redial: ReconnectBackoff,
    at_ns: u64,
    /// While an attempt is under way.
    is_tried: bool,
    has_failed: bool,
    deadline_ns: u64,
    /// By when the hello that it said in the core is to be answered.
    answer_by_ns: Option<u64>,
}

/// What attempts came to.
#[derive(Debug)]
pub(super) enum DialOutcome {
    /// The connection is open, by this stream; where a client comes with it, that is to say the hello in the driver.
    First {
        opened: OpenedStream,
        stream: StreamId,
        took_ns: u64,
        payload_bytes: usize,
        client: Option<Box<ClientHandshake>>,
    },
    /// A stream is open.
    Joined(OpenedStream, StreamId, u64),
    /// A stream is to say this hello, in the core.
    Greets(OpenedStream, StreamId, u64, ClientHello),
    /// Its hello was not answered in time.
    Silent(StreamId),
    /// A stream could not be opened at first; it is tried again.
    Unreachable(StreamId, Error),
    /// No way leads to the peer.
    Failed(Error),
}

/// A server that names ever more addresses is followed up to the stream of this number.
const MAX_NUMBERS: usize = 256;

/// Opens the streams of one connection.
#[derive(Debug)]
pub(super) struct Dialler {
    pub(super) config: Arc<ClientConfig>,
    /// What each stream was asked for; none: it was removed.
    pub(super) specs: Vec<Option<StreamSpec>>,
    /// Those that go from this host's interfaces, as long as these have the address.
    followed: Vec<(StreamId, StreamSpec)>,
    /// Those that go to addresses which the server has announced.
    announced: Vec<(StreamId, SocketAddr)>,
    /// The sockets that were given for them, until they are tried.
    sockets: Vec<Option<OwnedFd>>,
    destinations: Vec<SocketAddr>,
    rounds: Vec<Vec<Candidate>>,
    next_round: usize,
    next_round_ns: u64,
    next_hello_ns: u64,
    /// What the first stream of those that failed says.
    failed: Option<(usize, Error)>,
    connection_id: [u8; 16],
    lead: Option<FirstHello>,
    has_greeted: bool,
    /// The connection's, once its first hello was answered.
    client: Option<ClientHandshake>,
    /// Where the first stream went.
    peer: Option<SocketAddr>,
    dials: Vec<PendingDial>,
    attempts: Vec<DialAttempt>,
    found: VecDeque<DialOutcome>,
    last_socket: u64,
    is_over: bool,
}

impl Dialler {
    pub(super) fn new(
        config: Arc<ClientConfig>,
        destinations: Vec<SocketAddr>,
        streams: Vec<(StreamSpec, Option<OwnedFd>)>,
    ) -> Result<Self, Error> {
        let (mut specs, mut sockets): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
        let mut followed = Vec::new();
        if let Some(interfaces) = &config.interfaces {
            specs = of_interfaces(interfaces, specs, &destinations)?;
            sockets.resize_with(specs.len(), || None);
            let streams = specs.iter().enumerate();
            followed.extend(streams.map(|(at, spec)| (StreamId::from_index(at), *spec)));
        }
        if specs.is_empty() {
            let problem = "a connection has a stream: name one, StreamSpec::default() for any";
            return Err(Error::Config(problem.to_owned()));
        }
        if config.is_plain && specs.len() > 1 {
            let problem = "plain TCP has one stream";
            return Err(Error::Config(problem.to_owned()));
        }
        for spec in &specs {
            spec.check()?;
        }
        Ok(Self {
            config,
            rounds: dial::ways(&destinations, &specs)?,
            specs: specs.into_iter().map(Some).collect(),
            followed,
            announced: Vec::new(),
            sockets,
            destinations,
            next_round: 0,
            next_round_ns: 0,
            next_hello_ns: 0,
            failed: None,
            connection_id: sys::random(),
            lead: None,
            has_greeted: false,
            client: None,
            peer: None,
            dials: Vec::new(),
            attempts: Vec::new(),
            found: VecDeque::new(),
            last_socket: 0,
            is_over: false,
        })
    }

    /// The connection's id; none while none is open, and of plain TCP.
    pub(super) fn connection_id(&self) -> Option<[u8; 16]> {
        let is_open = self.client.is_some() || self.lead.is_some();
        (is_open && !self.config.is_plain).then_some(self.connection_id)
    }

    /// Whether other streams than the first are being opened, and have not failed yet.
    pub(super) fn is_joining(&self) -> bool {
        self.dials.iter().any(|dial| !dial.has_failed)
    }

    /// What attempts have come to.
    pub(super) fn poll(&mut self) -> Option<DialOutcome> {
        self.found.pop_front()
    }

    /// When something is due.
    pub(super) fn timeout_ns(&self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        let next_round = self.next_ways().map(|_| self.next_round_ns);
        let is_ready = self.attempts.iter().any(|one| one.opening.is_ready());
        let next_hello = is_ready.then_some(self.next_hello_ns);
        let lead = self.lead.as_ref().map(|lead| lead.deadline_ns);
        let answers = self.dials.iter().filter_map(|dial| dial.answer_by_ns);
        let dials = self.dials.iter().filter(|dial| !dial.is_tried);
        let dials = dials.filter(|_| self.client.is_some());
        let attempts = self.attempts.iter().map(|attempt| attempt.deadline_ns);
        (dials.map(|dial| dial.at_ns).chain(attempts).chain(answers))
            .chain([next_round, next_hello, lead].into_iter().flatten())
            .min()
    }

    /// Give up what took too long, and begin what is due.
    pub(super) fn due(&mut self, now_ns: u64) {
        while let Some(late) = (self.attempts.iter()).position(|one| one.deadline_ns <= now_ns) {
            let attempt = &self.attempts[late];
            let seconds = (now_ns - attempt.began_ns).div_ceil(1_000_000_000);
            let error = attempt.opening.late(&self.config, seconds);
            self.fail(now_ns, late, error);
        }
        if (self.lead.as_ref()).is_some_and(|lead| lead.deadline_ns <= now_ns) {
            return self.end(Error::NoHello);
        }
        for dial in &mut self.dials {
            if dial.answer_by_ns.is_some_and(|by_ns| by_ns <= now_ns) {
                dial.answer_by_ns = None;
                self.found.push_back(DialOutcome::Silent(dial.stream));
            }
        }
        self.try_ways(now_ns);
        for at in 0..self.dials.len() {
            let dial = &self.dials[at];
            if self.client.is_some() && !dial.is_tried && dial.at_ns <= now_ns {
                self.dial(now_ns, at);
            }
        }
        self.greet(now_ns);
    }

    fn dial(&mut self, now_ns: u64, at: usize) {
        let dial = &mut self.dials[at];
        dial.is_tried = true;
        let (stream, route, timeout_ns) = (dial.stream, dial.route, dial.deadline_ns);
        if let Err(error) = self.begin(now_ns, stream, route, timeout_ns, true) {
            self.dial_again(now_ns, stream, 0, error);
        }
    }

    /// Begin an attempt.
    fn begin(
        &mut self,
        now_ns: u64,
        stream: StreamId,
        route: Route,
        timeout_ns: u64,
        is_redial: bool,
    ) -> Result<(), Error> {
        let given = self.sockets[stream.index()].take();
        let round_trips = u64::from(given.is_some());
        let opening = OpeningStream::new(&self.config, route, given)?;
        self.last_socket += 1;
        let mut attempt = DialAttempt {
            socket: SocketId(self.last_socket),
            stream,
            began_ns: now_ns,
            deadline_ns: now_ns + timeout_ns,
            round_trip_ns: round_trips * opening.round_trip_ns(),
            opening,
            is_redial,
            own: None,
        };
        if attempt.opening.is_connected() {
            self.note_connected(now_ns, &mut attempt);
        }
        self.attempts.push(attempt);
        Ok(())
    }

    fn note_connected(&mut self, now_ns: u64, attempt: &mut DialAttempt) {
        let took_ns = now_ns - attempt.began_ns;
        attempt.round_trip_ns = attempt.round_trip_ns.max(took_ns);
        let soon_ns = now_ns + 2 * attempt.round_trip_ns;
        self.next_round_ns = self.next_round_ns.max(soon_ns);
        self.limit(now_ns, attempt);
    }

    /// Bound how long the next step of an attempt may take.
    fn limit(&self, now_ns: u64, attempt: &mut DialAttempt) {
        if !attempt.is_redial {
            let timeout_ns = self.config.transport.handshake_timeout.as_nanos() as u64;
            attempt.deadline_ns = match attempt.opening.is_ready() {
                true => u64::MAX,
                false => now_ns + timeout_ns,
            };
        }
    }

    /// Go on with the attempt on a socket.
    pub(super) fn on_ready(&mut self, now_ns: u64, socket: SocketId, is_readable: bool) {
        let Some(at) = self.attempts.iter().position(|one| one.socket == socket) else {
            return;
        };
        let mut attempt = self.attempts.remove(at);
        let was_connected = attempt.opening.is_connected();
        let was_refused = attempt.opening.is_refused();
        let client = match &mut attempt.own {
            Some((client, _)) => Some(&mut **client),
            None => self.client.as_mut(),
        };
        let progress = (attempt.opening).advance(&self.config, client, is_readable);
        if !was_connected && attempt.opening.is_connected() {
            self.note_connected(now_ns, &mut attempt);
        } else if attempt.opening.is_ready() {
            self.limit(now_ns, &mut attempt);
        }
        if !was_refused && attempt.opening.is_refused() {
            let reason_ns = now_ns + REASON.as_nanos() as u64;
            attempt.deadline_ns = attempt.deadline_ns.min(reason_ns);
        }
        match progress {
            Ok(Progress::Waits | Progress::Ready) => self.attempts.insert(at, attempt),
            Ok(Progress::Done { id }) => self.finish(now_ns, attempt, id),
            Err(error) => {
                self.attempts.insert(at, attempt);
                self.fail(now_ns, at, error);
            }
        }
        self.due(now_ns);
    }

    fn finish(&mut self, now_ns: u64, attempt: DialAttempt, id: u32) {
        let took_ns = now_ns - attempt.began_ns;
        let (stream, way) = (
            attempt.stream,
            (attempt.stream.index(), attempt.opening.route),
        );
        let opened = attempt.opening.into_opened(attempt.socket, id);
        match attempt.own {
            Some((client, payload_bytes)) => {
                self.found.push_back(DialOutcome::First {
                    opened,
                    stream,
                    took_ns,
                    payload_bytes,
                    client: None,
                });
                self.join(now_ns, *client, &way, took_ns);
            }
            None => {
                self.dials.retain(|dial| dial.stream != stream);
                self.found
                    .push_back(DialOutcome::Joined(opened, stream, took_ns));
            }
        }
    }

    /// Open the other streams of a connection that one has opened.
    fn join(&mut self, now_ns: u64, client: ClientHandshake, won: &Candidate, took_ns: u64) {
        self.connection_id = client.connection_id();
        self.client = Some(client);
        self.peer = Some(won.1.destination);
        for (stream, route) in dial::others(&self.rounds, won) {
            let stream = StreamId::from_index(stream);
            if self.dials.iter().all(|dial| dial.stream != stream) {
                self.open(now_ns, stream, route, took_ns, false);
            }
        }
        // Those that said a hello are known to the server as connections of their own, which it forgets.
        for attempt in std::mem::take(&mut self.attempts) {
            let is_it = |dial: &&mut PendingDial| {
                dial.stream == attempt.stream
                    && !dial.is_tried
                    && dial.route.destination == attempt.opening.route.destination
            };
            match self.dials.iter_mut().find(is_it) {
                Some(dial) if attempt.own.is_none() => {
                    dial.is_tried = true;
                    self.attempts.push(attempt);
                }
                _ => attempt.opening.discard(),
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
        let mut redial = ReconnectBackoff::new(took_ns);
        let attempt = redial.attempt(0);
        self.dials.push(PendingDial {
            stream,
            route,
            redial,
            at_ns: now_ns + if is_again { attempt.delay_ns } else { 0 },
            is_tried: false,
            has_failed: is_again,
            deadline_ns: attempt.timeout_ns,
            answer_by_ns: None,
        });
    }

    /// Have a further stream, over a bound socket if one is given.
    pub(super) fn add(
        &mut self,
        now_ns: u64,
        spec: StreamSpec,
        given: Option<OwnedFd>,
    ) -> Result<StreamId, Error> {
        spec.check()?;
        let peer = self.peer.or(self.destinations.first().copied());
        let route = peer.and_then(|peer| dial::way_of(&spec, peer, &self.destinations));
        let route = route.ok_or_else(|| {
            Error::Config("the destination has no address of this source's family".to_owned())
        })?;
        let stream = StreamId::from_index(self.specs.len());
        self.specs.push(Some(spec));
        self.sockets.push(given);
        let is_given = self.sockets[stream.index()].is_some();
        self.open(now_ns, stream, route, 0, false);
        if let (true, Some(dial)) = (is_given, self.dials.last_mut()) {
            // It is the only one with this port.
            dial.deadline_ns = self.config.transport.connect_timeout.as_nanos() as u64;
        }
        Ok(stream)
    }

    /// Open a stream no more; true if it was being opened.
    pub(super) fn remove(&mut self, stream: StreamId) -> bool {
        let before = self.dials.len();
        self.dials.retain(|dial| dial.stream != stream);
        self.attempts.retain(|one| one.stream != stream);
        if let Some(spec) = self.specs.get_mut(stream.index()) {
            *spec = None;
        }
        before > self.dials.len()
    }

    /// Have a stream from each address of this host's interfaces, if it is to follow them, and none from those that are gone.
    pub(super) fn follow_interfaces(&mut self, now_ns: u64) {
        let Some(interfaces) = &self.config.interfaces else {
            return;
        };
        // What cannot be asked now is as it was.
        let Ok(wanted) = interfaces.wanted(&self.destinations) else {
            return;
        };
        let (kept, gone): (Vec<_>, Vec<_>) = std::mem::take(&mut self.followed)
            .into_iter()
            .partition(|(_, spec)| wanted.contains(spec));
        self.followed = kept;
        for (stream, _) in gone {
            self.remove(stream);
        }
        for spec in wanted {
            if self.followed.iter().all(|(_, other)| *other != spec) {
                // One whose family the destination does not have is none.
                if let Ok(stream) = self.add(now_ns, spec, None) {
                    self.followed.push((stream, spec));
                }
            }
        }
    }

    /// Have streams to announced addresses, as many as are wanted; return those to addresses that were withdrawn.
    pub(super) fn follow_announced(
        &mut self,
        now_ns: u64,
        addresses: &[SocketAddr],
    ) -> Vec<StreamId> {
        let (kept, withdrawn): (Vec<_>, Vec<_>) = std::mem::take(&mut self.announced)
            .into_iter()
            .partition(|(_, address)| addresses.contains(address));
        self.announced = kept;
        for address in addresses {
            let mut specs = self.specs.iter().flatten();
            let has_one = specs.any(|spec| spec.remote == Some(*address));
            let is_full = self.announced.len() >= self.config.most_announced
                || self.specs.len() >= MAX_NUMBERS;
            if !(has_one || is_full || self.peer == Some(*address)) {
                let spec = StreamSpec::default().remote(*address);
                if let Ok(stream) = self.add(now_ns, spec, None) {
                    self.announced.push((stream, *address));
                }
            }
        }
        withdrawn.into_iter().map(|(stream, _)| stream).collect()
    }

    /// Try all that waits at once, from whatever addresses the host has now.
    pub(super) fn network_changed(&mut self, now_ns: u64) {
        self.next_round_ns = now_ns;
        for dial in &mut self.dials {
            dial.redial = ReconnectBackoff::new(0);
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
        for attempt in std::mem::take(&mut self.attempts) {
            attempt.opening.discard();
        }
        self.dials.clear();
        self.sockets.clear();
    }

    fn end(&mut self, error: Error) {
        self.stop();
        self.found.push_back(DialOutcome::Failed(error));
    }

    fn fail(&mut self, now_ns: u64, at: usize, error: Error) {
        let attempt = self.attempts.remove(at);
        let took_ns = now_ns - attempt.began_ns;
        attempt.opening.discard();
        if attempt.own.is_some() {
            self.next_hello_ns = now_ns;
        }
        match self.client {
            Some(_) => self.dial_again(now_ns, attempt.stream, took_ns, error),
            None => self.note_failed(now_ns, attempt.stream, error),
        }
    }

    /// Note that the hello which a stream said in the core was answered.
    pub(super) fn note_joined(&mut self, stream: StreamId) {
        self.dials.retain(|dial| dial.stream != stream);
    }

    /// Try a stream again that could not be opened in `failed_ns`.
    pub(super) fn dial_again(
        &mut self,
        now_ns: u64,
        stream: StreamId,
        failed_ns: u64,
        error: Error,
    ) {
        let Some(dial) = self.dials.iter_mut().find(|dial| dial.stream == stream) else {
            return;
        };
        let next = dial.redial.attempt(failed_ns);
        dial.is_tried = false;
        dial.answer_by_ns = None;
        dial.at_ns = now_ns + next.delay_ns;
        dial.deadline_ns = next.timeout_ns;
        if !std::mem::replace(&mut dial.has_failed, true) {
            self.found
                .push_back(DialOutcome::Unreachable(stream, error));
        }
    }

    /// The sockets that are to be watched, whether for bytes and whether for room.
    pub(super) fn watched(&self) -> impl Iterator<Item = (SocketId, &Arc<OwnedFd>, (bool, bool))> {
        (self.attempts.iter()).map(|one| (one.socket, one.opening.socket(), one.opening.interest()))
    }
}

/// The streams to open from this host's interfaces.
fn of_interfaces(
    interfaces: &Interfaces,
    named: Vec<StreamSpec>,
    destinations: &[SocketAddr],
) -> Result<Vec<StreamSpec>, Error> {
    if !named.is_empty() {
        let problem = "streams are named or follow this host's interfaces: name none";
        return Err(Error::Config(problem.to_owned()));
    }
    let specs = interfaces.wanted(destinations)?;
    match specs.is_empty() {
        true => Err(Error::Config(
            "no interface of this host has an address that may lead to the destination".to_owned(),
        )),
        false => Ok(specs),
    }
}
