//! One attempt to open a stream: connecting, TLS, hello, answer, CONFIRM.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use mstcp_proto::frame::{Parsed, Parser, HEADER_BYTES, MAX_PAYLOAD_BYTES};
use mstcp_proto::handshake::{ClientHandshake, ClientHello};
use mstcp_proto::hello::MAGIC;
use mstcp_proto::Control;
use mstcp_proto::RemoteError;
use mstcp_proto::RECORD_OVERHEAD_BYTES;
use rustix::io::Errno;

use super::SocketId;
use crate::config::ClientConfig;
use crate::dial::{self, Route};
use crate::error::Error;
use crate::handshake_socket::{HandshakeSocket, StreamParts};
use crate::layers::{CipherLayer, Layer};
use crate::sys;

/// What is awaited.
#[derive(Debug)]
enum Phase {
    /// TCP's answer.
    Connecting,
    /// The end of TLS's handshake.
    Securing,
    /// Its turn to say the hello.
    Ready,
    /// The answer to the hello.
    Greeted(ClientHello),
    /// Why the peer refuses the stream.
    Refused(RemoteError),
    /// Room for the CONFIRM.
    Confirming { id: u32 },
}

/// An attempt.
#[derive(Debug)]
pub(super) struct OpeningStream {
    pub(super) route: Route,
    wire: HandshakeSocket,
    phase: Phase,
    has_records: bool,
}

/// A stream that is open.
#[derive(Debug)]
pub(super) struct OpenedStream {
    pub(super) route: Route,
    pub(super) parts: StreamParts,
    pub(super) socket: SocketId,
    pub(super) id: u32,
}

/// How far an attempt is.
#[derive(Debug)]
pub(super) enum Progress {
    /// It waits for its socket.
    Waits,
    /// It is to say its hello: see [`OpeningStream::greet`].
    Ready,
    /// It is to be turned into an [`OpenedStream`].
    Done { id: u32 },
}

impl OpeningStream {
    /// Begin to connect, over a socket that is bound or connected if one is given.
    pub(super) fn new(
        config: &ClientConfig,
        route: Route,
        given: Option<OwnedFd>,
    ) -> Result<Self, Error> {
        let (socket, is_connected) = match given {
            Some(socket) => route.dial_over(socket)?,
            None => route.dial(&config.socket)?,
        };
        let mut opening = Self {
            route,
            wire: HandshakeSocket::new(socket, None),
            phase: Phase::Connecting,
            has_records: config.authenticate_frames,
        };
        if is_connected {
            opening.secure(config)?;
        }
        Ok(opening)
    }

    pub(super) fn socket(&self) -> &Arc<OwnedFd> {
        &self.wire.socket
    }

    /// Whether it waits for bytes, and for room or for TCP.
    pub(super) fn interest(&self) -> (bool, bool) {
        match self.phase {
            // What comes before the hello waits for it.
            Phase::Connecting => (false, true),
            Phase::Ready => (false, self.wire.has_unsent()),
            _ => (true, self.wire.has_unsent()),
        }
    }

    /// Whether TCP has connected.
    pub(super) fn is_connected(&self) -> bool {
        !matches!(self.phase, Phase::Connecting)
    }

