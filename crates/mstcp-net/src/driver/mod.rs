//! One connection from its first hello to its end: a [`Driver`] owns the sockets and waits for nothing.
//!
//! Who waits (tokio, a thread, an event loop, a simulation) is a thin shell. It tells the driver what happened and what time it
//! is, and then applies the [`Action`]s until there are none:
//!
//! | told | when |
//! |---|---|
//! | [`Driver::readable`], [`Driver::writable`] | a watched socket is ready |
//! | [`Driver::due`] | [`Driver::timeout_ns`] has come, or the waker was called |
//! | [`Driver::write`], [`Driver::read`], [`Driver::end`], [`Driver::close`] | the application wants it |
//! | [`Driver::add_stream`], [`Driver::remove_stream`], [`Driver::set_rates`], [`Driver::network_changed`] | paths change |
//!
//! After each call: first [`Driver::poll_action`] until it returns none, then [`Driver::timeout_ns`].
//!
//! ```
//! use mstcp_net::{Action, ClientConfig, Driver, StreamSpec};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), mstcp_net::Error> {
//! let destination = "127.0.0.1:9".parse().unwrap();
//! let config = Arc::new(ClientConfig::default());
//! let mut driver = Driver::connect(0, config, vec![destination], &[StreamSpec::default(); 2])?;
//! while let Some(action) = driver.poll_action() {
//!     match action {
//!         // Have a poll set tell when `descriptor` is readable where `for_bytes`, and writable where `for_room`.
//!         Action::Watch { socket, descriptor, for_bytes, for_room } => {
//!             drop((socket, descriptor, for_bytes, for_room))
//!         }
//!         Action::Unwatch { socket } => drop(socket),
//!         Action::Ended(result) => println!("{result:?}"),
//!         other => println!("{other:?}"),
//!     }
//! }
//! assert!(driver.timeout_ns().is_some()); // another way is tried then
//! # Ok(()) }
//! ```

mod action;
mod application;
mod closing;
mod dialler;
mod opening;
mod settling;
mod shell;
mod starting;
mod statistics;
mod streams;

use std::collections::VecDeque;
use std::net::SocketAddr;

use mstcp_proto::handshake::ClientHandshake;
use mstcp_proto::StreamSet;
use rustix::io::Errno;

use crate::config::StreamSpec;
use crate::dial::{self, Route};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::handshake_socket::StreamParts;
use crate::inbox::{ReadError, ReadResult};
use crate::incoming::{JoinedStream, PlainPermit, Registration};
use crate::memory::{Memory, OwnMemory};
use crate::socket::StreamSocket;
use crate::sys;

pub use action::{Action, Event, Loss, SocketId, StreamId};
use dialler::{DialOutcome, Dialler};
use opening::OpenedStream;
pub use statistics::{PathStatistics, Statistics, StreamStatistics};

/// A stream, by its slot in the core.
#[derive(Debug)]
struct Slot {
    stream: StreamId,
    spec: StreamSpec,
    local: SocketAddr,
    peer: SocketAddr,
    /// What frames and layers add to each payload.
    header_bytes: usize,
    is_removed: bool,
    /// None: it is gone.
    open: Option<OpenSlot>,
}

#[derive(Debug)]
struct OpenSlot {
    socket: SocketId,
    descriptor: StreamSocket,
    /// The peer's bytes have ended, and ours go on: of plain TCP.
    has_ended: bool,
    /// Its hello has not been answered.
    greets: bool,
    /// Client only: how it is opened again, and how long that took.
    route: Option<(Route, u64)>,
}

/// A stream that the core gets.
struct NewStream {
    stream: StreamId,
    spec: StreamSpec,
    socket: SocketId,
    parts: StreamParts,
    /// It says its hello in the core.
    greets: bool,
    route: Option<(Route, u64)>,
}

impl NewStream {
    /// A stream that a client has opened.
    fn accepted(index: usize, socket: u64, joined: JoinedStream) -> Self {
        Self {
            stream: StreamId::from_index(index),
            spec: StreamSpec::default().priority(joined.hello.priority as u8),
            socket: SocketId(socket),
            parts: joined.parts,
            greets: false,
            route: None,
        }
    }
}

