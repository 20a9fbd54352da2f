//! `mstcp._core`: the protocol core for Python. Converts and nothing else; see `mstcp/_core.pyi`.
// The functions' documentation for users is in the stub; PyO3's macros make items of their own.
#![allow(missing_docs)]

mod action;
mod buffer;
mod bytes;
mod cipher;
mod client;
mod connection;
mod convert;
mod counters;
mod frames;
mod handshake;
mod receive_memory;
mod server;
mod waiter;

use mstcp_proto::{frame, scheduler};
use mstcp_proto::{LocalError, RemoteError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pyo3::import_exception!(mstcp.errors, BufferLimitExceeded);
pyo3::import_exception!(mstcp.errors, ConnectionLost);
pyo3::import_exception!(mstcp.errors, LocalProtocolError);
pyo3::import_exception!(mstcp.errors, RemoteProtocolError);
pyo3::import_exception!(mstcp.errors, UnsupportedVersion);

fn local(error: LocalError) -> PyErr {
    match error {
        LocalError::SendQueueFull { queued, limit } => {
            BufferLimitExceeded::new_err((queued, limit))
        }
        error => LocalProtocolError::new_err(error.to_string()),
    }
}

fn remote(error: RemoteError) -> PyErr {
    match error {
        RemoteError::UnsupportedVersion { least, highest } => {
            UnsupportedVersion::new_err((error.to_string(), least, highest))
        }
        error => RemoteProtocolError::new_err(error.to_string()),
    }
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add(
        "MAGIC",
        PyBytes::new(module.py(), &mstcp_proto::hello::MAGIC),
    )?;
    module.add("FRAME_HEADER_BYTES", frame::HEADER_BYTES)?;
    module.add("MAX_FRAME_PAYLOAD_BYTES", frame::MAX_PAYLOAD_BYTES)?;
    module.add("MAX_STREAMS", mstcp_proto::MAX_STREAMS)?;
    module.add("SCHEDULERS", scheduler::NAMES)?;
    module.add("PROTOCOL_VERSION", mstcp_proto::hello::VERSION)?;
    connection::register(module)?;
    waiter::register(module)?;
    receive_memory::register(module)?;
    frames::register(module)?;
    server::register(module)?;
    handshake::register(module)
}
