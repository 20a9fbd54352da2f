//! A listening server: its connections, who may open one, and how many.

use std::collections::HashMap;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use mstcp_proto::code;
use mstcp_proto::handshake::{Admission, Admitted, NotAdmitted, Proof};
use mstcp_proto::hello::{self, Hello};

use super::Incoming;
use crate::config::ServerConfig;
use crate::dial;
use crate::driver::Driver;
use crate::error::Error;
use crate::handshake_socket::{HandshakeSocket, StreamParts};
use crate::layers::Layer;
use crate::sys;

/// Hellos that may be handled at once after a pause: as many as the rate allows in this time.
const HELLO_BURST_NS: u64 = 1_000_000_000;

pub(crate) type ConnectionId = [u8; 16];

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream that joins a connection, its hellos done except for the CONFIRM.
pub(crate) struct JoinedStream {
    pub(crate) parts: StreamParts,
    pub(crate) hello: Hello,
    pub(crate) confirm: Proof,
}

/// State that a server shares with one of its connections.
pub(super) struct ConnectionEntry {
    /// How many streams it has.
    alive: AtomicUsize,
    /// Whether its first hello may come again, on another path.
    is_unconfirmed: AtomicBool,
    has_joined: AtomicBool,
    joined: Mutex<Vec<JoinedStream>>,
    waker: Mutex<Option<Waker>>,
}

impl ConnectionEntry {
    /// Hand a stream over to the connection.
    pub(super) fn push_joined(&self, joined: JoinedStream) {
        locked(&self.joined).push(joined);
        self.has_joined.store(true, Ordering::Release);
        if let Some(waker) = &*locked(&self.waker) {
            waker.wake_by_ref();
        }
    }
}

/// The connections of a listening server, and who may open one.
pub struct Server {
    pub(super) config: ServerConfig,
    admission: Mutex<Admission>,
    connections: Mutex<HashMap<ConnectionId, Arc<ConnectionEntry>>>,
    /// How many connections each host has.
    hosts: Mutex<HashMap<IpAddr, usize>>,
    next_turn_ns: Mutex<u64>,
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
            connections: Mutex::default(),
            hosts: Mutex::default(),
            next_turn_ns: Mutex::new(0),
        }))
    }

    /// Begin with a socket that was accepted; it must not block.
    ///
    /// # Errors
    /// The system refuses what is needed of the socket.
    pub fn accept(self: &Arc<Self>, now_ns: u64, socket: OwnedFd) -> Result<Incoming, Error> {
        let layer = self.layer()?;
        self.accept_through(now_ns, socket, layer)
    }

    /// As [`Server::accept`], with TLS of the shell's.
    ///
    /// # Errors
    /// As there.
    pub fn accept_through(
        self: &Arc<Self>,
        now_ns: u64,
        socket: OwnedFd,
        layer: Option<Layer>,
    ) -> Result<Incoming, Error> {
        dial::send_at_once(&socket)?;
        let (_, peer) = dial::addresses(&socket)?;
        Incoming::new(
            Arc::clone(self),
            now_ns,
            peer,
            HandshakeSocket::new(socket, layer),
        )
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

    pub(super) fn timeout_ns(&self) -> u64 {
        self.config.transport.connect_timeout.as_nanos() as u64
    }

    /// When the limit of hellos a second lets a hello be handled.
    pub(super) fn turn_ns(&self, now_ns: u64) -> Result<u64, Error> {
        let mut next_ns = locked(&self.next_turn_ns);
        let rate = self.config.max_hellos_per_s;
        let turn_ns = (*next_ns).max(now_ns.saturating_sub(HELLO_BURST_NS));
        if turn_ns > now_ns + self.timeout_ns() {
            return Err(Error::NotAdmitted {
                code: code::LIMIT_EXCEEDED,
                reason: format!("more than {rate} hellos come in a second"),
            });
        }
        *next_ns = turn_ns + (1e9 / rate) as u64;
        Ok(turn_ns)
    }

    /// Whether a first hello alone opens a connection: everybody may open one, so CONFIRM proves nothing more.
    pub(super) fn is_open_to_all(&self) -> bool {
        locked(&self.admission).is_open_to_all()
    }

    /// Whether a host has connections: the other streams of a busy client may say their hellos late.
    pub(super) fn has_connections_of(&self, host: IpAddr) -> bool {
        locked(&self.hosts).contains_key(&host)
    }

    pub(super) fn connection(&self, id: &ConnectionId) -> Option<Arc<ConnectionEntry>> {
        locked(&self.connections).get(id).map(Arc::clone)
    }

    pub(super) fn admit(&self, now_ns: u64, opening: &[u8]) -> Result<Admitted, NotAdmitted> {
        let connections = locked(&self.connections);
        let mut admission = locked(&self.admission);
        let hello = hello::split(opening).and_then(|(_, body, _)| Hello::decode_body(body));
        let id = hello.map_or(ConnectionId::default(), |hello| hello.connection_id);
        let entry = connections.get(&id);
        if let Some(entry) = entry {
            admission.admit_again(&id, entry.is_unconfirmed.load(Ordering::Relaxed));
        }
        let alive = |_: &ConnectionId| Some(entry?.alive.load(Ordering::Relaxed));
        admission.admit(now_ns, opening, sys::random(), alive)
    }

    pub(super) fn refuse(&self, opening: &[u8], code: u16, reason: &str) -> NotAdmitted {
        locked(&self.admission).refuse(opening, sys::random(), code, reason)
    }

    /// Register a connection by its id.
    pub(super) fn open(
        self: &Arc<Self>,
        now_ns: u64,
        id: ConnectionId,
        host: IpAddr,
    ) -> Registration {
        let entry = Arc::new(ConnectionEntry {
            alive: AtomicUsize::new(1),
            is_unconfirmed: AtomicBool::new(false),
            has_joined: AtomicBool::new(false),
            joined: Mutex::default(),
            waker: Mutex::default(),
        });
        locked(&self.connections).insert(id, Arc::clone(&entry));
        Registration {
            server: Arc::clone(self),
            id,
            host,
            entry,
            now_ns,
            is_open: false,
            has_ended: false,
        }
    }

    /// Count a plain connection.
    pub(super) fn open_plain(self: &Arc<Self>) -> Result<PlainPermit, Error> {
        let admitted = locked(&self.admission).admit_plain();
        admitted.map_err(|reason| Error::NotAdmitted {
            code: code::LIMIT_EXCEEDED,
            reason,
        })?;
        Ok(PlainPermit(Arc::clone(self)))
    }
}

