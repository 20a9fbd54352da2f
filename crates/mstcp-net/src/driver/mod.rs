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
//! | [`Driver::add_stream`], [`Driver::remove_stream`], [`Driver::set_rate`], [`Driver::network_changed`] | paths change |
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

mod closing;
mod dialler;
mod opening;
mod settling;
mod shell;
mod statistics;
mod streams;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use mstcp_proto::control::code;
use mstcp_proto::{Connection, Slice, StreamSet};
use rustix::io::Errno;

use crate::config::{ClientConfig, ServerConfig, StreamSpec, TransportConfig};
use crate::dial::{self, Route};
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::inbox::{Count, ReadError, Target};
use crate::incoming::{Joined, Membership, PlainPlace};
use crate::memory::{Memory, OwnMemory};
use crate::socket::StreamSocket;
use crate::sys;
use crate::wire::Parts;

use dialler::{Dialler, Found};
use opening::Opened;
pub use shell::ShellStream;
pub use statistics::{PathStatistics, Statistics, StreamStatistics};

/// The number of a socket that is watched; none is used twice by a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(u64);

impl SocketId {
    /// The socket of this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number, for callers in other languages.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// One of a connection's streams; a stream that is opened again keeps its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(u32);

impl StreamId {
    /// The stream that was asked for, or came, at this place.
    pub fn from_index(index: usize) -> Self {
        Self(index as u32)
    }

    /// Its place in the order in which the streams were asked for, or came.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for StreamId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a shell is to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Action {
    /// Tell the driver when a socket is readable or writable; replaces what was said of it before.
    Watch {
        /// Its number.
        socket: SocketId,
        /// Its descriptor, which stays open as long as this is kept.
        descriptor: StreamSocket,
        /// Whether it is watched for bytes.
        for_bytes: bool,
        /// Whether it is watched for room.
        for_room: bool,
    },
    /// Watch a socket no more, and let its descriptor go.
    Unwatch {
        /// Its number.
        socket: SocketId,
    },
    /// The connection is open: what is written goes out.
    Opened,
    /// Bytes are in order, or their end has come: [`Driver::read`] or [`Driver::take`] until there are none.
    Deliver,
    /// Write no more until [`Action::ResumeWriting`].
    PauseWriting,
    /// There is room again.
    ResumeWriting,
    /// Something happened to a stream that the application may want to know.
    Event(Event),
    /// It is over. Nothing follows, except that what came can still be read.
    Ended(Result<(), Error>),
}

/// What happened to a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// It carries bytes from now on.
    StreamOpened {
        /// Which.
        stream: StreamId,
        /// Its own address.
        local: SocketAddr,
        /// The peer's address.
        peer: SocketAddr,
    },
    /// It broke, ended or was removed.
    StreamLost {
        /// Which.
        stream: StreamId,
        /// Whether this side opens it again.
        reopens: bool,
        /// Why.
        loss: Loss,
    },
    /// What it carries does not come through; others carry that.
    StreamStalled {
        /// Which.
        stream: StreamId,
    },
    /// It brings things through again.
    StreamRecovered {
        /// Which.
        stream: StreamId,
    },
}

/// Why a stream is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// The peer has ended it as it should.
    Finished,
    /// This side has removed it.
    Removed,
    /// Its connection of TCP ended before it should.
    Ended,
    /// Nothing came through it any more.
    Silent,
    /// What the system says.
    Broken(Errno),
}

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
    /// Of a client: how it is opened again, and how long that took.
    route: Option<(Route, u64)>,
}

/// A stream whose hellos are done.
struct NewStream {
    stream: StreamId,
    spec: StreamSpec,
    socket: SocketId,
    parts: Parts,
    route: Option<(Route, u64)>,
}

impl NewStream {
    /// A stream that a client has opened.
    fn accepted(index: usize, socket: u64, joined: Joined) -> Self {
        Self {
            stream: StreamId::from_index(index),
            spec: StreamSpec::default().priority(joined.hello.priority as u8),
            socket: SocketId(socket),
            parts: joined.parts,
            route: None,
        }
    }
}

