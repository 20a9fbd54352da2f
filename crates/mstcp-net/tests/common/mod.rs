//! Both ends of a connection over the loopback, whose clock is the test's: it goes on when nothing happens.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use mstcp_net::{
    Action, ClientConfig, Driver, Error, Event, Incoming, Progress, Server, ServerConfig, SocketId,
    StreamSocket, StreamSpec,
};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// How often nothing may have happened before the clock goes on: the kernel may still be busy.
const QUIET_TURNS: usize = 3;
const MAX_TURNS: usize = 3_000;
/// Late enough for a first burst of hellos.
const START_NS: u64 = 100_000_000_000;

/// A driver, and what it has said.
pub struct End {
    pub driver: Driver,
    pub events: Vec<Event>,
    pub received: Vec<u8>,
    pub ended: Option<Result<(), Error>>,
    pub is_open: bool,
    pub watched: BTreeMap<SocketId, (StreamSocket, PollFlags)>,
}

impl End {
    pub fn new(driver: Driver) -> Self {
        Self {
            driver,
            events: Vec::new(),
            received: Vec::new(),
            ended: None,
            is_open: false,
            watched: BTreeMap::new(),
        }
    }

    pub fn open_streams(&self) -> usize {
        let streams = self.driver.statistics().streams;
        streams.iter().filter(|stream| stream.is_open).count()
    }

    pub fn apply(&mut self, now_ns: u64) {
        while let Some(action) = self.driver.poll_action() {
            match action {
                Action::Watch {
                    socket,
                    descriptor,
                    for_bytes,
                    for_room,
                } => {
                    let mut flags = PollFlags::empty();
                    flags.set(PollFlags::IN, for_bytes);
                    flags.set(PollFlags::OUT, for_room);
                    self.watched.insert(socket, (descriptor, flags));
                }
                Action::Unwatch { socket } => drop(self.watched.remove(&socket)),
                Action::Opened => self.is_open = true,
                Action::Deliver => {
                    let mut piece = [0; 1 << 16];
                    while self.driver.ready_bytes() > 0 {
                        let count = self.driver.read(now_ns, &mut piece);
                        self.received.extend_from_slice(&piece[..count]);
                    }
                }
                Action::Event(event) => self.events.push(event),
                Action::Ended(result) => self.ended = Some(result),
                _ => {}
            }
        }
    }

    /// Do what the sockets are ready for; false: nothing was.
    fn turn(&mut self, now_ns: u64) -> bool {
        if self.driver.is_called() {
            self.driver.due(now_ns);
        }
        self.apply(now_ns);
        let asked = self
            .watched
            .iter()
            .filter(|(_, (_, flags))| !flags.is_empty());
        let asked: Vec<_> = asked.map(|(id, watched)| (*id, watched.clone())).collect();
        let mut polled: Vec<_> = (asked.iter())
            .map(|(_, (socket, flags))| PollFd::new(socket, *flags))
            .collect();
        poll(&mut polled, Some(&Timespec::default())).unwrap();
        let ready: Vec<_> = polled.iter().map(PollFd::revents).collect();
        let mut was_ready = false;
        for ((socket, _), flags) in asked.iter().zip(ready) {
            was_ready |= !flags.is_empty();
            let is_over = flags.intersects(PollFlags::ERR | PollFlags::HUP);
            if flags.contains(PollFlags::IN) || is_over {
                self.driver.readable(now_ns, *socket);
            }
            if flags.contains(PollFlags::OUT) || is_over {
                self.driver.writable(now_ns, *socket);
            }
            self.apply(now_ns);
        }
        was_ready
    }
}

/// A client, and a server with what it has accepted.
pub struct Net {
    pub client: End,
    pub servers: Vec<End>,
    pub now_ns: u64,
    /// Accepted sockets of which the server learns nothing: the first that many.
    pub silent: Vec<TcpStream>,
    most_silent: usize,
    server: Arc<Server>,
    pub listener: TcpListener,
    /// Others of the same server.
    pub others: Vec<TcpListener>,
    arrivals: Vec<Incoming>,
}