/// Counts as one of the server's plain connections until it is dropped.
pub(crate) struct PlainPermit(Arc<Server>);

impl Drop for PlainPermit {
    fn drop(&mut self) {
        locked(&self.0.admission).forget_plain();
    }
}

/// A connection's entry in its server's table; dropping it removes the entry.
pub(crate) struct Registration {
    server: Arc<Server>,
    id: ConnectionId,
    host: IpAddr,
    entry: Arc<ConnectionEntry>,
    /// For the server's clock: when it was last told the time.
    now_ns: u64,
    is_open: bool,
    has_ended: bool,
}

impl Registration {
    pub(crate) fn connection_id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) fn set_waker(&self, waker: &Waker) {
        *locked(&self.entry.waker) = Some(waker.clone());
    }

    pub(crate) fn note(&mut self, now_ns: u64, alive: usize, is_unconfirmed: bool) {
        self.now_ns = now_ns;
        self.entry.alive.store(alive, Ordering::Relaxed);
        let entry = &self.entry;
        entry
            .is_unconfirmed
            .store(is_unconfirmed, Ordering::Relaxed);
    }

    /// Note that the connection is open.
    pub(super) fn open(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.is_open = true;
        *locked(&self.server.hosts).entry(self.host).or_default() += 1;
    }

    pub(crate) fn has_joined(&self) -> bool {
        self.entry.has_joined.load(Ordering::Acquire)
    }

    pub(crate) fn take_joined(&self) -> Vec<JoinedStream> {
        self.entry.has_joined.store(false, Ordering::Release);
        std::mem::take(&mut *locked(&self.entry.joined))
    }

    /// Let no more streams join; a connection that ended well is remembered for some time.
    pub(crate) fn end(&mut self, farewell: Option<Vec<u8>>) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        locked(&self.server.connections).remove(&self.id);
        // Closes their sockets.
        self.take_joined();
        let mut admission = locked(&self.server.admission);
        match farewell {
            Some(farewell) => admission.remember(self.now_ns, &self.id, farewell),
            None if self.is_open => admission.forget(&self.id),
            None => admission.withdraw(&self.id),
        }
        drop(admission);
        let mut hosts = locked(&self.server.hosts);
        if let (true, Some(count)) = (self.is_open, hosts.get_mut(&self.host)) {
            *count -= 1;
            if *count == 0 {
                hosts.remove(&self.host);
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.end(None);
    }
}

/// Make the driver of a connection of its first stream, whose CONFIRM may still be to come.
pub(super) fn open(
    server: &Arc<Server>,
    now_ns: u64,
    mut registration: Registration,
    parts: StreamParts,
    admitted: Admitted,
    is_confirmed: bool,
) -> Result<Driver, Error> {
    registration.open(now_ns);
    let joined = JoinedStream {
        parts,
        hello: admitted.hello,
        confirm: admitted.confirm,
    };
    let is_open_to_all = server.is_open_to_all();
    Driver::accepted(
        now_ns,
        &server.config,
        registration,
        joined,
        is_confirmed,
        is_open_to_all,
    )
}