enum Side {
    Client(Box<Dialler>),
    Server(Box<Membership>),
    /// A plain connection that was accepted.
    Plain(#[allow(dead_code)] PlainPlace),
    /// The shell opens streams by itself.
    Shell,
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
    holds: bool,
    reads_ahead: bool,
    sent_bytes: u64,
    blocked: StreamSet,
    actions: VecDeque<Action>,
    is_open: bool,
    is_paused: bool,
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
    /// Open a connection to one of the addresses, by whichever of the streams' sources answers first; the others join.
    ///
    /// # Errors
    /// [`Error::Config`]: the configuration makes no sense, or a source has no address of the destination's family.
    pub fn connect(
        now_ns: u64,
        config: Arc<ClientConfig>,
        destinations: Vec<SocketAddr>,
        streams: &[StreamSpec],
    ) -> Result<Self, Error> {
        config.check()?;
        let payload_bytes = config.frame_payload_bytes;
        let mut core = config.transport.core(payload_bytes)?;
        core.reopen_streams();
        let transport = config.transport.clone();
        let dialler = Dialler::new(config, destinations, streams)?;
        let side = Side::Client(Box::new(dialler));
        let send_buffer_bytes = transport.send_buffer_bytes;
        let mut driver = Self::new(Endpoint::new(core), side, payload_bytes, send_buffer_bytes);
        driver.due(now_ns);
        Ok(driver)
    }

    /// Go on with a connection that a client has opened.
    pub(crate) fn accepted(
        now_ns: u64,
        transport: &TransportConfig,
        membership: Membership,
        first: Joined,
        is_confirmed: bool,
        is_open_to_all: bool,
    ) -> Result<Self, Error> {
        let payload_bytes = first.hello.frame_payload_bytes as usize;
        let mut core = transport.core(payload_bytes)?;
        if !is_confirmed {
            core.expect_confirm(0, first.confirm)?;
        }
        if is_open_to_all {
            core.take_unconfirmed();
        }
        let side = Side::Server(Box::new(membership));
        let send_buffer_bytes = transport.send_buffer_bytes;
        let mut driver = Self::new(Endpoint::new(core), side, payload_bytes, send_buffer_bytes);
        driver.endpoint.receive_early(&first.hello.early_data);
        driver.open_first(now_ns, NewStream::accepted(0, 0, first));
        driver.due(now_ns);
        Ok(driver)
    }

    /// Go on with a stream of plain TCP.
    pub(crate) fn accepted_plain(
        now_ns: u64,
        config: &ServerConfig,
        place: PlainPlace,
        parts: Parts,
        is_decided: bool,
    ) -> Result<Self, Error> {
        let segment_bytes = sys::segment_bytes(parts.socket.as_raw_fd())?;
        let payload_bytes =
            (config.plain_payload_bytes).map_or(segment_bytes, |bytes| bytes.min(segment_bytes));
        let send_buffer_bytes = config.transport.send_buffer_bytes;
        let core = Connection::plain(payload_bytes, 2 * send_buffer_bytes, is_decided)?;
        let side = Side::Plain(place);
        let mut driver = Self::new(Endpoint::new(core), side, payload_bytes, send_buffer_bytes);
        driver.open_first(
            now_ns,
            NewStream {
                stream: StreamId::from_index(0),
                spec: StreamSpec::default(),
                socket: SocketId(0),
                parts,
                route: None,
            },
        );
        driver.settle(now_ns);
        Ok(driver)
    }

    fn new(
        endpoint: Endpoint,
        side: Side,
        frame_payload_bytes: usize,
        send_buffer_bytes: usize,
    ) -> Self {
        crate::memory::keep_freed_memory();
        let send_buffer_bytes = send_buffer_bytes.max(1);
        Self {
            endpoint,
            side,
            frame_payload_bytes,
            send_buffer_bytes,
            most_queued_bytes: usize::MAX,
            few_queued_bytes: send_buffer_bytes / 2,
            slots: Vec::new(),
            last_socket: 0,
            streams_joined: 1,
            watched: Vec::new(),
            are_sockets_new: false,
            readable: StreamSet::default(),
            stands_by: false,
            holds: false,
            reads_ahead: false,
            sent_bytes: 0,
            blocked: StreamSet::default(),
            actions: VecDeque::new(),
            is_open: false,
            is_paused: false,
            has_told_bytes: false,
            has_ended_writing: false,
            is_closed: false,
            lingering: None,
            over: None,
        }
    }

    /// The connection's id, the same at both ends; of a client none until it is open.
    pub fn connection_id(&self) -> Option<[u8; 16]> {
        match &self.side {
            Side::Client(dialler) => dialler.connection_id(),
            Side::Server(membership) => Some(membership.connection_id()),
            Side::Plain(_) | Side::Shell => None,
        }
    }

    /// Application bytes in a full-size frame, or in a segment of plain TCP.
    pub fn frame_payload_bytes(&self) -> usize {
        self.frame_payload_bytes
    }

    /// Whether another thread has something for the connection: then [`Driver::due`] is to be called.
    pub fn is_called(&self) -> bool {
        matches!(&self.side, Side::Server(membership) if membership.has_joined())
    }

    /// Have this waker called when [`Driver::is_called`].
    pub fn set_waker(&mut self, waker: &std::task::Waker) {
        if let Side::Server(membership) = &self.side {
            membership.set_waker(waker);
        }
    }

    // --- what happens ---------------------------------------------------------------------------------------------------------

    /// Read a socket; true if it had no more.
    pub fn readable(&mut self, now_ns: u64, socket: SocketId) -> bool {
        let is_drained = match self.slot_of(socket) {
            Some(_) => match self.read_to(now_ns, socket, &mut OwnMemory) {
                Ok(is_drained) => is_drained,
                Err(never) => match never {},
            },
            None => !self.advance_attempt(now_ns, socket, true),
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
            return Ok(true);
        };
        let result = match self.endpoint.read(memory, slot) {
            Ok(count) => Ok(count),
            Err(ReadError::Protocol(error)) => Err(error),
            Err(ReadError::Memory(error)) => return Err(error),
        };
        Ok(self.note_read(now_ns, slot, result))
    }

    /// Go on with a socket that has room; true if it has none left.
    pub fn writable(&mut self, now_ns: u64, socket: SocketId) -> bool {
        let slot = self.slot_of(socket);
        match slot {
            Some(slot) => self.note_room(slot),
            None => drop(self.advance_attempt(now_ns, socket, false)),
        }
        self.settle(now_ns);
        slot.map_or(true, |slot| self.blocked.contains(slot))
    }

    /// Do what is due.
    pub fn due(&mut self, now_ns: u64) {
        let last_socket = &mut self.last_socket;
        let found = match &mut self.side {
            Side::Client(dialler) => {
                self.are_sockets_new = true;
                dialler.due(now_ns, || {
                    *last_socket += 1;
                    SocketId(*last_socket)
                })
            }
            Side::Server(membership) => {
                for joined in membership.take_joined() {
                    self.join(now_ns, joined);
                }
                None
            }
            Side::Plain(_) | Side::Shell => None,
        };
        self.take_found(now_ns, found);
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
            Side::Server(_) | Side::Plain(_) | Side::Shell => None,
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

    /// The host's addresses or routes have changed: streams from addresses that are gone are lost, and those that are to be
    /// opened are tried at once, from whatever address the system chooses where none was named.
    pub fn network_changed(&mut self, now_ns: u64) {
        let gone: Vec<usize> = (0..self.slots.len())
            .filter(|slot| self.slots[*slot].open.is_some())
            .filter(|slot| !dial::is_own_address(self.slots[*slot].local))
            .collect();
        for slot in gone {
            self.lose(now_ns, slot, Loss::Broken(Errno::ADDRNOTAVAIL));
        }
        if self.is_open && self.over.is_none() {
            self.endpoint.core.ping(0);
        }
        if let Side::Client(dialler) = &mut self.side {
            dialler.network_changed(now_ns);
        }
        self.due(now_ns);
    }

    // --- what the application wants ---------------------------------------------------------------------------------------------

    /// Send bytes; how many were taken: none while the send buffer is full, until [`Action::ResumeWriting`].
    ///
    /// # Errors
    /// Why the connection is over; [`Error::Closed`] after [`Driver::end`] or [`Driver::close`].
    pub fn write(&mut self, now_ns: u64, data: &[u8]) -> Result<usize, Error> {
        match &self.over {
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok(())) => return Err(Error::Closed),
            None if self.has_ended_writing => return Err(Error::Closed),
            None => {}
        }
        let queued = self.endpoint.core.queued_bytes();
        let count = self
            .send_buffer_bytes
            .saturating_sub(queued)
            .min(data.len());
        if count > 0 {
            self.endpoint.core.write(&data[..count])?;
            self.settle(now_ns);
        }
        let is_full = count < data.len() && self.over.is_none();
        if is_full && !self.is_paused && self.endpoint.core.queued_bytes() > 0 {
            self.is_paused = true;
            self.actions.push_back(Action::PauseWriting);
            self.resume();
        }
        Ok(count)
    }

    /// Send the end after what was written; receiving goes on.
    pub fn end(&mut self, now_ns: u64) {
        if !self.has_ended_writing {
            self.has_ended_writing = true;
            self.endpoint.core.end();
            self.settle(now_ns);
        }
    }

    /// Send what was written and the end, then close: [`Action::Ended`] tells when the peer has everything. Nothing more is
    /// received.
    pub fn close(&mut self, now_ns: u64) {
        if self.is_closed || self.over.is_some() {
            return;
        }
        self.is_closed = true;
        if !self.is_open {
            self.finish(Err(Error::Closed));
        } else {
            self.end(now_ns);
            self.begin_to_linger(now_ns);
        }
        self.settle(now_ns);
    }

    /// Close at once; the peer is told why, and sees a broken connection.
    pub fn abort(&mut self, now_ns: u64, reason: &str) {
        self.abort_by(now_ns, code::ABORTED, reason);
    }

    /// As [`Driver::abort`], by another [`code`].
    pub fn abort_by(&mut self, now_ns: u64, code: u16, reason: &str) {
        if self.over.is_none() {
            if self.is_open {
                self.endpoint.core.close(code, reason);
                // What cannot be said is not.
                let _ = self.endpoint.transmit(now_ns);
            }
            self.finish(Err(Error::Closed));
            self.settle(now_ns);
        }
    }

    /// Copy bytes that are in order to where they are wanted; how many: 0 if there are none now, or no more at all (see
    /// [`Driver::is_ended`]).
    pub fn read(&mut self, now_ns: u64, buffer: &mut [u8]) -> usize {
        let mut target = Target::of_bytes(buffer);
        self.endpoint.take_into(&mut target);
        let count = target.filled();
        self.note_taken(now_ns);
        count
    }

    /// Take about half a megabyte of what is in order, without copying it.
    pub fn take(&mut self, now_ns: u64) -> Vec<Slice> {
        self.endpoint.reclaim();
        let slices = self.endpoint.take();
        self.note_taken(now_ns);
        slices
    }

    /// Whether the send buffer is full: see [`Action::PauseWriting`].
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Bytes that [`Driver::read`] would return.
    pub fn ready_bytes(&self) -> usize {
        self.endpoint.ready_bytes()
    }

    /// Whether all of the peer's bytes were read.
    pub fn is_ended(&self) -> bool {
        self.endpoint.is_ended()
    }

    /// How the connection ended, once it has.
    pub fn result(&self) -> Option<&Result<(), Error>> {
        self.over.as_ref()
    }

    fn note_taken(&mut self, now_ns: u64) {
        self.has_told_bytes = self.endpoint.ready_bytes() > 0;
        self.settle(now_ns);
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
        result: Result<Count, mstcp_proto::Error>,
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
        let Side::Client(dialler) = &mut self.side else {
            return false;
        };
        self.are_sockets_new = true;
        let found = dialler.on_ready(now_ns, socket, is_readable);
        let is_open = matches!(found, Some(Found::First(..) | Found::Joined(..)));
        match found {
            Some(Found::First(opened, stream, took_ns)) => {
                let new = self.of_opened(opened, stream, took_ns, socket).1;
                self.open_first(now_ns, new);
            }
            Some(Found::Joined(opened, stream, took_ns)) => {
                let (id, new) = self.of_opened(opened, stream, took_ns, socket);
                self.add(now_ns, id, new, None);
            }
            found => self.take_found(now_ns, found),
        }
        // Others are due at once where one has won or failed.
        self.due(now_ns);
        is_open
    }

    fn take_found(&mut self, _now_ns: u64, found: Option<Found>) {
        if let Some(Found::Failed(error)) = found {
            self.finish(Err(error));
        }
    }

    fn of_opened(
        &self,
        opened: Opened,
        stream: StreamId,
        took_ns: u64,
        socket: SocketId,
    ) -> (u32, NewStream) {
        let spec = match &self.side {
            Side::Client(dialler) => dialler.specs[stream.index()].unwrap_or_default(),
            _ => StreamSpec::default(),
        };
        let new = NewStream {
            stream,
            spec,
            socket,
            parts: opened.parts,
            route: Some((opened.route, took_ns)),
        };
        (opened.id, new)
    }
}
