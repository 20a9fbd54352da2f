//! `mstcp._core.encode_hello` and its like.

use mstcp_core::hello::{self, Hello};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::remote;

// One argument for each field of the message.
#[allow(clippy::too_many_arguments)]
#[pyfunction]
#[pyo3(signature = (connection_id, stream_id, stream_count, frame_payload_bytes, key, proof, refusal))]
fn encode_hello(
    py: Python<'_>,
    connection_id: [u8; 16],
    stream_id: u32,
    stream_count: u32,
    frame_payload_bytes: u32,
    key: Vec<u8>,
    proof: Vec<u8>,
    refusal: u32,
) -> Bound<'_, PyBytes> {
    let hello = Hello {
        connection_id,
        stream_id,
        stream_count,
        frame_payload_bytes,
        key,
        proof,
        refusal,
    };
    PyBytes::new(py, &hello.encode())
}

#[pyfunction]
fn encode_version_refusal(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &hello::encode_version_refusal())
}

#[pyfunction]
#[pyo3(signature = (prefix, /))]
fn hello_body_bytes(prefix: &[u8]) -> PyResult<usize> {
    let prefix = prefix.try_into().map_err(|_| {
        PyValueError::new_err(format!(
            "the prefix has {} bytes, not {}",
            prefix.len(),
            hello::PREFIX_BYTES
        ))
    })?;
    hello::body_bytes(prefix).map_err(remote)
}

type Fields<'py> = (
    Bound<'py, PyBytes>,
    u32,
    u32,
    u32,
    Bound<'py, PyBytes>,
    Bound<'py, PyBytes>,
    u32,
);

#[pyfunction]
#[pyo3(signature = (body, /))]
fn decode_hello<'py>(py: Python<'py>, body: &[u8]) -> PyResult<Fields<'py>> {
    let hello = Hello::decode_body(body).map_err(remote)?;
    Ok((
        PyBytes::new(py, &hello.connection_id),
        hello.stream_id,
        hello.stream_count,
        hello.frame_payload_bytes,
        PyBytes::new(py, &hello.key),
        PyBytes::new(py, &hello.proof),
        hello.refusal,
    ))
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_hello, module)?)?;
    module.add_function(wrap_pyfunction!(encode_version_refusal, module)?)?;
    module.add_function(wrap_pyfunction!(hello_body_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(decode_hello, module)?)
}
