//! What can go wrong.
//!
//! ```text
//! Error
//! ├── Local(LocalError)    the caller's fault; the connection is as it was
//! └── Remote(RemoteError)  the peer's fault; the connection cannot go on
//! ```

use std::fmt;

/// Either side's fault.
#[derive(Debug, Clone, PartialEq)]
pub enum Error {
    /// The caller's.
    Local(LocalError),
    /// The peer's.
    Remote(RemoteError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(error) => error.fmt(f),
            Self::Remote(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<LocalError> for Error {
    fn from(error: LocalError) -> Self {
        Self::Local(error)
    }
}

impl From<RemoteError> for Error {
    fn from(error: RemoteError) -> Self {
        Self::Remote(error)
    }
}

/// The caller asked for something that the protocol does not allow.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LocalError {
    /// A connection needs 1 to 64 streams.
    StreamCount(usize),
    /// No stream has this index.
    NoSuchStream(usize),
    /// No scheduler has this name.
    NoSuchScheduler(String),
    /// Weights are finite, not negative, one per stream, and not all zero.
    BadWeights,
    /// A full-size frame carries 1 to 65,535 application bytes.
    BadFramePayload(usize),
    /// More bytes were reported as sent than were offered.
    SentTooMuch {
        /// Bytes reported.
        reported: usize,
        /// Bytes offered by the last `poll`.
        offered: usize,
    },
    /// Data was written after the end of the application's bytes.
    WriteAfterEnd,
    /// The send queue is full and the caller went on writing.
    SendQueueFull {
        /// Bytes in the queue.
        queued: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

impl fmt::Display for LocalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StreamCount(count) => {
                write!(f, "a connection has 1 to {} streams, not {count}", crate::MAX_STREAMS)
            }
            Self::NoSuchStream(index) => write!(f, "the connection has no stream {index}"),
            Self::NoSuchScheduler(name) => write!(
                f,
                "no scheduler is called '{name}': choose one of {}",
                crate::scheduler::NAMES.join(", ")
            ),
            Self::BadWeights => write!(
                f,
                "weights must be finite and not negative, one for each stream, and one of them above 0"
            ),
            Self::BadFramePayload(bytes) => {
                write!(f, "a full-size frame carries 1 to 65535 bytes, not {bytes}")
            }
            Self::SentTooMuch { reported, offered } => {
                write!(f, "{reported} bytes reported as sent, but only {offered} were offered")
            }
            Self::WriteAfterEnd => write!(f, "data written after the end of the stream was announced"),
            Self::SendQueueFull { queued, limit } => write!(
                f,
                "the send queue holds {queued} bytes and is bounded to {limit}: wait until it has drained"
            ),
        }
    }
}

impl std::error::Error for LocalError {}

/// The peer sent something that breaks the protocol; the connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteError {
    /// The first bytes are not the magic of the protocol.
    BadMagic,
    /// The hello announces more bytes than a hello may have.
    HelloTooLong(u32),
    /// The hello is not a well-formed message or has a value that makes no sense.
    BadHello(&'static str),
    /// The peer speaks another version.
    UnsupportedVersion(u32),
    /// The two high bits of a frame's word name no kind of frame.
    UnknownFrameKind,
    /// A short frame's length is 0 or not below the full size, or a control frame is too long.
    BadFrameLength {
        /// The length announced, in bytes.
        length: usize,
        /// The greatest length allowed, in bytes.
        limit: usize,
    },
    /// Frame numbers on a stream must rise.
    NumberNotRising {
        /// Number of the frame.
        number: u64,
        /// Number of the frame before it on the same stream.
        previous: u64,
    },
    /// No stream can still bring the next frame in order.
    MissingFrame(u64),
    /// Frames on a stream after its FIN.
    DataAfterFin,
    /// A FIN is malformed or contradicts frames or another FIN.
    BadFin,
    /// TCP ended a stream before its FIN: the peer vanished or the path broke.
    StreamTruncated(usize),
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic => write!(f, "the stream does not begin with the MSTCP magic"),
            Self::HelloTooLong(bytes) => {
                write!(
                    f,
                    "the hello announces {bytes} bytes, more than {}",
                    crate::hello::MAX_BODY_BYTES
                )
            }
            Self::BadHello(why) => write!(f, "the hello is wrong: {why}"),
            Self::UnsupportedVersion(version) => {
                write!(
                    f,
                    "the peer speaks version {version}, this library {}",
                    crate::hello::VERSION
                )
            }
            Self::UnknownFrameKind => write!(f, "a frame of unknown kind"),
            Self::BadFrameLength { length, limit } => {
                write!(
                    f,
                    "a frame of {length} bytes where 1 to {limit} are allowed"
                )
            }
            Self::NumberNotRising { number, previous } => {
                write!(
                    f,
                    "frame {number} came after frame {previous} on the same stream"
                )
            }
            Self::MissingFrame(number) => {
                write!(f, "frame {number} is missing and no stream can bring it")
            }
            Self::DataAfterFin => write!(f, "a frame came after the stream's FIN"),
            Self::BadFin => write!(f, "a FIN contradicts the frames or another FIN"),
            Self::StreamTruncated(_) => {
                write!(
                    f,
                    "the stream ended before its FIN: the peer vanished or the path broke"
                )
            }
        }
    }
}

impl std::error::Error for RemoteError {}