impl Net {
    /// A client that connects to a server, over sockets where such are given.
    pub fn new(
        client: ClientConfig,
        server: ServerConfig,
        streams: impl FnOnce(SocketAddr) -> Vec<(StreamSpec, Option<OwnedFd>)>,
    ) -> Self {
        Self::with_silent(client, server, streams, 0)
    }

    /// As `new`, with a server to which the first streams do not come through.
    pub fn with_silent(
        client: ClientConfig,
        server: ServerConfig,
        streams: impl FnOnce(SocketAddr) -> Vec<(StreamSpec, Option<OwnedFd>)>,
        most_silent: usize,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let driver =
            Driver::connect_over(START_NS, Arc::new(client), vec![address], streams(address));
        Self {
            client: End::new(driver.unwrap()),
            servers: Vec::new(),
            now_ns: START_NS,
            silent: Vec::new(),
            most_silent,
            server: Server::new(server).unwrap(),
            listener,
            others: Vec::new(),
            arrivals: Vec::new(),
        }
    }

    /// Both ends of a connection of this many streams, all of them open.
    pub fn opened(streams: usize, client: ClientConfig, server: ServerConfig) -> Self {
        let mut net = Self::new(client, server, |_| any(streams));
        let all = |net: &Self| net.servers.iter().map(End::open_streams).sum::<usize>() == streams;
        net.until("all streams", |net| {
            all(net) && net.client.open_streams() == streams
        });
        net
    }

    fn arrive(&mut self) -> bool {
        let before = self.arrivals.len();
        let listeners = || self.others.iter().chain([&self.listener]);
        while let Some((socket, _)) = listeners().find_map(|one| one.accept().ok()) {
            if self.silent.len() < self.most_silent {
                self.silent.push(socket);
                continue;
            }
            socket.set_nonblocking(true).unwrap();
            let incoming = self.server.accept(self.now_ns, socket.into());
            self.arrivals.push(incoming.unwrap());
        }
        let mut has_changed = self.arrivals.len() > before;
        for mut arrival in std::mem::take(&mut self.arrivals) {
            match arrival.advance(self.now_ns) {
                Progress::Waits { .. } => self.arrivals.push(arrival),
                Progress::Opened(driver) => {
                    has_changed = true;
                    self.servers.push(End::new(*driver));
                }
                _ => has_changed = true,
            }
        }
        has_changed
    }

    /// Do what the sockets are ready for; false: nothing was.
    pub fn turn(&mut self) -> bool {
        let mut was_ready = self.arrive();
        for end in self.servers.iter_mut().chain([&mut self.client]) {
            was_ready |= end.turn(self.now_ns);
        }
        was_ready
    }

    /// Do what is due next.
    fn wait(&mut self) {
        let ends = self.servers.iter().chain([&self.client]);
        let due = ends.filter_map(|end| end.driver.timeout_ns());
        let due = due.chain(self.arrivals.iter().map(Incoming::timeout_ns));
        self.now_ns = due.min().map_or(self.now_ns, |due| due.max(self.now_ns));
        for end in self.servers.iter_mut().chain([&mut self.client]) {
            if (end.driver.timeout_ns()).is_some_and(|due_ns| due_ns <= self.now_ns) {
                end.driver.due(self.now_ns);
            }
            end.apply(self.now_ns);
        }
    }

    /// Go on until this holds.
    pub fn until(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let mut quiet = 0;
        for _ in 0..MAX_TURNS {
            if holds(self) {
                return;
            }
            quiet = if self.turn() { 0 } else { quiet + 1 };
            if quiet >= QUIET_TURNS {
                quiet = 0;
                self.wait();
            } else if quiet > 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let ends = self.servers.iter().chain([&self.client]);
        let said: Vec<_> = ends
            .map(|end| (&end.events, &end.ended, &end.received))
            .collect();
        panic!("no {what}: {said:?}");
    }
}

/// This many streams from this host.
pub fn any(streams: usize) -> Vec<(StreamSpec, Option<OwnedFd>)> {
    (0..streams)
        .map(|_| (StreamSpec::default(), None))
        .collect()
}
