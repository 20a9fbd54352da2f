//! What can go wrong.
//!
//! ```text
//! Error
//! ├── Local(LocalError)    the caller's fault; the connection is as it was
//! └── Remote(RemoteError)  the peer's fault; the connection cannot go on
//! ```

use crate::control::code;
use crate::hello;

/// Either side's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// The caller's.
    #[error(transparent)]
    Local(#[from] LocalError),
    /// The peer's.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// The caller asked for something that the protocol does not allow.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// A connection needs 1 to 64 streams.
    #[error("a connection has 1 to {most} streams, not {0}", most = crate::MAX_STREAMS)]
    StreamCount(usize),
    /// No stream has this index.
    #[error("the connection has no stream {0}")]
    NoSuchStream(usize),
    /// No scheduler has this name.
    #[error("no scheduler is called '{0}': choose one of {names}", names = crate::scheduler::NAMES.join(", "))]
    NoSuchScheduler(String),
    /// A connection keeps one stream at least.
    #[error("this is the last stream: close the connection instead of removing it")]
    LastStream,
    /// A plain TCP connection has one stream.
    #[error("a plain TCP connection has one stream")]
    PlainHasOneStream,
    /// Weights are finite, not negative, one per stream, and not all zero.
    #[error(
        "weights must be finite and not negative, one for each stream, and one of them above 0"
    )]
    BadWeights,
    /// A full-size frame carries 1 to 65,535 application bytes.
    #[error("a full-size frame carries 1 to 65535 bytes, not {0}")]
    BadFramePayload(usize),
    /// More bytes were reported as sent than were offered.
    #[error("{reported} bytes reported as sent, but only {offered} were offered")]
    SentTooMuch {
        /// Bytes reported.
        reported: usize,
        /// Bytes offered by the last `poll_frame`.
        offered: usize,
    },
    /// Priorities are 0 to 255.
    #[error("a stream's priority is 0 to 255, not {0}")]
    BadPriority(u32),
    /// A stream joins before the first was answered.
    #[error("streams can join once the first hello of the connection was answered")]
    NotAnswered,
    /// More early data than a hello holds, or on a stream that joins.
    #[error("{0} bytes of early data: the first hello holds at most {most}, others none", most = hello::MAX_EARLY_BYTES)]
    TooMuchEarlyData(usize),
    /// Data was written after the end of the application's bytes.
    #[error("data written after the end of the stream was announced")]
    WriteAfterEnd,
    /// The send queue is full and the caller went on writing.
    #[error(
        "the send queue holds {queued} bytes and is bounded to {limit}: wait until it has drained"
    )]
    SendQueueFull {
        /// Bytes in the queue.
        queued: usize,
        /// The bound, in bytes.
        limit: usize,
    },
}

/// The peer sent something that breaks the protocol; the connection cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// The first bytes are not the magic of the protocol.
    #[error("the stream does not begin with the MSTCP magic")]
    BadMagic,
    /// What came in the place of an answer to a hello is none.
    #[error("the peer is not an MSTCP server: it answered the hello with something else")]
    NotMstcp,
    /// The hello announces more bytes than a hello may have.
    #[error("the hello announces {0} bytes, more than {most}", most = hello::MAX_BODY_BYTES)]
    HelloTooLong(u32),
    /// The hello is not a well-formed message or has a value that makes no sense.
    #[error("the hello is wrong: {0}")]
    BadHello(&'static str),
    /// The peer speaks other versions.
    #[error("the peer speaks version {versions}, this library {own}", versions = versions(*least, *highest), own = hello::VERSION)]
    UnsupportedVersion {
        /// The lowest that it speaks.
        least: u32,
        /// The highest that it speaks.
        highest: u32,
    },
    /// The peer refuses the stream with this code; see [`crate::code`].
    #[error("the peer refuses the stream: {why}", why = refusal(*.0))]
    Refused(u16),
    /// An answer does not fit the hello.
    #[error("the answer does not fit the hello: {0}")]
    WrongAnswer(&'static str),
    /// A proof is wrong: the peer does not know the secret, or something on the way changed or replayed a hello.
    #[error("the peer does not prove that it knows the shared secret and saw the same hello")]
    NotProved,
    /// A record is too long, or its tag is wrong: something on the way changed, replayed or left out what was sent.
    #[error("what came on a stream is not what the peer sent there")]
    BadRecord,
    /// The first frame on a stream is not the CONFIRM that it should be.
    #[error("the stream's first frame does not prove that its sender read the answer")]
    NotConfirmed,
    /// A CONFIRM that nobody awaits.
    #[error("a CONFIRM where none is awaited")]
    UnexpectedConfirm,
    /// Bits of a control frame's word that must be 0 are not.
    #[error("a control frame has bits set that must be 0")]
    ReservedBits,
    /// A short frame's length is 0 or not below the full size, or a control frame is too long.
    #[error("a frame of {length} bytes where 1 to {limit} are allowed")]
    BadFrameLength {
        /// The length announced, in bytes.
        length: usize,
        /// The greatest length allowed, in bytes.
        limit: usize,
    },
    /// Data beyond what the receiver allowed.
    #[error("data at offset {offset} reaches beyond {limit}, the end of the receive window")]
    BeyondWindow {
        /// Offset of the data.
        offset: u64,
        /// The first offset that was not allowed.
        limit: u64,
    },
    /// The body of a control frame of this type has a wrong length.
    #[error("a control frame of type {0} has a body of the wrong length")]
    BadControl(u64),
    /// A STATUS gives a stream this priority, above 255.
    #[error("a priority of {0} where 0 to {most} are allowed", most = hello::MAX_PRIORITY)]
    BadPriority(u32),
    /// An acknowledgement of what was never sent.
    #[error("an acknowledgement of what was never sent")]
    BadAck,
    /// Bytes on a stream after its LAST frame.
    #[error("bytes came on a stream after its LAST frame")]
    DataAfterLast,
    /// Small pieces with gaps between them would cost more memory than the window.
    #[error("too many small pieces with gaps between them")]
    TooManyPieces,
    /// A FIN is malformed or contradicts frames or another FIN.
    #[error("a FIN contradicts the data or another FIN")]
    BadFin,
    /// A hello on a stream that is plain TCP already.
    #[error("an MSTCP hello came on a stream that was already treated as plain TCP")]
    LateHello,
}

fn versions(least: u32, highest: u32) -> String {
    match least < highest {
        true => format!("{least} to {highest}"),
        false => least.to_string(),
    }
}

fn refusal(code: u16) -> String {
    match code {
        code::UNSUPPORTED_VERSION => "it speaks no version of ours".to_owned(),
        code::UNKNOWN_CONNECTION => "it does not know the connection (any more)".to_owned(),
        code::NOT_AUTHORISED => {
            "the proof of the shared secret is wrong, or the stream's id was used before".to_owned()
        }
        code::LIMIT_EXCEEDED => "one of its limits is reached".to_owned(),
        code => format!("code {code}"),
    }
}
