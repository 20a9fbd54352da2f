//! `mstcp._core.decode_frames` and `encode_close`.

use mstcp_proto::frame::{encode_control, Parsed, Parser, MAX_PAYLOAD_BYTES};
use mstcp_proto::Control;
use mstcp_proto::LocalError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::{local, remote};

#[pyfunction]
#[pyo3(signature = (code, reason, /))]
fn encode_close<'py>(py: Python<'py>, code: u16, reason: &str) -> Bound<'py, PyBytes> {
    let mut out = Vec::new();
    let reason = reason.to_owned();
    encode_control(&mut out, &Control::Close { code, reason });
    PyBytes::new(py, &out)
}

fn convert<'py>(py: Python<'py>, parsed: &Parsed<'_>) -> PyResult<Bound<'py, PyTuple>> {
    match parsed {
        Parsed::Data {
            offset,
            payload,
            first,
            last,
        } => ("data", offset, PyBytes::new(py, payload), first, last).into_pyobject(py),
        Parsed::Control(None) => ("unknown",).into_pyobject(py),
        Parsed::Control(Some(control)) => match control {
            Control::Fin { total_bytes } => ("fin", total_bytes).into_pyobject(py),
            Control::Ack {
                received,
                limit,
                streams,
            } => ("ack", received, limit, streams.clone()).into_pyobject(py),
            Control::Last => ("last",).into_pyobject(py),
            Control::Close { code, reason } => ("close", code, reason).into_pyobject(py),
            Control::Ping(token) => ("ping", token).into_pyobject(py),
            Control::Pong(token) => ("pong", token).into_pyobject(py),
            Control::Confirm(proof) => ("confirm", PyBytes::new(py, proof)).into_pyobject(py),
            Control::Seen(streams) => ("seen", streams.clone()).into_pyobject(py),
            Control::Gone(id) => ("gone", id).into_pyobject(py),
            Control::Status { id, priority } => ("status", id, priority).into_pyobject(py),
        },
    }
}

/// Whether this network namespace's TCP sends timestamps; true where it does not say.
#[pyfunction]
fn sends_timestamps() -> bool {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_timestamps")
        .map_or(true, |value| value.trim() != "0")
}

#[pyfunction]
#[pyo3(signature = (data, frame_payload_bytes, /))]
fn decode_frames<'py>(
    py: Python<'py>,
    data: &[u8],
    frame_payload_bytes: usize,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    if !(1..=MAX_PAYLOAD_BYTES).contains(&frame_payload_bytes) {
        return Err(local(LocalError::BadFramePayload(frame_payload_bytes)));
    }
    let mut parser = Parser::new(frame_payload_bytes);
    let (mut frames, mut at) = (Vec::new(), 0);
    loop {
        let (consumed, parsed) = parser.next(&data[at..]).map_err(remote)?;
        at += consumed;
        match parsed {
            None => return Ok(frames),
            Some(parsed) => frames.push(convert(py, &parsed)?),
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(encode_close, module)?)?;
    module.add_function(wrap_pyfunction!(sends_timestamps, module)?)?;
    module.add_function(wrap_pyfunction!(decode_frames, module)?)
}
