//! What ends a connection, or keeps one from being opened.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use mstcp_proto::{LocalError, RemoteError};

/// Why a connection could not be opened, or has ended.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration makes no sense; nothing was sent.
    #[error("{0}")]
    Config(String),
    /// The caller asked for something that the protocol does not allow.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// A stream's source address or port cannot be had.
    #[error("cannot connect{}: {}", from(.local), sentence(.error))]
    Bind {
        /// What was asked for; port 0: any.
        local: SocketAddr,
        /// What the system says.
        error: Arc<io::Error>,
    },
    /// A stream could not be connected.
    #[error("cannot connect{} to {} port {}: {}", from(.local), .peer.ip(), .peer.port(), reason(.error, .hint))]
    Connect {
        /// The source address that was asked for; port 0: any.
        local: SocketAddr,
        /// The destination.
        peer: SocketAddr,
        /// What the system says.
        error: Arc<io::Error>,
        /// Why that is so and what to do, where that is known.
        hint: &'static str,
    },
    /// A stream's TLS, or its socket, failed while it was opened.
    #[error("the stream to {peer} failed while it was opened: {error}")]
    Handshake {
        /// The destination.
        peer: SocketAddr,
        /// What rustls or the system says.
        error: Arc<io::Error>,
    },
    /// Nothing was answered in time.
    #[error("{peer} has not answered within {seconds} s")]
    NoAnswer {
        /// The destination.
        peer: SocketAddr,
        /// How long it was awaited.
        seconds: u64,
    },
    /// The peer said no whole hello in time.
    #[error("no complete hello came in time")]
    NoHello,
    /// A client did not confirm that it had read the answer to its hello.
    #[error("the answer to the hello was not confirmed in time")]
    Unconfirmed,
    /// A client's stream is not admitted, and was told so.
    #[error("{reason}")]
    NotAdmitted {
        /// See [`mstcp_proto::code`].
        code: u16,
        /// Why, as a sentence.
        reason: String,
    },
    /// The peer broke the protocol, or refuses the connection.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// What answered the hello is no server of the protocol.
    #[error("{peer} is not an MSTCP server: it answered the hello with something else")]
    NotMstcp {
        /// The destination.
        peer: SocketAddr,
    },
    /// The peer refuses the connection, and says why.
    #[error("{error} ({reason})")]
    Refused {
        /// The code.
        error: RemoteError,
        /// In the peer's words.
        reason: String,
    },
    /// The peer gave the connection up.
    #[error("the peer gave up: {reason}")]
    ClosedByPeer {
        /// See [`mstcp_proto::code`].
        code: u16,
        /// In the peer's words.
        reason: String,
    },
    /// All streams broke, and none could be opened again in time.
    #[error("no stream of the connection is left")]
    Lost,
    /// The connection was closed, and the peer took nothing for too long.
    #[error("closed before the peer had everything: {bytes} bytes were not delivered")]
    Undelivered {
        /// Application bytes that were not acknowledged.
        bytes: u64,
    },
    /// This side has closed the connection, or ended its direction.
    #[error("the connection was closed: nothing can be written any more")]
    Closed,
    /// The system refuses something else.
    #[error(transparent)]
    Io(Arc<io::Error>),
}

impl Error {
    /// The kind of this error as one of I/O.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Config(_) | Self::Local(_) => io::ErrorKind::InvalidInput,
            Self::Bind { error, .. }
            | Self::Connect { error, .. }
            | Self::Handshake { error, .. }
            | Self::Io(error) => error.kind(),
            Self::NoAnswer { .. }
            | Self::NoHello
            | Self::Unconfirmed
            | Self::Undelivered { .. } => io::ErrorKind::TimedOut,
            Self::NotAdmitted { .. } => io::ErrorKind::PermissionDenied,
            Self::Refused { .. } | Self::Remote(RemoteError::Refused(_)) => {
                io::ErrorKind::ConnectionRefused
            }
            Self::Remote(_) | Self::NotMstcp { .. } => io::ErrorKind::InvalidData,
            Self::ClosedByPeer { .. } => io::ErrorKind::ConnectionAborted,
            Self::Lost => io::ErrorKind::ConnectionReset,
            Self::Closed => io::ErrorKind::BrokenPipe,
        }
    }

    /// Whether every other path would say the same.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Remote(_) | Self::Refused { .. } | Self::NotMstcp { .. }
        )
    }
}

/// From where a stream was to go, without what was left to the system.
fn from(local: &SocketAddr) -> String {
    let mut text = String::new();
    if !local.ip().is_unspecified() {
        text += &format!(" address {}", local.ip());
    }
    if local.port() > 0 {
        text += &format!(" port {}", local.port());
    }
    match text.is_empty() {
        true => text,
        false => " from".to_owned() + &text,
    }
}

fn reason(error: &io::Error, hint: &str) -> String {
    match hint.is_empty() {
        true => sentence(error),
        false => hint.to_owned(),
    }
}

/// What the system says, without the number.
fn sentence(error: &io::Error) -> String {
    let text = error.to_string();
    let sentence = text.split(" (os error").next();
    sentence.unwrap_or_default().to_owned()
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(Arc::new(error))
    }
}

impl From<rustix::io::Errno> for Error {
    fn from(errno: rustix::io::Errno) -> Self {
        io::Error::from(errno).into()
    }
}

impl From<mstcp_proto::Error> for Error {
    fn from(error: mstcp_proto::Error) -> Self {
        match error {
            mstcp_proto::Error::Local(error) => error.into(),
            mstcp_proto::Error::Remote(error) => error.into(),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        Self::new(error.kind(), error)
    }
}
