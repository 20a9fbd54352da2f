//! The states of a connection and of its streams, as docs/protocol.md draws them.

use std::net::SocketAddr;

use crate::error::RemoteError;

/// Where a stream of a connection is. Before it is added it belongs to [`crate::handshake`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamState {
    /// It carries frames.
    #[default]
    Open,
    /// The peer lives and reports nothing of what went over it: others carry that, and it gets no new frames.
    Stalled,
    /// It is taken out: no new frames, and LAST once the peer has reported those it took.
    Retiring,
    /// LAST was sent on it: nothing follows.
    Ended,
    /// It broke, ended or was given up.
    Gone,
}

/// Where a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionState {
    /// It has a stream, and the application has not closed it.
    Open,
    /// It has no stream and waits for one to come back.
    Waiting,
    /// The application closed it: what was written, and the FIN, are on their way.
    Draining,
    /// The peer has everything: each stream gets its LAST, and the peer's own end is awaited.
    Ending,
    /// It is over.
    Closed,
}

/// How a connection came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The application closed it, and the peer has everything that was written.
    Delivered,
    /// The application closed it, and the peer took nothing more for too long.
    Undelivered {
        /// Bytes that were written and that the peer has not acknowledged.
        bytes: u64,
    },
    /// No stream was left, and none came back in time.
    Lost,
}

/// What a shell is told by [`crate::Connection::poll_event`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The first hello was answered: further streams may join, see [`crate::Connection::client`].
    Opened,
    /// Either side gave a stream up, or it was not confirmed: reset its socket. A client opens it again.
    StreamGone {
        /// Its index, free for another stream from now on.
        slot: usize,
    },
    /// The hello of a stream that joins was answered: see [`crate::Connection::join`].
    StreamJoined {
        /// Its index.
        slot: usize,
    },
    /// The peer refuses a stream that joins, or does not answer as it must: reset its socket.
    StreamRefused {
        /// Its index, free for another stream from now on.
        slot: usize,
        /// Why.
        error: RemoteError,
    },
    /// What a stream carries does not come through.
    StreamStalled {
        /// Its index.
        slot: usize,
    },
    /// A stream that had stalled brings things through again.
    StreamRecovered {
        /// Its index.
        slot: usize,
    },
    /// The server accepts further streams at these addresses, and no more at others that it named before.
    Addresses(Vec<SocketAddr>),
    /// The connection is over: close the sockets.
    Closed(Outcome),
}

impl Event {
    /// The slot whose stream is gone, if one is: its socket is used no more.
    pub fn gone_slot(&self) -> Option<usize> {
        match self {
            Self::StreamGone { slot } | Self::StreamRefused { slot, .. } => Some(*slot),
            _ => None,
        }
    }
}