    /// Whether it is to say its hello.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Whether the peer has refused it, and its reason is awaited.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self.phase, Phase::Refused(_))
    }

    /// The round-trip time of its path, where TCP knows it.
    pub(super) fn round_trip_ns(&self) -> u64 {
        sys::path(self.wire.socket.as_raw_fd()).map_or(0, |(path, _)| 2 * path.delay_ns)
    }

    /// Application bytes that fill a segment, in a frame of the protocol or as they are.
    pub(super) fn payload_bytes(&self, config: &ClientConfig) -> usize {
        let most = sys::segment_bytes(self.wire.socket.as_raw_fd());
        let header_bytes = if config.is_plain { 0 } else { HEADER_BYTES };
        let layer_bytes = match self.has_records {
            true => RECORD_OVERHEAD_BYTES,
            false => self.wire.overhead_bytes(),
        };
        let segment_bytes = config.segment_bytes.min(most);
        let payload_bytes = segment_bytes.saturating_sub(header_bytes + layer_bytes);
        payload_bytes.clamp(1, MAX_PAYLOAD_BYTES)
    }

    /// Begin TLS on a connected socket.
    fn secure(&mut self, config: &ClientConfig) -> Result<(), Error> {
        if !config.is_plain {
            dial::prepare(&self.wire.socket)?;
        }
        if let Some(layer) = layer(config, &self.route)? {
            self.wire.set_layer(layer);
        }
        self.phase = Phase::Securing;
        self.note_secured();
        self.flush()
    }

    fn note_secured(&mut self) {
        if matches!(self.phase, Phase::Securing) && self.wire.is_open() {
            self.phase = Phase::Ready;
        }
    }

    /// Say the hello.
    pub(super) fn greet(&mut self, greeting: ClientHello) -> Result<(), Error> {
        self.write(&greeting.bytes)?;
        self.phase = Phase::Greeted(greeting);
        self.flush()
    }

    /// Go on where the socket may have room or, if `is_readable`, bytes. `client` has said the hello.
    pub(super) fn advance(
        &mut self,
        config: &ClientConfig,
        client: Option<&mut ClientHandshake>,
        is_readable: bool,
    ) -> Result<Progress, Error> {
        if matches!(self.phase, Phase::Connecting) {
            match dial::connected(&self.wire.socket) {
                Ok(()) => self.secure(config)?,
                Err(Errno::NOTCONN) => return Ok(Progress::Waits),
                Err(errno) => return Err(self.route.error(errno)),
            }
        }
        if is_readable {
            self.read(client)?;
        }
        self.flush()?;
        Ok(match self.phase {
            Phase::Ready => Progress::Ready,
            Phase::Confirming { id } if !self.wire.has_unsent() => Progress::Done { id },
            _ => Progress::Waits,
        })
    }

    fn read(&mut self, mut client: Option<&mut ClientHandshake>) -> Result<(), Error> {
        loop {
            match &self.phase {
                Phase::Securing => self.note_secured(),
                Phase::Greeted(greeting) => {
                    let greeting = greeting.clone();
                    if let (Some(answer), Some(client)) =
                        (self.take_answer()?, client.as_deref_mut())
                    {
                        self.confirm(client, &greeting, &answer)?;
                        continue;
                    }
                }
                Phase::Refused(error) => {
                    if let Some(reason) = self.reason() {
                        return Err(refusal(error.clone(), reason));
                    }
                }
                _ => {}
            }
            if matches!(
                self.phase,
                Phase::Connecting | Phase::Ready | Phase::Confirming { .. }
            ) {
                return Ok(());
            }
            match self.wire.read() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    // An alert that tells the peer why.
                    let _ = self.wire.flush();
                    return Err(self.failed(error));
                }
            }
        }
    }

    fn take_answer(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let came = &self.wire.received;
        match MAGIC.starts_with(&came[..came.len().min(MAGIC.len())]) {
            true => self.wire.take_hello(),
            false => Err(Error::NotMstcp {
                peer: self.route.destination,
            }),
        }
    }

    fn confirm(
        &mut self,
        client: &mut ClientHandshake,
        greeting: &ClientHello,
        answer: &[u8],
    ) -> Result<(), Error> {
        let confirm = match client.on_answer(greeting, answer) {
            Err(error @ RemoteError::Refused(_)) => {
                self.phase = Phase::Refused(error);
                return Ok(());
            }
            confirm => confirm?,
        };
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

    /// What the CLOSE behind a refusal says, once it has come.
    fn reason(&self) -> Option<String> {
        let (_, parsed) = Parser::new(1).next(&self.wire.received).ok()?;
        match parsed {
            Some(Parsed::Control(Some(Control::Close { reason, .. }))) => Some(reason),
            _ => None,
        }
    }

    /// Why it is given up after it took too long.
    pub(super) fn late(&self, config: &ClientConfig, seconds: u64) -> Error {
        let peer = self.route.destination;
        match &self.phase {
            Phase::Connecting => Error::NoAnswer { peer, seconds },
            Phase::Refused(error) => error.clone().into(),
            Phase::Securing => {
                let problem = format!(
                    "the peer did not answer the TLS handshake within {} s: it may not use TLS",
                    config.transport.handshake_timeout.as_secs_f64()
                );
                let error = io::Error::new(io::ErrorKind::TimedOut, problem);
                Error::Handshake {
                    peer,
                    error: Arc::new(error),
                }
            }
            _ => Error::NoHello,
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.wire.write(bytes).map_err(|error| self.failed(error))
    }

    fn flush(&mut self) -> Result<(), Error> {
        match self.wire.flush() {
            Ok(_) => Ok(()),
            Err(errno) => Err(self.failed(errno.into())),
        }
    }

    fn failed(&self, error: io::Error) -> Error {
        if let Phase::Refused(refused) = &self.phase {
            return refused.clone().into();
        }
        let has_ended = error.kind() == io::ErrorKind::UnexpectedEof && error.get_ref().is_none();
        let error = match has_ended {
            true => io::Error::new(
                io::ErrorKind::ConnectionReset,
                "the peer ended the stream without an answer",
            ),
            false => error,
        };
        Error::Handshake {
            peer: self.route.destination,
            error: Arc::new(error),
        }
    }

    /// Give it up: the peer sees a broken stream.
    pub(super) fn discard(self) {
        dial::reset_on_close(&self.wire.socket);
    }

    pub(super) fn into_opened(self, socket: SocketId, id: u32) -> OpenedStream {
        let parts = self.wire.into_parts();
        let route = match dial::addresses(&parts.socket) {
            Ok((local, _)) => self.route.of(local),
            Err(_) => self.route,
        };
        OpenedStream {
            route,
            parts,
            socket,
            id,
        }
    }
}

/// How long the reason of a refusal is awaited.
pub(super) const REASON: Duration = Duration::from_millis(500);

fn refusal(error: RemoteError, reason: String) -> Error {
    let is_shown = !reason.is_empty() && !reason.chars().any(char::is_control);
    match is_shown {
        true => Error::Refused { error, reason },
        false => error.into(),
    }
}

fn layer(config: &ClientConfig, route: &Route) -> Result<Option<Layer>, Error> {
    if let Some(ciphers) = &config.ciphers {
        let layer = ciphers.make().and_then(CipherLayer::of_client);
        let layer = layer.map_err(|error| Error::Handshake {
            peer: route.destination,
            error: Arc::new(error),
        })?;
        return Ok(Some(Layer::Cipher(layer)));
    }
    #[cfg(feature = "tls")]
    if let Some(tls) = &config.tls {
        let (config, name) = (Arc::clone(&tls.config), tls.server_name.clone());
        let client = rustls::ClientConnection::new(config, name)
            .map_err(|error| Error::Config(format!("TLS cannot be begun: {error}")))?;
        let layer = crate::tls::TlsLayer::new(client)?;
        return Ok(Some(Layer::Tls(Box::new(layer))));
    }
    Ok(None)
}
