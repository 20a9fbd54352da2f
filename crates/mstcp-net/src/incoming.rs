//! The server's side: sockets that were accepted, until they open a connection or join one.
//!
//! A [`Server`] knows the connections; each accepted socket is an [`Incoming`], which waits for nothing, as a [`Driver`] does.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mstcp_proto::handshake::{
    confirm_frame, Admission, Admitted, NotAdmitted, Proof, CONFIRM_BYTES,
};
use mstcp_proto::{Hello, RemoteError};

use crate::config::ServerConfig;
use crate::dial;
use crate::driver::Driver;
use crate::error::Error;
use crate::layers::Layer;
use crate::sys;
use crate::wire::Wire;

/// How long a client may take to hear that it is not let in, in nanoseconds.
const FAREWELL_NS: u64 = 2_000_000_000;

type ConnectionId = [u8; 16];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream that joins a connection, its hellos done except for the CONFIRM.
pub(crate) struct Joined {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) layer: Option<Layer>,
    pub(crate) behind: Vec<u8>,
    pub(crate) id: u32,
    pub(crate) priority: u32,
    pub(crate) confirm: Proof,
}

/// The stream that has opened a connection.
pub(crate) struct Accepted {
    pub(crate) socket: Arc<OwnedFd>,
    pub(crate) layer: Option<Layer>,
    pub(crate) behind: Vec<u8>,
    pub(crate) hello: Hello,
    /// The CONFIRM that is still to come.
    pub(crate) confirm: Option<Proof>,
}

/// What a server and one of its connections tell each other.
#[derive(Default)]
struct Door {
    /// How many streams it has.
    alive: AtomicUsize,
    has_joined: AtomicBool,
    joined: Mutex<Vec<Joined>>,
    waker: Mutex<Option<Waker>>,
}

/// The connections of a listening server, and who may open one.
pub struct Server {
    config: ServerConfig,
    admission: Mutex<Admission>,
    doors: Mutex<HashMap<ConnectionId, Arc<Door>>>,
}

impl Server {
    /// A server without connections.
    ///
    /// # Errors
    /// [`Error::Config`]: the configuration makes no sense.
    pub fn new(config: ServerConfig) -> Result<Arc<Self>, Error> {
        config.check()?;
        let admission = Admission::new(&config.secret, config.max_connections);
        let admission = match config.authenticate_frames {
            true => admission.requiring_records(),
            false => admission,
        };
        Ok(Arc::new(Self {
            config,
            admission: Mutex::new(admission),
            doors: Mutex::default(),
        }))
    }

    /// Begin with a socket that was accepted; it must not block.
    ///
    /// # Errors
    /// The system refuses what is needed of the socket.
    pub fn accept(self: &Arc<Self>, now_ns: u64, socket: OwnedFd) -> Result<Incoming, Error> {
        dial::prepare(&socket)?;
        let (_, peer) = dial::addresses(&socket)?;
        let timeout_ns = self.config.transport.connect_timeout.as_nanos() as u64;
        Ok(Incoming {
            wire: Wire::new(socket, self.layer()?),
            server: Arc::clone(self),
            peer,
            phase: Phase::Hello,
            deadline_ns: now_ns + timeout_ns,
        })
    }

    #[cfg(feature = "tls")]
    fn layer(&self) -> Result<Option<Layer>, Error> {
        let Some(config) = &self.config.tls else {
            return Ok(None);
        };
        let tls = rustls::ServerConnection::new(Arc::clone(config));
        let tls = tls.map_err(|error| Error::Config(format!("TLS cannot be begun: {error}")))?;
        let layer = crate::tls::TlsLayer::new(tls)?;
        Ok(Some(Layer::Tls(Box::new(layer))))
    }

    #[cfg(not(feature = "tls"))]
    fn layer(&self) -> Result<Option<Layer>, Error> {
        Ok(None)
    }

    fn admit(&self, now_ns: u64, opening: &[u8]) -> Result<Admitted, NotAdmitted> {
        let doors = locked(&self.doors);
        let alive = |id: &ConnectionId| Some(doors.get(id)?.alive.load(Ordering::Relaxed));
        locked(&self.admission).admit(now_ns, opening, sys::random(), alive)
    }