enum Side {
    Client(Box<Dialler>),
    Server(Box<Registration>),
    /// A plain connection that was accepted, and its place among those of its server until it ends.
    Plain(#[allow(dead_code)] Option<PlainPermit>),
}

/// One connection. See the module.
pub struct Driver {
    endpoint: Endpoint,
    side: Side,
    frame_payload_bytes: usize,
    send_buffer_bytes: usize,
    /// Writing pauses above the first, and goes on at the second.
    most_queued_bytes: usize,
    few_queued_bytes: usize,
    slots: Vec<Slot>,
    last_socket: u64,
    streams_joined: usize,
    /// What the shell watches, and whether for bytes and for room.
    watched: Vec<(SocketId, bool, bool)>,
    /// Something has changed since.
    are_sockets_new: bool,
    readable: StreamSet,
    /// Other threads have the sockets.
    stands_by: bool,
    /// No stream is read before [`Driver::start`].
    starts_later: bool,
    holds: bool,
    reads_ahead: bool,
    sent_bytes: u64,
    blocked: StreamSet,
    actions: VecDeque<Action>,
    is_open: bool,
    is_paused: bool,
    /// Writing goes on once nothing is queued.
    awaits_empty: bool,
    has_told_bytes: bool,
    has_ended_writing: bool,
    is_closed: bool,
    lingering: Option<closing::Lingering>,
    over: Option<Result<(), Error>>,
}

impl std::fmt::Debug for Driver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Driver");
        text.field("slots", &self.slots).field("over", &self.over);
        text.finish_non_exhaustive()
    }
}

impl Driver {
    /// The connection's id, the same at both ends; of a client none until it is open.
    pub fn connection_id(&self) -> Option<[u8; 16]> {
        match &self.side {
            Side::Client(dialler) => dialler.connection_id(),
            Side::Server(registration) => Some(registration.connection_id()),
            Side::Plain(_) => None,
        }
    }

    /// Application bytes in a full-size frame, or in a segment of plain TCP.
    pub fn frame_payload_bytes(&self) -> usize {
        self.frame_payload_bytes
    }

    /// Whether another thread has something for the connection: then [`Driver::due`] is to be called.
    pub fn is_called(&self) -> bool {
        matches!(&self.side, Side::Server(registration) if registration.has_joined())
    }

    /// Have this waker called when [`Driver::is_called`].
    pub fn set_waker(&mut self, waker: &std::task::Waker) {
        if let Side::Server(registration) = &self.side {
            registration.set_waker(waker);
        }
    }

    // --- what happens ---------------------------------------------------------------------------------------------------------

    /// Read a socket; true if it had no more.
    pub fn readable(&mut self, now_ns: u64, socket: SocketId) -> bool {
        let is_drained = match self.read_to(now_ns, socket, &mut OwnMemory) {
            Ok(is_drained) => is_drained,
            Err(never) => match never {},
        };
        self.settle(now_ns);
        is_drained
    }

    /// As [`Driver::readable`], to memory of the shell's; [`Driver::settle`] is to be called after it.
    ///
    /// # Errors
    /// There is no memory.
    pub fn read_to<M: Memory>(
        &mut self,
        now_ns: u64,
        socket: SocketId,
        memory: &mut M,
    ) -> Result<bool, M::Error> {
        let Some(slot) = self.slot_of(socket) else {
            return Ok(!self.advance_attempt(now_ns, socket, true));
        };
        let result = match self.endpoint.read(memory, slot) {
            Ok(count) => Ok(count),
            Err(ReadError::Protocol(error)) => Err(error),
            Err(ReadError::Memory(error)) => return Err(error),
        };
        let is_drained = self.endpoint.is_drained();
        Ok(self.note_read(now_ns, slot, result) || is_drained)
    }

    /// Go on with a socket that has room; true if it has none left.
    pub fn writable(&mut self, now_ns: u64, socket: SocketId) -> bool {
        let slot = self.slot_of(socket);
        self.note_writable(now_ns, socket);
        self.settle(now_ns);
        slot.map_or(true, |slot| self.blocked.contains(slot))
    }

