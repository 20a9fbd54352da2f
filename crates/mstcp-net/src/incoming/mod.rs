//! The server's side: sockets that were accepted, until they open a connection or join one.
//!
//! A [`Server`] knows the connections; each accepted socket is an [`Incoming`], which waits for nothing, as a [`Driver`] does.

mod server;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mstcp_proto::code;
use mstcp_proto::handshake::{confirm_frame, Admitted, NotAdmitted, CONFIRM_BYTES};
use mstcp_proto::hello::MAGIC;
use mstcp_proto::RemoteError;

use crate::config::PlainTcp;
use crate::dial;
use crate::driver::Driver;
use crate::error::Error;
use crate::handshake_socket::{HandshakeSocket, StreamParts};

use server::ConnectionId;
pub use server::Server;
pub(crate) use server::{JoinedStream, PlainPermit, Registration};

/// How long a client may take to read its refusal, in nanoseconds.
const FAREWELL_NS: u64 = 2_000_000_000;

enum Phase {
    /// Its TLS, and then the rest, has its turn when the time has come.
    Secure,
    /// The client's hello is awaited, after TLS's handshake if there is one.
    Hello,
    /// It is to be looked at when the time has come.
    Turn { opening: Vec<u8> },
    /// The answer was sent, and is to be confirmed: the hello may be a recorded one.
    Confirm {
        admitted: Box<Admitted>,
        registration: Registration,
    },
    /// The client is refused; what it sends is discarded.
    Farewell { why: Option<Error>, is_shut: bool },
    /// It was turned into something else.
    Done,
}

/// A socket that was accepted.
pub struct Incoming {
    wire: HandshakeSocket,
    server: Arc<Server>,
    peer: SocketAddr,
    phase: Phase,
    /// When the phase ends by itself.
    deadline_ns: u64,
    /// When something else is due in it.
    due_ns: Option<u64>,
}

/// How far an accepted socket is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress {
    /// It is to be watched, and [`Incoming::advance`] called at [`Incoming::timeout_ns`].
    Waits {
        /// Whether it is watched for what comes.
        for_bytes: bool,
        /// Whether it is watched for room.
        for_room: bool,
    },
    /// It has opened a connection, and is its first stream.
    Opened(Box<Driver>),
    /// It has joined the connection of this id, whose waker was called.
    Joined(ConnectionId),
    /// It is closed; the error tells why it was not admitted, none where its connection had ended well.
    Refused(Option<Error>),
}

impl Incoming {
    fn new(
        server: Arc<Server>,
        now_ns: u64,
        peer: SocketAddr,
        wire: HandshakeSocket,
    ) -> Result<Self, Error> {
        let deadline_ns = now_ns + server.timeout_ns();
        let (phase, due_ns) = match wire.has_layer() {
            true => (Phase::Secure, Some(server.turn_ns(now_ns)?)),
            false => (Phase::Hello, None),
        };
        Ok(Self {
            wire,
            server,
            peer,
            phase,
            deadline_ns,
            due_ns,
        })
    }

    /// Its descriptor, to be watched.
    pub fn descriptor(&self) -> &Arc<OwnedFd> {
        &self.wire.socket
    }

    /// Where it comes from.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// When to call [`Incoming::advance`] though nothing happened.
    pub fn timeout_ns(&self) -> u64 {
        (self.due_ns).map_or(self.deadline_ns, |due_ns| due_ns.min(self.deadline_ns))
    }

    /// The connection that it opens once it is confirmed: a stream that joins it confirms as much, and is to be followed by
    /// [`Incoming::advance`].
    pub fn unconfirmed(&self) -> Option<ConnectionId> {
        match &self.phase {
            Phase::Confirm { registration, .. } => Some(registration.connection_id()),
            _ => None,
        }
    }

    /// Go on: the socket is readable or writable, or the time has come. After anything but [`Progress::Waits`] it is done.
    pub fn advance(&mut self, now_ns: u64) -> Progress {
        match self.try_advance(now_ns) {
            Ok(progress) => progress,
            Err(error) => self.refuse(error),
        }
    }

    fn refuse(&mut self, error: Error) -> Progress {
        // An alert that tells the peer why.
        let _ = self.wire.flush();
        match std::mem::replace(&mut self.phase, Phase::Done) {
            Phase::Farewell { why, .. } => Progress::Refused(why),
            _ => {
                dial::reset_on_close(&self.wire.socket);
                Progress::Refused(Some(error))
            }
        }
    }