    fn forget(&self, now_ns: u64, id: &ConnectionId, farewell: Option<Vec<u8>>) {
        locked(&self.doors).remove(id);
        match farewell {
            Some(farewell) => locked(&self.admission).remember(now_ns, id, farewell),
            None => locked(&self.admission).forget(id),
        }
    }
}

/// What a server's connection is to its server. Dropping it ends that.
pub(crate) struct Membership {
    server: Arc<Server>,
    id: ConnectionId,
    door: Arc<Door>,
    /// For the server's clock: when it was last told the time.
    now_ns: u64,
    has_ended: bool,
}

impl Membership {
    pub(crate) fn connection_id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) fn set_waker(&self, waker: &Waker) {
        *locked(&self.door.waker) = Some(waker.clone());
    }

    pub(crate) fn set_alive(&self, count: usize) {
        self.door.alive.store(count, Ordering::Relaxed);
    }

    pub(crate) fn note_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    pub(crate) fn has_joined(&self) -> bool {
        self.door.has_joined.load(Ordering::Acquire)
    }

    pub(crate) fn take_joined(&self) -> Vec<Joined> {
        self.door.has_joined.store(false, Ordering::Release);
        std::mem::take(&mut *locked(&self.door.joined))
    }

    /// Let no more streams join; one that ended well is remembered for some time.
    pub(crate) fn end(&mut self, farewell: Option<Vec<u8>>) {
        if !std::mem::replace(&mut self.has_ended, true) {
            self.server.forget(self.now_ns, &self.id, farewell);
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.end(None);
    }
}

enum Phase {
    /// The client's hello is awaited, after TLS's handshake if there is one.
    Hello,
    /// The answer was sent, and is to be confirmed: the hello may be a recorded one.
    Confirm {
        admitted: Box<Admitted>,
        membership: Membership,
    },
    /// Who is not let in is told so; what it says is thrown away.
    Farewell { why: Option<Error>, is_shut: bool },
    /// It was turned into something else.
    Done,
}

/// A socket that was accepted.
pub struct Incoming {
    wire: Wire,
    server: Arc<Server>,
    peer: SocketAddr,
    phase: Phase,
    deadline_ns: u64,
}

/// How far an accepted socket is.
#[derive(Debug)]
#[non_exhaustive]
pub enum Progress {
    /// It is to be watched for what comes, and `for_room` for room.
    Waits {
        /// Whether it is also watched for room.
        for_room: bool,
    },
    /// It has opened a connection, and is its first stream.
    Opened(Box<Driver>),
    /// It has joined a connection, whose waker was called.
    Joined,
    /// It is closed; the error tells why it was not let in, none where its connection had ended well.
    Refused(Option<Error>),
}

