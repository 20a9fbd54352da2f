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
    /// A connection keeps one stream at least.
    LastStream,
    /// A plain TCP connection has one stream.
    PlainHasOneStream,
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
    /// Priorities are 0 to 255.
    BadPriority(u32),
    /// A stream joins before the first was answered.
    NotAnswered,
    /// More early data than a hello holds, or on a stream that joins.
    TooMuchEarlyData(usize),
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
            Self::PlainHasOneStream => write!(f, "a plain TCP connection has one stream"),
            Self::LastStream => write!(
                f,
                "this is the last stream: close the connection instead of removing it"
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
            Self::BadPriority(priority) => {
                write!(f, "a stream's priority is 0 to 255, not {priority}")
            }
            Self::NotAnswered => write!(
                f,
                "streams can join once the first hello of the connection was answered"
            ),
            Self::TooMuchEarlyData(bytes) => write!(
                f,
                "{bytes} bytes of early data: the first hello holds at most {}, others none",
                crate::hello::MAX_EARLY_BYTES
            ),
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
    /// What came in the place of an answer to a hello is none.
    NotMstcp,
    /// The hello announces more bytes than a hello may have.
    HelloTooLong(u32),
    /// The hello is not a well-formed message or has a value that makes no sense.
    BadHello(&'static str),
    /// The peer speaks other versions.
    UnsupportedVersion {
        /// The lowest that it speaks.
        least: u32,
        /// The highest that it speaks.
        highest: u32,
    },
    /// The peer refuses the stream with this code; see [`crate::control::code`].
    Refused(u16),
    /// An answer does not fit the hello.
    WrongAnswer(&'static str),
    /// A proof is wrong: the peer does not know the secret, or something on the way changed or replayed a hello.
    NotProved,
    /// A record is too long, or its tag is wrong: something on the way changed, replayed or left out what was sent.
    BadRecord,
    /// The first frame on a stream is not the CONFIRM that it should be.
    NotConfirmed,
    /// A CONFIRM that nobody awaits.
    UnexpectedConfirm,
    /// Bits of a control frame's word that must be 0 are not.
    ReservedBits,
    /// A short frame's length is 0 or not below the full size, or a control frame is too long.
    BadFrameLength {
        /// The length announced, in bytes.
        length: usize,
        /// The greatest length allowed, in bytes.
        limit: usize,
    },
    /// Data beyond what the receiver allowed.
    BeyondWindow {
        /// Offset of the data.
        offset: u64,
        /// The first offset that was not allowed.
        limit: u64,
    },
    /// The body of a control frame of this type has a wrong length.
    BadControl(u64),
    /// A STATUS gives a stream this priority, above 255.
    BadPriority(u32),
    /// An acknowledgement of what was never sent.
    BadAck,
    /// Bytes on a stream after its LAST frame.
    DataAfterLast,
    /// So many small pieces with gaps between them that they would cost more memory than the window.
    TooManyPieces,
    /// A FIN is malformed or contradicts frames or another FIN.
    BadFin,
    /// A hello on a stream that is plain TCP already.
    LateHello,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadMagic => write!(f, "the stream does not begin with the MSTCP magic"),
            Self::NotMstcp => {
                write!(
                    f,
                    "the peer is not an MSTCP server: it answered the hello with something else"
                )
            }
            Self::HelloTooLong(bytes) => {
                write!(
                    f,
                    "the hello announces {bytes} bytes, more than {}",
                    crate::hello::MAX_BODY_BYTES
                )
            }
            Self::BadHello(why) => write!(f, "the hello is wrong: {why}"),
            Self::UnsupportedVersion { least, highest } => {
                write!(f, "the peer speaks version {least}")?;
                if least < highest {
                    write!(f, " to {highest}")?;
                }
                write!(f, ", this library {}", crate::hello::VERSION)
            }
            Self::Refused(code) => write!(f, "the peer refuses the stream: {}", refusal(*code)),
            Self::WrongAnswer(why) => write!(f, "the answer does not fit the hello: {why}"),
            Self::NotProved => write!(
                f,
                "the peer does not prove that it knows the shared secret and saw the same hello"
            ),
            Self::BadRecord => write!(f, "what came on a stream is not what the peer sent there"),
            Self::NotConfirmed => write!(
                f,
                "the stream's first frame does not prove that its sender read the answer"
            ),
            Self::UnexpectedConfirm => write!(f, "a CONFIRM where none is awaited"),
            Self::ReservedBits => write!(f, "a control frame has bits set that must be 0"),
            Self::BadFrameLength { length, limit } => {
                write!(
                    f,
                    "a frame of {length} bytes where 1 to {limit} are allowed"
                )
            }
            Self::BeyondWindow { offset, limit } => {
                write!(
                    f,
                    "data at offset {offset} reaches beyond {limit}, the end of the receive window"
                )
            }
            Self::BadControl(kind) => {
                write!(
                    f,
                    "a control frame of type {kind} has a body of the wrong length"
                )
            }
            Self::BadPriority(priority) => {
                let most = crate::hello::MAX_PRIORITY;
                write!(f, "a priority of {priority} where 0 to {most} are allowed")
            }
            Self::BadAck => write!(f, "an acknowledgement of what was never sent"),
            Self::DataAfterLast => write!(f, "bytes came on a stream after its LAST frame"),
            Self::TooManyPieces => write!(f, "too many small pieces with gaps between them"),
            Self::BadFin => write!(f, "a FIN contradicts the data or another FIN"),
            Self::LateHello => write!(
                f,
                "an MSTCP hello came on a stream that was already treated as plain TCP"
            ),
        }
    }
}

impl std::error::Error for RemoteError {}

fn refusal(code: u16) -> String {
    use crate::control::code::{
        LIMIT_EXCEEDED, NOT_AUTHORISED, UNKNOWN_CONNECTION, UNSUPPORTED_VERSION,
    };
    match code {
        UNSUPPORTED_VERSION => "it speaks no version of ours".to_owned(),
        UNKNOWN_CONNECTION => "it does not know the connection (any more)".to_owned(),
        NOT_AUTHORISED => {
            "the proof of the shared secret is wrong, or the stream's id was used before".to_owned()
        }
        LIMIT_EXCEEDED => "one of its limits is reached".to_owned(),
        code => format!("code {code}"),
    }
}
