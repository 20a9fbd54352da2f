//! One attempt to open a stream: from connecting to the CONFIRM.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use mstcp_proto::handshake::{Client, Greeting};

use crate::config::ClientConfig;
use crate::dial::{self, Route};
use crate::error::Error;
use crate::layers::Layer;
use crate::sys;
use crate::wire::{Parts, Wire};

/// What is awaited.
#[derive(Debug)]
enum Phase {
    /// TCP's answer.
    Connecting,
    /// The answer to the hello; TLS's handshake goes before it.
    Greeted(Greeting),
    /// Room for the CONFIRM.
    Confirming { id: u32 },
}

/// An attempt.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) route: Route,
    wire: Wire,
    phase: Phase,
    priority: u8,
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) route: Route,
    pub(super) parts: Parts,
    pub(super) id: u32,
}

/// How far an attempt is.
#[derive(Debug)]
pub(super) enum Progress {
    /// It waits for its socket.
    Waits,
    /// It is to be turned into an [`Opened`].
    Done { id: u32 },
}

impl Opening {
    pub(super) fn new(config: &ClientConfig, route: Route, priority: u8) -> Result<Self, Error> {
        let socket = route.dial()?;
        Ok(Self {
            route,
            wire: Wire::new(socket, layer(config)?),
            phase: Phase::Connecting,
            priority,
        })
    }

    pub(super) fn socket(&self) -> &Arc<OwnedFd> {
        &self.wire.socket
    }

    /// Whether it waits for room, or for TCP.
    pub(super) fn wants_room(&self) -> bool {
        matches!(self.phase, Phase::Connecting) || self.wire.has_unsent()
    }

    /// Whether TCP has connected.
    pub(super) fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Connecting)
    }

    /// Go on where the socket may have room.
    pub(super) fn on_writable(&mut self, client: &mut Client) -> Result<Progress, Error> {
        if matches!(self.phase, Phase::Connecting) {
            match dial::connected(&self.wire.socket) {
                Ok(()) => {}
                Err(rustix::io::Errno::NOTCONN) => return Ok(Progress::Waits),
                Err(errno) => return Err(self.route.error(errno)),
            }
            let greeting = client.greet(sys::random(), self.priority.into(), &[])?;
            self.write(&greeting.bytes)?;
            self.phase = Phase::Greeted(greeting);
        }
        self.flush()
    }

    /// Go on where something may have come.
    pub(super) fn on_readable(&mut self, client: &mut Client) -> Result<Progress, Error> {
        if !self.is_connected() {
            // A connection that is refused counts as readable too.
            self.on_writable(client)?;
        }
        while let Phase::Greeted(greeting) = &self.phase {
            if let Some(answer) = self.wire.take_hello()? {
                let greeting = greeting.clone();
                self.confirm(client, &greeting, &answer)?;
                break;
            }
            let result = self.wire.read();
            if result.is_err() {
                // An alert that tells the peer why.
                let _ = self.wire.flush();
            }
            if !result.map_err(|error| self.failed(error))? {
                break;
            }
        }
        self.flush()
    }

    fn confirm(
        &mut self,
        client: &mut Client,
        greeting: &Greeting,
        answer: &[u8],
    ) -> Result<(), Error> {
        let confirm = client.on_answer(greeting, answer)?;
        if greeting.hello.records > 0 {
            let keys = client.record_keys(greeting, answer)?;
            self.wire.begin_records(&keys, true)?;
        }
        self.write(&confirm)?;
        self.phase = Phase::Confirming {
            id: greeting.hello.stream_id,
        };
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.wire.write(bytes).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> Result<Progress, Error> {
        let is_sent = self.wire.flush();
        let is_sent = is_sent.map_err(|errno| self.failed(errno.into()))?;
        Ok(match self.phase {
            Phase::Confirming { id } if is_sent => Progress::Done { id },
            _ => Progress::Waits,
        })
    }

    fn failed(&self, error: io::Error) -> Error {
        let error = match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer ended the stream without an answer",
            ),
            _ => error,
        };
        Error::Handshake {
            peer: self.route.destination,
            error: Arc::new(error),
        }
    }

    pub(super) fn into_opened(self, id: u32) -> Opened {
        let parts = self.wire.into_parts();
        let route = match dial::addresses(&parts.socket) {
            Ok((local, _)) => self.route.of(local),
            Err(_) => self.route,
        };
        Opened { route, parts, id }
    }
}

#[cfg(feature = "tls")]
fn layer(config: &ClientConfig) -> Result<Option<Layer>, Error> {
    let Some(tls) = &config.tls else {
        return Ok(None);
    };
    let (config, name) = (Arc::clone(&tls.config), tls.server_name.clone());
    let client = rustls::ClientConnection::new(config, name)
        .map_err(|error| Error::Config(format!("TLS cannot be begun: {error}")))?;
    let layer = crate::tls::TlsLayer::new(client)?;
    Ok(Some(Layer::Tls(Box::new(layer))))
}

#[cfg(not(feature = "tls"))]
fn layer(_config: &ClientConfig) -> Result<Option<Layer>, Error> {
    Ok(None)
}