impl Incoming {
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
        self.deadline_ns
    }

    /// Go on: the socket is readable or writable, or the time has come. After anything but [`Progress::Waits`] it is done.
    pub fn advance(&mut self, now_ns: u64) -> Progress {
        if now_ns >= self.deadline_ns {
            return self.refuse(Error::NoAnswer {
                peer: self.peer,
                seconds: self.server.config.transport.connect_timeout.as_secs(),
            });
        }
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
            let has_come = match self.wire.read() {
                Ok(has_come) => has_come,
                Err(error) => return Err(self.failed(error)),
            };
            if let Some(progress) = self.step(now_ns)? {
                return Ok(progress);
            }
            let is_sent = self.wire.flush()?;
            if let (Phase::Farewell { is_shut, .. }, true) = (&mut self.phase, is_sent) {
                if !std::mem::replace(is_shut, true) {
                    use std::os::fd::AsRawFd;
                    sys::shut(self.wire.socket.as_raw_fd());
                }
            }
            if !has_come {
                let for_room = self.wire.has_unsent();
                return Ok(Progress::Waits { for_room });
            }
        }
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::Handshake {
            peer: self.peer,
            error: Arc::new(error),
        }
    }

    /// Use what has come.
    fn step(&mut self, now_ns: u64) -> Result<Option<Progress>, Error> {
        match &self.phase {
            Phase::Hello => match self.wire.take_hello()? {
                Some(opening) => self.on_hello(now_ns, &opening),
                None => Ok(None),
            },
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

    fn on_hello(&mut self, now_ns: u64, opening: &[u8]) -> Result<Option<Progress>, Error> {
        let admitted = match self.server.admit(now_ns, opening) {
            Ok(admitted) => admitted,
            Err(NotAdmitted::Malformed(error)) => return Err(error.into()),
            Err(NotAdmitted::Refused { answer, code, .. }) => {
                return self.say_farewell(now_ns, &answer, Some(RemoteError::Refused(code).into()));
            }
            Err(NotAdmitted::Ended { answer }) => {
                return self.say_farewell(now_ns, &answer, None);
            }
        };
        let written = self.wire.write(&admitted.answer);
        written.map_err(|error| self.failed(error))?;
        if let Some(keys) = &admitted.record_keys {
            self.wire.begin_records(keys, false)?;
        }
        if !admitted.opens() {
            self.wire.flush()?;
            return Ok(Some(self.join(admitted)));
        }
        let id = admitted.hello.connection_id;
        let door = Arc::new(Door::default());
        door.alive.store(1, Ordering::Relaxed);
        locked(&self.server.doors).insert(id, Arc::clone(&door));
        let membership = Membership {
            server: Arc::clone(&self.server),
            id,
            door,
            now_ns,
            has_ended: false,
        };
        if locked(&self.server.admission).is_open_to_all() {
            // CONFIRM proves nothing more, and data may come before it.
            self.wire.flush()?;
            let confirm = Some(admitted.confirm);
            return self.open(now_ns, admitted.hello, membership, confirm);
        }
        self.phase = Phase::Confirm {
            admitted: Box::new(admitted),
            membership,
        };
        self.step(now_ns)
    }

    fn say_farewell(
        &mut self,
        now_ns: u64,
        answer: &[u8],
        why: Option<Error>,
    ) -> Result<Option<Progress>, Error> {
        let written = self.wire.write(answer);
        written.map_err(|error| self.failed(error))?;
        self.deadline_ns = now_ns + FAREWELL_NS;
        self.phase = Phase::Farewell {
            why,
            is_shut: false,
        };
        Ok(None)
    }

    fn take_wire(&mut self) -> (Arc<OwnedFd>, Option<Layer>, Vec<u8>) {
        let empty = Wire::again(Arc::clone(&self.wire.socket));
        std::mem::replace(&mut self.wire, empty).into_parts()
    }

    fn join(&mut self, admitted: Admitted) -> Progress {
        self.phase = Phase::Done;
        let (socket, layer, behind) = self.take_wire();
        let door = locked(&self.server.doors)
            .get(&admitted.hello.connection_id)
            .map(Arc::clone);
        // If the connection is over the stream is not needed.
        if let Some(door) = door {
            locked(&door.joined).push(Joined {
                socket,
                layer,
                behind,
                id: admitted.hello.stream_id,
                priority: admitted.hello.priority,
                confirm: admitted.confirm,
            });
            door.has_joined.store(true, Ordering::Release);
            if let Some(waker) = &*locked(&door.waker) {
                waker.wake_by_ref();
            }
        }
        Progress::Joined
    }

    fn on_confirm(&mut self, now_ns: u64, confirm: &[u8]) -> Result<Option<Progress>, Error> {
        let Phase::Confirm {
            admitted,
            membership,
        } = std::mem::replace(&mut self.phase, Phase::Done)
        else {
            return Ok(None);
        };
        if confirm != confirm_frame(&admitted.confirm) {
            return Err(RemoteError::NotConfirmed.into());
        }
        self.open(now_ns, admitted.hello, membership, None)
    }

    fn open(
        &mut self,
        now_ns: u64,
        hello: Hello,
        mut membership: Membership,
        confirm: Option<Proof>,
    ) -> Result<Option<Progress>, Error> {
        self.phase = Phase::Done;
        membership.note_time(now_ns);
        let (socket, layer, behind) = self.take_wire();
        let accepted = Accepted {
            socket,
            layer,
            behind,
            hello,
            confirm,
        };
        let transport = &self.server.config.transport;
        let driver = Driver::accepted(now_ns, transport, membership, accepted)?;
        Ok(Some(Progress::Opened(Box::new(driver))))
    }
}
