//! `mstcp._core`: the protocol core for Python, with the routing engine as `mstcp._core.gomr` and the simulator as
//! `mstcp._core.sim`. Converts and nothing else; see `mstcp/_core/__init__.pyi`.
// The functions' documentation for users is in the stub; PyO3's macros make items of their own.
#![allow(missing_docs)]

mod gomr;
mod sim;

use mstcp_core::error::{Error, LocalError, RemoteError};
use mstcp_core::hello::{self, Hello};
use mstcp_core::{frame, scheduler, Config};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

pyo3::import_exception!(mstcp.errors, BufferLimitExceeded);
pyo3::import_exception!(mstcp.errors, LocalProtocolError);
pyo3::import_exception!(mstcp.errors, RemoteProtocolError);

fn local(error: LocalError) -> PyErr {
    match error {
        LocalError::SendQueueFull { queued, limit } => {
            BufferLimitExceeded::new_err((queued, limit))
        }
        error => LocalProtocolError::new_err(error.to_string()),
    }
}

fn remote(error: RemoteError) -> PyErr {
    RemoteProtocolError::new_err(error.to_string())
}

fn either(error: Error) -> PyErr {
    match error {
        Error::Local(error) => local(error),
        Error::Remote(error) => remote(error),
    }
}

#[pyclass(module = "mstcp._core")]
struct Connection {
    inner: mstcp_core::Connection,
    /// Kept between calls for its memory.
    in_order: Vec<u8>,
}

#[pymethods]
impl Connection {
    #[new]
    #[pyo3(signature = (
        weights, frame_payload_bytes, *, scheduler, seed, send_queue_bytes, reorder_buffer_bytes
    ))]
    fn new(
        weights: Vec<f64>,
        frame_payload_bytes: usize,
        scheduler: &str,
        seed: u64,
        send_queue_bytes: usize,
        reorder_buffer_bytes: usize,
    ) -> PyResult<Self> {
        let scheduler = scheduler::by_name(scheduler, seed).map_err(local)?;
        let config = Config {
            stream_count: weights.len(),
            frame_payload_bytes,
            send_queue_bytes,
            reorder_buffer_bytes,
        };
        let mut inner = mstcp_core::Connection::new(config, scheduler).map_err(local)?;
        inner.set_weights(&weights).map_err(local)?;
        Ok(Self {
            inner,
            in_order: Vec::new(),
        })
    }

    #[pyo3(signature = (data, /))]
    fn write(&mut self, data: &[u8]) -> PyResult<()> {
        self.inner.write(data).map_err(local)
    }

    fn end(&mut self) {
        self.inner.end();
    }

    #[pyo3(signature = (now_ns, /))]
    fn poll<'py>(&mut self, py: Python<'py>, now_ns: u64) -> Option<(usize, Bound<'py, PyBytes>)> {
        let transmit = self.inner.poll(now_ns)?;
        Some((transmit.stream, PyBytes::new(py, transmit.data)))
    }

    #[pyo3(signature = (stream, count, /))]
    fn sent(&mut self, stream: usize, count: usize) -> PyResult<bool> {
        self.inner.on_sent(stream, count).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn writable(&mut self, stream: usize) -> PyResult<()> {
        self.inner.on_writable(stream).map_err(local)
    }

    #[pyo3(signature = (stream, data, /))]
    fn receive<'py>(
        &mut self,
        py: Python<'py>,
        stream: usize,
        data: &[u8],
    ) -> PyResult<Bound<'py, PyBytes>> {
        self.in_order.clear();
        self.inner
            .on_received(stream, data, &mut self.in_order)
            .map_err(either)?;
        Ok(PyBytes::new(py, &self.in_order))
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&mut self, stream: usize) -> PyResult<()> {
        self.inner.on_stream_end(stream).map_err(either)
    }

    #[pyo3(signature = (weights, /))]
    fn set_weights(&mut self, weights: Vec<f64>) -> PyResult<()> {
        self.inner.set_weights(&weights).map_err(local)
    }

    #[pyo3(signature = (stream, delay_ns, /))]
    fn set_delay(&mut self, stream: usize, delay_ns: u64) -> PyResult<()> {
        self.inner.set_delay(stream, delay_ns).map_err(local)
    }

    #[pyo3(signature = (now_ns, stream, unsent_bytes, /))]
    fn unsent(&mut self, now_ns: u64, stream: usize, unsent_bytes: usize) -> PyResult<()> {
        self.inner
            .on_unsent(now_ns, stream, unsent_bytes)
            .map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn blocked(&self, stream: usize) -> bool {
        self.inner.is_blocked(stream)
    }

    #[getter]
    fn readable(&self) -> u64 {
        self.inner.readable().bits()
    }

    #[getter]
    fn queued_bytes(&self) -> usize {
        self.inner.queued_bytes()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.inner.is_finished()
    }

    #[getter]
    fn ended(&self) -> bool {
        self.inner.is_ended()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics().into()
    }
}

