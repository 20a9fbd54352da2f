//! What the endpoint says, as Python's values.

use mstcp_net::{Errno, Sent};
use mstcp_proto::{state, Event};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Bytes sent and queued, streams blocked and ended (bits), a broken stream and its errno, when to call again.
pub(crate) type Outcome = (usize, usize, u64, u64, Option<(usize, i32)>, Option<u64>);

/// What was sent, as Python is told.
pub(crate) fn outcome(sent: Sent) -> Outcome {
    (
        sent.bytes,
        sent.queued_bytes,
        sent.blocked.bits(),
        sent.ended.bits(),
        sent.failed
            .map(|(stream, errno)| (stream, errno.raw_os_error())),
        sent.due_ns,
    )
}

/// An errno as Python's exception, with its sentence.
pub(crate) fn os_error(errno: Errno) -> PyErr {
    let text = std::io::Error::from(errno).to_string();
    let sentence = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    PyOSError::new_err((errno.raw_os_error(), sentence))
}

/// What has happened, and to which stream or to how many bytes.
pub(crate) fn event(event: Event) -> (&'static str, u64) {
    match event {
        Event::Opened => ("opened", 0),
        Event::StreamGone { slot } => ("gone", slot as u64),
        Event::StreamStalled { slot } => ("stalled", slot as u64),
        Event::StreamRecovered { slot } => ("recovered", slot as u64),
        Event::Closed(state::Outcome::Delivered) => ("delivered", 0),
        Event::Closed(state::Outcome::Undelivered { bytes }) => ("undelivered", bytes),
        Event::Closed(state::Outcome::Lost) => ("lost", 0),
    }
}

/// A count, or an errno below 0.
pub(crate) fn signed(count: Result<usize, Errno>) -> isize {
    count.map_or_else(
        |errno| -(errno.raw_os_error() as isize),
        |count| count as isize,
    )
}