    fn try_advance(&mut self, now_ns: u64) -> Result<Progress, Error> {
        loop {
            let is_due = self.due_ns.is_some_and(|due_ns| due_ns <= now_ns);
            if let (Phase::Secure | Phase::Turn { .. }, false) = (&self.phase, is_due) {
                let (for_bytes, for_room) = (false, false);
                return Ok(Progress::Waits {
                    for_bytes,
                    for_room,
                });
            }
            let has_come = match &self.phase {
                Phase::Turn { .. } => true,
                _ => self.wire.read().map_err(|error| self.failed(error))?,
            };
            if let Some(progress) = self.step(now_ns)? {
                return Ok(progress);
            }
            let is_sent = self.wire.flush()?;
            if let (Phase::Farewell { is_shut, .. }, true) = (&mut self.phase, is_sent) {
                if !std::mem::replace(is_shut, true) {
                    self.wire.end();
                }
            }
            if has_come {
                continue;
            }
            if now_ns >= self.deadline_ns {
                return Err(self.late());
            }
            return Ok(Progress::Waits {
                for_bytes: true,
                for_room: self.wire.has_unsent(),
            });
        }
    }

    fn late(&self) -> Error {
        match &self.phase {
            Phase::Confirm { .. } => Error::Unconfirmed,
            _ if self.wire.is_open() => Error::NoHello,
            _ => {
                let kind = std::io::ErrorKind::TimedOut;
                let problem = "the TLS handshake was not done in time";
                self.failed(std::io::Error::new(kind, problem))
            }
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        let has_ended = error.kind() == std::io::ErrorKind::UnexpectedEof;
        let error = match (&self.phase, has_ended) {
            (Phase::Confirm { .. }, true) => return Error::Unconfirmed,
            (_, true) => std::io::Error::new(error.kind(), "the stream ended within its hello"),
            (_, false) => error,
        };
        Error::Handshake {
            peer: self.peer,
            error: Arc::new(error),
        }
    }

    /// Use what has come, and do what is due.
    fn step(&mut self, now_ns: u64) -> Result<Option<Progress>, Error> {
        match &self.phase {
            Phase::Secure => {
                self.phase = Phase::Hello;
                self.due_ns = None;
                self.step(now_ns)
            }
            Phase::Hello => self.on_opening(now_ns),
            Phase::Turn { .. } => match std::mem::replace(&mut self.phase, Phase::Done) {
                Phase::Turn { opening } => self.admit(now_ns, &opening),
                _ => Ok(None),
            },
            Phase::Confirm { registration, .. } if registration.has_joined() => {
                self.open_confirmed(now_ns, false)
            }
            Phase::Confirm { .. } => match self.wire.take(CONFIRM_BYTES) {
                Some(confirm) => self.on_confirm(now_ns, &confirm),
                None => Ok(None),
            },
            Phase::Farewell { .. } => {
                self.wire.received.clear();
                Ok(None)
            }
            Phase::Done => Ok(Some(Progress::Refused(None))),
        }
    }

    /// Find out what the stream is.
    fn on_opening(&mut self, now_ns: u64) -> Result<Option<Progress>, Error> {
        if self.is_plain(now_ns) {
            return self.open_plain(now_ns);
        }
        let came = &self.wire.received;
        if !MAGIC.starts_with(&came[..came.len().min(MAGIC.len())]) {
            return Err(RemoteError::BadMagic.into());
        }
        match self.wire.take_hello()? {
            Some(opening) => self.on_hello(now_ns, opening),
            None => Ok(None),
        }
    }

    // --- plain TCP --------------------------------------------------------------------------------------------------------------

    /// Whether what came is not the beginning of a hello.
    fn differs(&self) -> bool {
        let came = &self.wire.received[..self.wire.received.len().min(MAGIC.len())];
        !MAGIC.starts_with(came) || self.wire.has_ended() && came.len() < MAGIC.len()
    }

    fn is_plain(&mut self, now_ns: u64) -> bool {
        let silence_ns = match self.server.config.plain {
            PlainTcp::Never => return false,
            _ if !self.wire.is_open() => return false,
            PlainTcp::Always => return true,
            PlainTcp::After(silence) => silence.as_nanos() as u64,
        };
        let has_magic = self.wire.received.len() >= MAGIC.len();
        if self.differs() {
            return true;
        }
        if !self.wire.received.is_empty() {
            self.due_ns = None;
            return !has_magic && now_ns >= self.deadline_ns;
        }
        let due_ns = *self.due_ns.get_or_insert(now_ns + silence_ns);
        let is_silent = due_ns <= now_ns;
        if is_silent && now_ns < self.deadline_ns && self.server.has_connections_of(self.peer.ip())
        {
            self.due_ns = Some(now_ns + silence_ns);
            return false;
        }
        is_silent
    }

    fn open_plain(&mut self, now_ns: u64) -> Result<Option<Progress>, Error> {
        let place = self.server.open_plain()?;
        let is_decided = self.server.config.plain == PlainTcp::Always || self.differs();
        self.phase = Phase::Done;
        let parts = self.take_parts();
        let driver = Driver::accepted_plain(now_ns, &self.server.config, place, parts, is_decided)?;
        Ok(Some(Progress::Opened(Box::new(driver))))
    }

    // --- MSTCP ------------------------------------------------------------------------------------------------------------------

    fn on_hello(&mut self, now_ns: u64, opening: Vec<u8>) -> Result<Option<Progress>, Error> {
        self.due_ns = None;
        if self.wire.has_layer() {
            return self.admit(now_ns, &opening); // it had its turn
        }
        match self.server.turn_ns(now_ns) {
            Ok(turn_ns) if turn_ns <= now_ns => self.admit(now_ns, &opening),
            Ok(turn_ns) => {
                self.due_ns = Some(turn_ns);
                self.deadline_ns = self.deadline_ns.max(turn_ns);
                self.phase = Phase::Turn { opening };
                Ok(None)
            }
            Err(Error::NotAdmitted { code, reason }) => {
                let refused = self.server.refuse(&opening, code, &reason);
                self.tell(now_ns, refused)
            }
            Err(error) => Err(error),
        }
    }

    fn admit(&mut self, now_ns: u64, opening: &[u8]) -> Result<Option<Progress>, Error> {
        dial::prepare(&self.wire.socket)?;
        let admitted = match self.server.admit(now_ns, opening) {
            Ok(admitted) => admitted,
            Err(refused) => return self.tell(now_ns, refused),
        };
        let written = self.wire.write(&admitted.answer);
        written.map_err(|error| self.failed(error))?;
        if let Some(keys) = &admitted.record_keys {
            self.wire.begin_records(keys, false)?;
        }
        let id = admitted.hello.connection_id;
        let entry = self.server.connection(&id);
        if entry.is_some() || !admitted.opens() {
            self.wire.flush()?;
            return self.join(admitted, entry);
        }
        let registration = self.server.open(now_ns, id, self.peer.ip());
        let is_early = self.server.config.takes_early_data || self.server.is_open_to_all();
        self.due_ns = None;
        self.deadline_ns = now_ns + self.server.timeout_ns();
        self.phase = Phase::Confirm {
            admitted: Box::new(admitted),
            registration,
        };
        if is_early {
            self.wire.flush()?;
            return self.open_confirmed(now_ns, false);
        }
        self.step(now_ns)
    }

    fn tell(&mut self, now_ns: u64, refused: NotAdmitted) -> Result<Option<Progress>, Error> {
        let (answer, why) = match refused {
            NotAdmitted::Malformed(error) => return Err(error.into()),
            NotAdmitted::Refused {
                answer,
                code,
                reason,
            } => (answer, Some(Error::NotAdmitted { code, reason })),
            NotAdmitted::Ended { answer } => (answer, None),
        };
        let written = self.wire.write(&answer);
        written.map_err(|error| self.failed(error))?;
        self.deadline_ns = now_ns + FAREWELL_NS;
        self.phase = Phase::Farewell {
            why,
            is_shut: false,
        };
        Ok(None)
    }

    fn take_parts(&mut self) -> StreamParts {
        let empty = HandshakeSocket::again(Arc::clone(&self.wire.socket));
        std::mem::replace(&mut self.wire, empty).into_parts()
    }

    /// Join a connection, or be another path for its first hello.
    fn join(
        &mut self,
        admitted: Admitted,
        entry: Option<Arc<server::ConnectionEntry>>,
    ) -> Result<Option<Progress>, Error> {
        let entry = entry.ok_or_else(|| Error::NotAdmitted {
            code: code::UNKNOWN_CONNECTION,
            reason: "its connection ended meanwhile".to_owned(),
        })?;
        self.phase = Phase::Done;
        let id = admitted.hello.connection_id;
        entry.push_joined(JoinedStream {
            parts: self.take_parts(),
            hello: admitted.hello,
            confirm: admitted.confirm,
        });
        Ok(Some(Progress::Joined(id)))
    }

    fn on_confirm(&mut self, now_ns: u64, confirm: &[u8]) -> Result<Option<Progress>, Error> {
        match &self.phase {
            Phase::Confirm { admitted, .. } if confirm == confirm_frame(&admitted.confirm) => {
                self.open_confirmed(now_ns, true)
            }
            _ => Err(RemoteError::NotConfirmed.into()),
        }
    }

    /// Open the connection: who opened it has shown that its hello was no recorded one, or need not.
    fn open_confirmed(
        &mut self,
        now_ns: u64,
        is_confirmed: bool,
    ) -> Result<Option<Progress>, Error> {
        let Phase::Confirm {
            admitted,
            registration,
        } = std::mem::replace(&mut self.phase, Phase::Done)
        else {
            return Ok(None);
        };
        let parts = self.take_parts();
        let driver = server::open(
            &self.server,
            now_ns,
            registration,
            parts,
            *admitted,
            is_confirmed,
        )?;
        Ok(Some(Progress::Opened(Box::new(driver))))
    }
}