    /// As [`Driver::writable`]; [`Driver::settle`] is to be called after it.
    pub fn note_writable(&mut self, now_ns: u64, socket: SocketId) {
        match self.slot_of(socket) {
            Some(slot) => self.note_room(slot),
            None => drop(self.advance_attempt(now_ns, socket, false)),
        }
    }

    /// Do what is due.
    pub fn due(&mut self, now_ns: u64) {
        match &mut self.side {
            Side::Client(dialler) => {
                self.are_sockets_new = true;
                dialler.due(now_ns);
                self.follow_dialler(now_ns);
            }
            Side::Server(registration) => {
                for joined in registration.take_joined() {
                    self.join(now_ns, joined);
                }
            }
            Side::Plain(_) => {}
        }
        self.linger(now_ns);
        self.settle(now_ns);
    }

    /// When to call [`Driver::due`] though nothing happened.
    pub fn timeout_ns(&self) -> Option<u64> {
        let connection = match self.over.is_none() && self.is_open {
            true => self.endpoint.timeout_ns(),
            false => None,
        };
        let dialler = match &self.side {
            Side::Client(dialler) => dialler.timeout_ns(),
            Side::Server(_) | Side::Plain(_) => None,
        };
        let lingering = self.lingering.as_ref().map(closing::Lingering::due_ns);
        connection.into_iter().chain(dialler).chain(lingering).min()
    }

    /// What is to be done next; none: wait.
    pub fn poll_action(&mut self) -> Option<Action> {
        if self.actions.is_empty() {
            self.watch();
        }
        self.actions.pop_front()
    }

    /// The host's addresses or routes may have changed: streams from addresses that are gone are lost, and those that are to be
    /// opened are tried at once, from whatever address the system chooses where none was named. A client that follows this host's
    /// interfaces has a stream from each address then.
    pub fn network_changed(&mut self, now_ns: u64) {
        if self.endpoint.core.is_plain() || self.over.is_some() {
            return;
        }
        self.follow_interfaces(now_ns);
        let gone: Vec<usize> = (0..self.slots.len())
            .filter(|slot| self.slots[*slot].open.is_some())
            .filter(|slot| !dial::is_own_address(self.slots[*slot].local))
            .collect();
        for slot in gone {
            self.endpoint.core.give_up_stream(slot);
            self.let_go(now_ns, slot, Loss::Broken(Errno::ADDRNOTAVAIL));
        }
        if self.is_open {
            self.endpoint.core.ping(0);
        }
        if let Side::Client(dialler) = &mut self.side {
            dialler.network_changed(now_ns);
        }
        self.due(now_ns);
    }

    fn follow_interfaces(&mut self, now_ns: u64) {
        if let (Side::Client(dialler), true) = (&mut self.side, self.is_open) {
            dialler.follow_interfaces(now_ns);
        }
    }

    fn slot_of(&self, socket: SocketId) -> Option<usize> {
        let is_it = |slot: &Slot| slot.open.as_ref().is_some_and(|open| open.socket == socket);
        self.slots.iter().position(is_it)
    }

    /// Do what follows from a read of a stream's socket; true if it had no more.
    pub(crate) fn note_read(
        &mut self,
        now_ns: u64,
        slot: usize,
        result: Result<ReadResult, mstcp_proto::Error>,
    ) -> bool {
        match result {
            Ok(Ok(0)) => self.end_stream(now_ns, slot),
            Ok(Ok(_)) => return false,
            Ok(Err(Errno::AGAIN | Errno::INTR)) => {}
            Ok(Err(errno)) => self.break_stream(now_ns, slot, errno),
            Err(error) => self.refuse(now_ns, error),
        }
        true
    }

    /// Go on with an attempt to open a stream; true if its socket is that of a stream now.
    fn advance_attempt(&mut self, now_ns: u64, socket: SocketId, is_readable: bool) -> bool {
        if let Side::Client(dialler) = &mut self.side {
            self.are_sockets_new = true;
            dialler.on_ready(now_ns, socket, is_readable);
            self.follow_dialler(now_ns);
        }
        self.slot_of(socket).is_some()
    }

