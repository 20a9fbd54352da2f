//! `mstcp._core.Action`: what a transport is to do.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;

use mstcp_net::{
    Action as Told, Driver, Errno, Error, Event, Loss, SocketId, StreamId, StreamSocket,
};
use pyo3::exceptions::{PyOSError, PyTimeoutError};
use pyo3::prelude::*;

use crate::convert::os_error;
use crate::convert::sentence;
use crate::{cipher, local, remote, ConnectionLost, LocalProtocolError, RemoteProtocolError};

/// What is to be done; what `kind` does not need is 0 or none.
#[pyclass(module = "mstcp._core", frozen)]
#[derive(Default)]
pub(crate) struct Action {
    #[pyo3(get)]
    kind: &'static str,
    #[pyo3(get)]
    socket: u64,
    #[pyo3(get)]
    for_bytes: bool,
    #[pyo3(get)]
    for_room: bool,
    #[pyo3(get)]
    stream: usize,
    #[pyo3(get)]
    number: usize,
    #[pyo3(get)]
    loss: &'static str,
    #[pyo3(get)]
    errno: i32,
    #[pyo3(get)]
    error: Option<Py<PyAny>>,
    #[pyo3(get)]
    due_ns: u64,
    #[pyo3(get)]
    descriptor: i32,
    #[pyo3(get)]
    is_ipv6: bool,
    #[pyo3(get)]
    rate_bps: Option<f64>,
    #[pyo3(get)]
    priority: u8,
    #[pyo3(get)]
    layer: Option<Py<PyAny>>,
    /// Stays open until the event loop watches it no more.
    _held: Option<StreamSocket>,
}

/// What Python's numbers of slots and sockets refer to.
#[derive(Default)]
pub(crate) struct SocketTable {
    /// The stream of each slot in the core.
    slots: Vec<StreamId>,
    /// Sockets that are watched and no streams yet.
    opening: HashMap<SocketId, StreamSocket>,
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

    /// As Python is told; none: that does not concern it.
    pub(crate) fn of(
        py: Python<'_>,
        told: Told,
        driver: &mut Driver,
        known: &mut SocketTable,
    ) -> Option<Self> {
        let slots = &mut known.slots;
        Some(match told {
            Told::Watch {
                socket,
                descriptor,
                for_bytes,
                for_room,
            } => Self {
                kind: "watch",
                socket: socket.number(),
                descriptor: {
                    let number = descriptor.as_raw_fd();
                    if !driver.is_open_stream(socket) {
                        known.opening.insert(socket, descriptor);
                    }
                    number
                },
                for_bytes,
                for_room,
                ..Self::default()
            },
            Told::Unwatch { socket } => Self {
                kind: "unwatch",
                socket: socket.number(),
                _held: known.opening.remove(&socket),
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
                known.opening.remove(&socket);
                Self {
                    kind: "joined",
                    stream: slot,
                    number: stream.index(),
                    socket: socket.number(),
                    is_ipv6: local.is_ipv6(),
                    rate_bps: driver.spec_of(slot).rate_bps,
                    priority: driver.spec_of(slot).priority,
                    layer: cipher::object(py, driver.endpoint().layer_of(slot)),
                    ..Self::default()
                }
            }
            Told::Event(Event::StreamUnreachable { stream, reason }) => Self {
                kind: "unreachable",
                number: stream.index(),
                error: Some(ConnectionLost::new_err(reason).into_value(py).into_any()),
                ..Self::default()
            },
            Told::Event(event) => return Self::of_event(&event, slots),
            Told::Ended(result) => Self::of_result(py, result),
            _ => return None,
        })
    }

    /// Have Python close the socket of a stream that has joined; false if it does already.
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
            Err(error) => ended.error = Some(failure(py, &error).into_value(py).into_any()),
        }
        ended
    }

    fn of_event(event: &Event, slots: &[StreamId]) -> Option<Self> {
        let of = |kind, stream: &StreamId| {
            let slot = slots.iter().position(|other| other == stream)?;
            Some(Self {
                kind,
                stream: slot,
                number: stream.index(),
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
pub(crate) fn failure(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::Config(_) => LocalProtocolError::new_err(error.to_string()),
        Error::Local(error) => local(error.clone()),
        Error::Remote(error) => remote(error.clone()),
        Error::Refused { .. } | Error::NotMstcp { .. } | Error::NoHello | Error::Unconfirmed => {
            RemoteProtocolError::new_err(error.to_string())
        }
        Error::NoAnswer { .. } => PyTimeoutError::new_err(error.to_string()),
        Error::ClosedByPeer { code, reason } if reason.is_empty() => {
            ConnectionLost::new_err(format!("the peer gave up (code {code})"))
        }
        Error::ClosedByPeer { reason, .. } => ConnectionLost::new_err(reason.clone()),
        Error::Handshake { error, .. } if error.kind() == io::ErrorKind::TimedOut => {
            PyTimeoutError::new_err(error.to_string())
        }
        Error::Handshake { error, .. } => broken(py, error),
        Error::Bind { error: cause, .. } | Error::Connect { error: cause, .. } => {
            match cause.raw_os_error() {
                Some(errno) => PyOSError::new_err((errno, sentence(error))),
                None => PyOSError::new_err(error.to_string()),
            }
        }
        Error::Io(error) => match Errno::from_io_error(error) {
            Some(errno) => os_error(errno),
            None => PyOSError::new_err(error.to_string()),
        },
        error => ConnectionLost::new_err(error.to_string()),
    }
}

/// What broke a stream while it was opened: what Python's cipher raised, or what the system says.
pub(crate) fn broken(py: Python<'_>, error: &io::Error) -> PyErr {
    let inner = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<PyErr>());
    match (inner, error.kind()) {
        (Some(raised), _) => raised.clone_ref(py),
        (_, io::ErrorKind::TimedOut) => RemoteProtocolError::new_err(error.to_string()),
        _ => ConnectionLost::new_err(sentence(error)),
    }
}
