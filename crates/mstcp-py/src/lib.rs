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
mod receive_memory;
mod server;
mod waiter;

use mstcp_proto::{hello, scheduler, LocalError, RemoteError};
use pyo3::prelude::*;

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

/// Whether this network namespace's TCP sends timestamps; true where it does not say.
#[pyfunction]
fn sends_timestamps() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps")
        .map_or(true, |value| value.trim() != "0")
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAX_STREAMS", mstcp_proto::MAX_STREAMS)?;
    module.add("MAX_EARLY_BYTES", hello::MAX_EARLY_BYTES)?;
    module.add("MAX_PRIORITY", hello::MAX_PRIORITY)?;
    module.add("SCHEDULERS", scheduler::NAMES)?;
    module.add_function(wrap_pyfunction!(sends_timestamps, module)?)?;
    connection::register(module)?;
    waiter::register(module)?;
    receive_memory::register(module)?;
    server::register(module)
}