    /// Do what follows from what the attempts to open streams have come to.
    pub(super) fn follow_dialler(&mut self, now_ns: u64) {
        loop {
            let found = match &mut self.side {
                Side::Client(dialler) => dialler.poll(),
                _ => None,
            };
            match found {
                Some(DialOutcome::First {
                    opened,
                    stream,
                    took_ns,
                    payload_bytes,
                    client,
                }) => {
                    let (_, new) = self.of_opened(opened, stream, took_ns);
                    self.lead(now_ns, new, payload_bytes, client);
                }
                Some(DialOutcome::Joined(opened, stream, took_ns)) => {
                    let (id, new) = self.of_opened(opened, stream, took_ns);
                    self.add(now_ns, id, new, None);
                }
                Some(DialOutcome::Greets(opened, stream, took_ns, greeting)) => {
                    let (_, new) = self.of_opened(opened, stream, took_ns);
                    self.greet_on(now_ns, new, greeting);
                }
                Some(DialOutcome::Silent(stream)) => {
                    if let Some((slot, _)) = self.place_of(stream) {
                        self.endpoint.core.give_up_stream(slot);
                        self.let_go(now_ns, slot, Loss::Silent);
                    }
                }
                Some(DialOutcome::Unreachable(stream, error)) => {
                    let reason = error.to_string();
                    let event = Event::StreamUnreachable { stream, reason };
                    self.actions.push_back(Action::Event(event));
                }
                Some(DialOutcome::Failed(error)) => self.finish(Err(error)),
                None => return,
            }
        }
    }

    /// Have a client's connection be open by a stream; `client` says the hello in the core.
    fn lead(
        &mut self,
        now_ns: u64,
        new: NewStream,
        payload_bytes: usize,
        client: Option<Box<ClientHandshake>>,
    ) {
        let is_again = self.is_open;
        if is_again {
            // Where the one before is not lost already.
            self.drop_stream(now_ns, 0);
            self.add(now_ns, 0, new, None);
        } else {
            self.frame_payload_bytes = payload_bytes;
            if let Err(error) = self.endpoint.core.set_frame_payload_bytes(payload_bytes) {
                return self.finish(Err(error.into()));
            }
            if let Some(client) = client {
                self.endpoint.core.open_by(*client);
            }
            self.open_first(now_ns, new);
            // They may have changed since.
            self.follow_interfaces(now_ns);
        }
        let greets = match &mut self.side {
            Side::Client(dialler) => is_again && dialler.has_greeted(false),
            _ => false,
        };
        if greets {
            self.greet(now_ns);
        }
    }

    /// Say the first hello, with what was written so far: once, after [`Action::Opened`] of a client that opens early. Of others
    /// it was said before.
    pub fn greet(&mut self, now_ns: u64) {
        let Side::Client(dialler) = &mut self.side else {
            return;
        };
        dialler.has_greeted(true);
        let lead = dialler.lead_stream();
        let slot = lead.and_then(|stream| self.place_of(stream));
        let (Some((slot, _)), None) = (slot, &self.over) else {
            return;
        };
        // The answer waits for all of the hello: it fills a segment, and frames follow it.
        let most_bytes = sys::segment_bytes(self.endpoint.sockets().descriptor(slot));
        let priority = self.slots[slot].spec.priority.into();
        let greeted = (self.endpoint.core).greet(sys::random(), priority, most_bytes);
        if let Err(error) = greeted {
            return self.finish(Err(error.into()));
        }
        if let Side::Client(dialler) = &mut self.side {
            dialler.note_greeted(now_ns);
        }
        self.settle(now_ns);
    }

    fn of_opened(&self, opened: OpenedStream, stream: StreamId, took_ns: u64) -> (u32, NewStream) {
        let spec = match &self.side {
            Side::Client(dialler) => dialler.specs[stream.index()].unwrap_or_default(),
            _ => StreamSpec::default(),
        };
        let new = NewStream {
            stream,
            spec,
            socket: opened.socket,
            parts: opened.parts,
            greets: false,
            route: Some((opened.route, took_ns)),
        };
        (opened.id, new)
    }
}