#[pyclass(module = "mstcp._core", frozen, get_all)]
struct Statistics {
    streams: Vec<(u64, u64, u64, u64, u64)>,
    out_of_order_frames: u64,
    reorder_bytes: usize,
    reorder_max_bytes: usize,
    queued_bytes: usize,
}

impl From<mstcp_core::Statistics> for Statistics {
    fn from(from: mstcp_core::Statistics) -> Self {
        let streams = from.streams.iter().map(|stream| {
            (
                stream.frames_sent,
                stream.bytes_sent,
                stream.frames_received,
                stream.bytes_received,
                stream.out_of_order_frames,
            )
        });
        Self {
            streams: streams.collect(),
            out_of_order_frames: from.out_of_order_frames,
            reorder_bytes: from.reorder_bytes,
            reorder_max_bytes: from.reorder_max_bytes,
            queued_bytes: from.queued_bytes,
        }
    }
}

#[pyfunction]
#[pyo3(signature = (connection_id, stream_index, stream_count, frame_payload_bytes, proof))]
fn encode_hello<'py>(
    py: Python<'py>,
    connection_id: [u8; 16],
    stream_index: u32,
    stream_count: u32,
    frame_payload_bytes: u32,
    proof: Vec<u8>,
) -> Bound<'py, PyBytes> {
    let hello = Hello {
        connection_id,
        stream_index,
        stream_count,
        frame_payload_bytes,
        proof,
    };
    PyBytes::new(py, &hello.encode())
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

type HelloFields<'py> = (Bound<'py, PyBytes>, u32, u32, u32, Bound<'py, PyBytes>);

#[pyfunction]
#[pyo3(signature = (body, /))]
fn decode_hello<'py>(py: Python<'py>, body: &[u8]) -> PyResult<HelloFields<'py>> {
    let hello = Hello::decode_body(body).map_err(remote)?;
    Ok((
        PyBytes::new(py, &hello.connection_id),
        hello.stream_index,
        hello.stream_count,
        hello.frame_payload_bytes,
        PyBytes::new(py, &hello.proof),
    ))
}

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("MAGIC", PyBytes::new(module.py(), &hello::MAGIC))?;
    module.add("HELLO_PREFIX_BYTES", hello::PREFIX_BYTES)?;
    module.add("FRAME_HEADER_BYTES", frame::HEADER_BYTES)?;
    module.add("MAX_FRAME_PAYLOAD_BYTES", frame::MAX_PAYLOAD_BYTES)?;
    module.add("MAX_STREAMS", mstcp_core::MAX_STREAMS)?;
    module.add("SCHEDULERS", scheduler::NAMES)?;
    module.add("PROTOCOL_VERSION", hello::VERSION)?;
    module.add_class::<Connection>()?;
    module.add_class::<Statistics>()?;
    module.add_function(wrap_pyfunction!(encode_hello, module)?)?;
    module.add_function(wrap_pyfunction!(hello_body_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(decode_hello, module)?)?;
    gomr::register(module)?;
    sim::register(module)
}
