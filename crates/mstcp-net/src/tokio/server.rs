//! Accepting connections.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ::tokio::io::AsyncWriteExt;
use ::tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use ::tokio::sync::mpsc;
use ::tokio::task::JoinHandle;
use ::tokio::time::timeout;
use mstcp_proto::handshake::{confirm_frame, Admission, Admitted, NotAdmitted};

use super::driver::{self, Joined, Status};
use super::wire::Wire;
use super::{hello, Connection, Options};
use crate::{Endpoint, RecordLayer};

/// Streams and connections that wait to be taken.
const WAITING: usize = 64;
/// How long to wait where the system has no descriptor left.
const FULL: Duration = Duration::from_millis(100);
/// How long a client may take to hear that its connection has ended.
const FAREWELL: Duration = Duration::from_secs(2);

type ConnectionId = [u8; 16];

/// A connection that further streams may join.
struct Known {
    streams: mpsc::Sender<Joined>,
    status: Arc<Status>,
}

struct Shared {
    began: Instant,
    options: Options,
    admission: Mutex<Admission>,
    known: Mutex<HashMap<ConnectionId, Known>>,
    opened: mpsc::Sender<Connection>,
}

/// Listens for connections. Dropping it stops that; connections that were accepted go on.
#[derive(Debug)]
pub struct Listener {
    address: SocketAddr,
    opened: mpsc::Receiver<Connection>,
    accepting: JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Listener {
    /// Listen on an address; port 0 is any.
    ///
    /// # Errors
    /// The address is taken or none of this host.
    pub async fn bind(address: impl ToSocketAddrs, options: Options) -> io::Result<Self> {
        options.check()?;
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (sender, opened) = mpsc::channel(WAITING);
        let admission = Admission::new(&options.secret, options.most_connections);
        let shared = Arc::new(Shared {
            began: Instant::now(),
            admission: Mutex::new(match options.authenticate_frames {
                true => admission.requiring_records(),
                false => admission,
            }),
            known: Mutex::default(),
            opened: sender,
            options,
        });
        let accepting = ::tokio::spawn(accept_all(listener, shared));
        Ok(Self {
            address,
            opened,
            accepting,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    /// Wait for the next connection; its further streams join by themselves.
    ///
    /// # Errors
    /// The listener is gone.
    pub async fn accept(&mut self) -> io::Result<Connection> {
        let opened = self.opened.recv().await;
        opened.ok_or_else(|| io::Error::other("the listener is gone"))
    }
}

async fn accept_all(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) => {
                let shared = Arc::clone(&shared);
                // Who is not let in was told, or is nobody we know.
                ::tokio::spawn(async move { drop(shared.take(socket).await) });
            }
            Err(_) => ::tokio::time::sleep(FULL).await,
        }
    }
}

/// Tell a client that its connection ended well; what it says on the stream is thrown away.
async fn tell_ended(mut wire: Wire, answer: &[u8]) -> io::Result<()> {
    wire.write_all(answer).await?;
    wire.shutdown().await?;
    ::tokio::io::copy(&mut wire, &mut ::tokio::io::sink()).await?;
    Ok(())
}

impl Shared {
    async fn take(self: Arc<Self>, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let mut wire = timeout(hello::HELLO, self.options.accepted(socket)).await??;
        let opening = hello::read(&mut wire).await?;
        let admitted = match self.admit(&opening) {
            Ok(admitted) => admitted,
            Err(NotAdmitted::Refused { answer, .. }) => {
                wire.write_all(&answer).await?;
                return wire.shutdown().await;
            }
            Err(NotAdmitted::Ended { answer }) => {
                return timeout(FAREWELL, tell_ended(wire, &answer)).await?;
            }
            Err(NotAdmitted::Malformed(_)) => return wire.socket().set_zero_linger(),
        };
        wire.write_all(&admitted.answer).await?;
        wire.flush().await?;
        match admitted.opens() {
            true => self.open(wire, admitted).await,
            false => self.join(wire, admitted).await,
        }
    }

