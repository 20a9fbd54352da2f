//! `mstcp._core.Server` and `Incoming`: accepted sockets until they open a connection or join one.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mstcp_net::{Error, Incoming as Core, PlainTcp, Progress, ServerConfig, TransportConfig};
use mstcp_proto::code;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::action::{broken, failure};
use crate::cipher;
use crate::client::Address;
use crate::connection::Connection;
use crate::receive_memory::budget;
use crate::{ConnectionLost, RemoteProtocolError};

#[pyclass(module = "mstcp._core", frozen)]
struct Server(Arc<mstcp_net::Server>);

#[pymethods]
impl Server {
    /// `plain_after_s`: none: nothing is plain TCP; 0: everything.
    #[new]
    #[pyo3(signature = (
        *, secret, authenticate_frames, max_connections, plain_after_s, plain_payload_bytes, takes_early_data,
        max_hellos_per_s, hello_timeout_s, scheduler, seed, send_queue_bytes, reorder_buffer_bytes, reconnect_timeout_s,
        announced
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        secret: Vec<u8>,
        authenticate_frames: bool,
        max_connections: usize,
        plain_after_s: Option<f64>,
        plain_payload_bytes: usize,
        takes_early_data: bool,
        max_hellos_per_s: f64,
        hello_timeout_s: f64,
        scheduler: String,
        seed: Option<u64>,
        send_queue_bytes: usize,
        reorder_buffer_bytes: usize,
        reconnect_timeout_s: f64,
        announced: Vec<Address>,
    ) -> PyResult<Self> {
        let transport = TransportConfig {
            reorder_buffer_bytes,
            send_buffer_bytes: send_queue_bytes / 2,
            scheduler,
            reconnect_timeout: Duration::from_secs_f64(reconnect_timeout_s),
            connect_timeout: Duration::from_secs_f64(hello_timeout_s),
            seed,
            receive_budget: Some(Arc::clone(budget())),
            ..TransportConfig::default()
        };
        let config = ServerConfig {
            secret,
            authenticate_frames,
            max_connections,
            plain: match plain_after_s {
                None => PlainTcp::Never,
                Some(0.0) => PlainTcp::Always,
                Some(seconds) => PlainTcp::After(Duration::from_secs_f64(seconds)),
            },
            plain_payload_bytes: Some(plain_payload_bytes),
            takes_early_data,
            max_hellos_per_s,
            announced: announced.into_iter().map(|address| address.0).collect(),
            transport,
            ..ServerConfig::default()
        };
        let server = mstcp_net::Server::new(config);
        server.map(Self).map_err(|error| failure(py, &error))
    }

    /// Begin with a socket, which belongs to the core from now on.
    #[pyo3(signature = (now_ns, descriptor, layer, /))]
    fn accept(
        &self,
        py: Python<'_>,
        now_ns: u64,
        descriptor: i32,
        layer: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Incoming> {
        // SAFETY: the caller has detached it.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        let layer = layer.map(cipher::layer);
        let incoming = self.0.accept_through(now_ns, socket, layer);
        let incoming = incoming.map_err(|error| rejection(py, &error))?;
        Ok(Incoming(Mutex::new(State {
            incoming: Some(incoming),
            for_bytes: false,
            for_room: false,
            error: None,
        })))
    }
}

struct State {
    /// None: it is closed.
    incoming: Option<Core>,
    for_bytes: bool,
    for_room: bool,
    error: Option<PyErr>,
}

#[pyclass(module = "mstcp._core", frozen)]
struct Incoming(Mutex<State>);

impl Incoming {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Incoming {
    fn fileno(&self) -> i32 {
        let state = self.state();
        let incoming = state.incoming.as_ref();
        incoming.map_or(-1, |incoming| incoming.descriptor().as_raw_fd())
    }

    #[getter]
    fn for_bytes(&self) -> bool {
        self.state().for_bytes
    }

    #[getter]
    fn for_room(&self) -> bool {
        self.state().for_room
    }

    #[getter]
    fn due_ns(&self) -> u64 {
        let state = self.state();
        state.incoming.as_ref().map_or(0, Core::timeout_ns)
    }

    /// The connection that a stream which joins would confirm.
    #[getter]
    fn unconfirmed<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let id = self.state().incoming.as_ref()?.unconfirmed()?;
        Some(PyBytes::new(py, &id))
    }

    #[getter]
    fn error(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let error = self.state().error.as_ref()?.clone_ref(py);
        Some(error.into_value(py).into_any())
    }

    /// Go on; returns the connection that is open now, the id of that which the socket has joined, true if it waits, or none
    /// if it is closed.
    #[pyo3(signature = (now_ns, /))]
    fn advance(&self, py: Python<'_>, now_ns: u64) -> PyResult<Option<Py<PyAny>>> {
        let mut state = self.state();
        let Some(incoming) = &mut state.incoming else {
            return Ok(None);
        };
        let progress = incoming.advance(now_ns);
        if let Progress::Waits {
            for_bytes,
            for_room,
        } = progress
        {
            (state.for_bytes, state.for_room) = (for_bytes, for_room);
            return Ok(Some(true.into_pyobject(py)?.to_owned().into_any().unbind()));
        }
        state.incoming = None;
        Ok(match progress {
            Progress::Opened(driver) => {
                let connection = Connection::of_driver(*driver);
                Some(Py::new(py, connection)?.into_any())
            }
            Progress::Joined(id) => Some(PyBytes::new(py, &id).into_any().unbind()),
            Progress::Refused(error) => {
                state.error = error.map(|error| rejection(py, &error));
                None
            }
            _ => None,
        })
    }

    /// Close the socket.
    fn close(&self) {
        self.state().incoming = None;
    }
}

/// Why a stream is not admitted, as Python's exception.
fn rejection(py: Python<'_>, error: &Error) -> PyErr {
    match error {
        Error::NotAdmitted { code, reason } if *code == code::UNKNOWN_CONNECTION => {
            ConnectionLost::new_err(reason.clone())
        }
        Error::NotAdmitted { .. } => RemoteProtocolError::new_err(error.to_string()),
        Error::Handshake { error, .. } => broken(py, error),
        Error::Io(error) => broken(py, error),
        error => failure(py, error),
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Server>()?;
    module.add_class::<Incoming>()
}
