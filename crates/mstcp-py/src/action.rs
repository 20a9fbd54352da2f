//! `mstcp._core.Action`: what a transport is to do.

use mstcp_net::{Action as Told, Driver, Errno, Error, Event, Loss, StreamId};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::convert::os_error;
use crate::{cipher, local, remote, ConnectionLost};

/// What is to be done; what `kind` does not need is 0 or none.
#[pyclass(module = "mstcp._core", frozen, get_all)]
#[derive(Default)]
pub(crate) struct Action {
    kind: &'static str,
    socket: u64,
    for_bytes: bool,
    for_room: bool,
    stream: usize,
    loss: &'static str,
    errno: i32,
    error: Option<Py<PyAny>>,
    due_ns: u64,
    descriptor: i32,
    is_ipv6: bool,
    layer: Option<Py<PyAny>>,
}

impl Action {
    pub(crate) fn timer(due_ns: u64) -> Self {
        Self {
            kind: "timer",
            due_ns,
            ..Self::default()
        }
    }

    fn of_kind(kind: &'static str) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }

    /// As Python is told; none: that does not concern it. `slots` has the stream of each slot in the core.
    pub(crate) fn of(
        py: Python<'_>,
        told: Told,
        driver: &mut Driver,
        slots: &mut Vec<StreamId>,
    ) -> Option<Self> {
        Some(match told {
            Told::Watch {
                socket,
                for_bytes,
                for_room,
                ..
            } => Self {
                kind: "watch",
                socket: socket.number(),
                for_bytes,
                for_room,
                ..Self::default()
            },
            Told::Unwatch { socket } => Self {
                kind: "unwatch",
                socket: socket.number(),
                ..Self::default()
            },
            Told::Opened => Self::of_kind("opened"),
            Told::Deliver => Self::of_kind("deliver"),
            Told::PauseWriting => Self::of_kind("pause"),
            Told::ResumeWriting => Self::of_kind("resume"),
            Told::Event(Event::StreamOpened { stream, local, .. }) => {
                let (slot, socket) = driver.place_of(stream)?;
                slots.resize(slots.len().max(slot + 1), stream);
                slots[slot] = stream;
                Self {
                    kind: "joined",
                    stream: slot,
                    socket: socket.number(),
                    is_ipv6: local.is_ipv6(),
                    layer: cipher::object(py, driver.endpoint().layer_of(slot)),
                    ..Self::default()
                }
            }
            Told::Event(event) => return Self::of_event(&event, slots),
            Told::Ended(result) => Self::of_result(py, result),
            _ => return None,
        })
    }

    /// Of a stream that has joined: have Python close its socket; false if it does already.
    pub(crate) fn take_socket(&mut self, driver: &mut Driver) -> bool {
        if self.kind != "joined" {
            return true;
        }
        let released = driver.release_socket(self.stream);
        self.descriptor = released.unwrap_or(-1);
        released.is_some()
    }

    fn of_result(py: Python<'_>, result: Result<(), Error>) -> Self {
        let mut ended = Self::of_kind("ended");
        match result {
            Ok(()) | Err(Error::Closed) => {}
            Err(Error::Lost) => ended.loss = "lost",
            Err(Error::Io(error)) => {
                ended.loss = "broken";
                ended.errno = error.raw_os_error().unwrap_or(0);
            }
            Err(error) => ended.error = Some(failure(&error).into_value(py).into_any()),
        }
        ended
    }

    fn of_event(event: &Event, slots: &[StreamId]) -> Option<Self> {
        let of = |kind, stream: &StreamId| {
            let slot = slots.iter().position(|other| other == stream)?;
            Some(Self {
                kind,
                stream: slot,
                ..Self::default()
            })
        };
        match event {
            Event::StreamLost { stream, loss, .. } => {
                let (loss, errno) = match loss {
                    Loss::Finished => ("finished", 0),
                    Loss::Removed => ("removed", 0),
                    Loss::Ended => ("ended", 0),
                    Loss::Broken(errno) => ("broken", errno.raw_os_error()),
                    _ => ("silent", 0),
                };
                Some(Self {
                    loss,
                    errno,
                    ..of("lost", stream)?
                })
            }
            Event::StreamStalled { stream } => of("stalled", stream),
            Event::StreamRecovered { stream } => of("recovered", stream),
            _ => None,
        }
    }
}

/// An error of a driver as Python's exception.
pub(crate) fn failure(error: &Error) -> PyErr {
    match error {
        Error::Local(error) => local(error.clone()),
        Error::Remote(error) => remote(error.clone()),
        Error::ClosedByPeer { code, reason } if reason.is_empty() => {
            ConnectionLost::new_err(format!("the peer gave up (code {code})"))
        }
        Error::ClosedByPeer { reason, .. } => ConnectionLost::new_err(reason.clone()),
        Error::Io(error) => match Errno::from_io_error(error) {
            Some(errno) => os_error(errno),
            None => PyOSError::new_err(error.to_string()),
        },
        error => ConnectionLost::new_err(error.to_string()),
    }
}