    fn admit(&self, opening: &[u8]) -> Result<Admitted, NotAdmitted> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let alive = |id: &ConnectionId| {
            let known = known.get(id)?;
            (!known.streams.is_closed()).then(|| known.status.alive.load(Ordering::Relaxed))
        };
        let mut admission = self
            .admission
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        admission.admit(self.now_ns(), opening, hello::nonce(), alive)
    }

    /// Open a connection once its client has confirmed that its hello is no recorded one.
    async fn open(self: Arc<Self>, mut wire: Wire, admitted: Admitted) -> io::Result<()> {
        let id = admitted.hello.connection_id;
        let (streams, joins) = mpsc::channel(WAITING);
        let status = Arc::new(Status::default());
        status.alive.store(1, Ordering::Relaxed);
        let known = Known {
            streams,
            status: Arc::clone(&status),
        };
        self.known().insert(id, known);
        let payload_bytes = admitted.hello.frame_payload_bytes as usize;
        let opened = self.opened(&mut wire, &admitted).await;
        let result = opened.and_then(|(endpoint, records)| {
            let (socket, layer) = wire.into_parts(records)?;
            let stream = (socket, layer, None);
            driver::start(endpoint, payload_bytes, stream, joins, Arc::clone(&status))
        });
        match result {
            Ok(connection) => {
                let forgetting = Arc::clone(&self);
                let streams = self.known().get(&id).map(|known| known.streams.clone());
                ::tokio::spawn(async move {
                    if let Some(streams) = streams {
                        streams.closed().await;
                    }
                    let farewell = (status.farewell.lock())
                        .unwrap_or_else(PoisonError::into_inner)
                        .take();
                    forgetting.forget(&id, farewell);
                });
                // A listener that is gone takes no more.
                let _ = self.opened.send(connection).await;
                Ok(())
            }
            Err(error) => {
                self.forget(&id, None);
                Err(error)
            }
        }
    }

    async fn opened(
        &self,
        wire: &mut Wire,
        admitted: &Admitted,
    ) -> io::Result<(Endpoint, Option<RecordLayer>)> {
        let mut layer = admitted.record_keys.as_ref().map(RecordLayer::of_server);
        let (confirm, behind) = hello::read_confirm(wire, layer.as_mut()).await?;
        let wanted = confirm_frame(&admitted.confirm);
        if confirm[..] != wanted[..] {
            wire.socket().set_zero_linger()?;
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let payload = admitted.hello.frame_payload_bytes as usize;
        let mut core = self.options.core(payload).map_err(super::invalid)?;
        core.note_priority(0, admitted.hello.priority)
            .map_err(super::invalid)?;
        let mut endpoint = Endpoint::new(core);
        endpoint.receive_early(&admitted.hello.early_data);
        endpoint.receive(0, &behind).map_err(super::invalid)?;
        Ok((endpoint, layer))
    }

    async fn join(&self, wire: Wire, admitted: Admitted) -> io::Result<()> {
        let records = admitted.record_keys.as_ref().map(RecordLayer::of_server);
        let (socket, layer) = wire.into_parts(records)?;
        let streams = self
            .known()
            .get(&admitted.hello.connection_id)
            .map(|known| known.streams.clone());
        let joined = Joined {
            socket,
            layer,
            id: admitted.hello.stream_id,
            confirm: Some(admitted.confirm),
            path: None,
        };
        if let Some(streams) = streams {
            // If the connection is over the stream is not needed.
            let _ = streams.send(joined).await;
        }
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, HashMap<ConnectionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Let no more streams join a connection; one that ended well is remembered for some time.
    fn forget(&self, id: &ConnectionId, farewell: Option<Vec<u8>>) {
        self.known().remove(id);
        let mut admission = self
            .admission
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        match farewell {
            Some(farewell) => admission.remember(self.now_ns(), id, farewell),
            None => admission.forget(id),
        }
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
}
