//! What a driver tells its shell, and the numbers it tells it by.

use std::net::SocketAddr;

use rustix::io::Errno;

use crate::error::Error;
use crate::socket::StreamSocket;

/// The number of a socket that is watched; none is used twice by a driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SocketId(pub(super) u64);

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
    /// It could not be opened; it is tried again and again.
    StreamUnreachable {
        /// Which.
        stream: StreamId,
        /// Why, as a sentence.
        reason: String,
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
