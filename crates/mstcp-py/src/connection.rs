//! `mstcp._core.Connection` and `SendRoom`: the endpoint of a connection, for Python.

use std::sync::Arc;

use mstcp_core::{scheduler, state, Config, Event};
use mstcp_net::{sys, Endpoint, MappedFile, Room, Sent};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{self, Bytes, PythonMemory};
use crate::counters::Counters;
use crate::receive_memory::budget;
use crate::{either, local};

/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From so many queued bytes on other threads run while they are sent.
const DETACHED_BYTES: usize = 1 << 16;

#[pyclass(module = "mstcp._core")]
struct Connection {
    endpoint: Endpoint,
    frame_payload_bytes: usize,
    /// When Python was told to call again.
    told_due_ns: Option<u64>,
}

/// Bytes sent and queued, streams blocked and ended (bits), a broken stream and its errno, when to call again.
type Outcome = (usize, usize, u64, u64, Option<(usize, i32)>, Option<u64>);

/// What was read (an errno if below 0), the bytes taken, whether something ended, and what was sent.
type Exchange<'py> = (isize, Vec<Bound<'py, PyBytes>>, bool, Option<Outcome>);

fn outcome(sent: Sent) -> Outcome {
    (
        sent.bytes,
        sent.queued_bytes,
        sent.blocked.bits(),
        sent.ended.bits(),
        sent.failed,
        sent.due_ns,
    )
}

/// An errno as Python's exception, with its sentence.
fn os_error(errno: i32) -> PyErr {
    let text = std::io::Error::from_raw_os_error(errno).to_string();
    let sentence = text
        .split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned();
    PyOSError::new_err((errno, sentence))
}

/// A count, or an errno below 0.
fn signed(count: Result<usize, i32>) -> isize {
    count.map_or_else(|errno| -(errno as isize), |count| count as isize)
}

impl Connection {
    fn read(&mut self, py: Python<'_>, stream: usize) -> PyResult<isize> {
        let result = self.endpoint.read(&mut PythonMemory(py), stream);
        Ok(signed(result.map_err(bytes::read_error)?))
    }

    fn taken<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let slices = self.endpoint.take();
        let objects = bytes::objects(py, &slices);
        drop(slices);
        self.endpoint.reclaim();
        objects
    }

    fn push(&mut self, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = data.as_bytes();
        if bytes.len() < SHARED_WRITE_BYTES {
            return self.endpoint.core.write(bytes).map_err(local);
        }
        let shared = Bytes::new(data);
        (self.endpoint.core)
            .write_shared(Box::new(shared))
            .map_err(local)
    }

    fn send_queued(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Sent> {
        let endpoint = &mut self.endpoint;
        let sent = if endpoint.core.queued_bytes() >= DETACHED_BYTES {
            py.detach(|| endpoint.transmit(now_ns))
        } else {
            endpoint.transmit(now_ns)
        };
        sent.map_err(local)
    }

    /// What Python is to be told.
    fn outcome(&mut self, sent: Sent) -> Outcome {
        self.told_due_ns = sent.due_ns;
        outcome(sent)
    }

    /// Whether nothing was sent and nothing is to be done that was not told.
    fn is_quiet(&self, sent: &Sent) -> bool {
        let known = |due| self.told_due_ns.is_some_and(|told| told <= due);
        let nothing = Sent {
            due_ns: sent.due_ns,
            ..Sent::default()
        };
        *sent == nothing && sent.due_ns.map_or(true, known)
    }
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
        let mut core = mstcp_core::Connection::new(config, scheduler).map_err(local)?;
        core.set_weights(&weights).map_err(local)?;
        core.share_budget(Arc::clone(budget()));
        Ok(Self {
            endpoint: Endpoint::new(core),
            frame_payload_bytes,
            told_due_ns: None,
        })
    }

    #[pyo3(signature = (data, /))]
    fn write(&mut self, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        self.push(data)
    }

    #[pyo3(signature = (descriptor, offset, length, /))]
    fn write_file(&mut self, descriptor: i32, offset: u64, length: usize) -> PyResult<()> {
        let mapped = MappedFile::new(descriptor, offset, length).map_err(os_error)?;
        (self.endpoint.core)
            .write_shared(Box::new(mapped))
            .map_err(local)
    }

    /// Write and transmit.
    #[pyo3(signature = (now_ns, data, /))]
    fn write_now(
        &mut self,
        py: Python<'_>,
        now_ns: u64,
        data: &Bound<'_, PyBytes>,
    ) -> PyResult<Outcome> {
        self.push(data)?;
        let sent = self.send_queued(py, now_ns)?;
        Ok(self.outcome(sent))
    }

    fn end(&mut self) {
        self.endpoint.core.end();
    }

    fn close_streams(&mut self) {
        self.endpoint.core.close_streams();
    }

    #[pyo3(signature = (code, reason, /))]
    fn close(&mut self, code: u16, reason: &str) {
        self.endpoint.core.close(code, reason);
    }

    #[pyo3(signature = (now_ns, /))]
    fn poll(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        self.endpoint.core.poll_frame(now_ns)
    }

    #[pyo3(signature = (stream, /))]
    fn offered<'py>(&self, py: Python<'py>, stream: usize) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        self.endpoint
            .core
            .rest(stream, |piece| bytes.extend_from_slice(piece));
        PyBytes::new(py, &bytes)
    }

    #[pyo3(signature = (stream, descriptor, rate_bps, header_bytes, /))]
    fn attach(
        &mut self,
        stream: usize,
        descriptor: i32,
        rate_bps: Option<f64>,
        header_bytes: usize,
    ) -> PyResult<()> {
        let payload = self.frame_payload_bytes;
        (self.endpoint.sockets())
            .attach(stream, descriptor, rate_bps, payload, header_bytes)
            .map_err(os_error)
    }

    #[pyo3(signature = (now_ns, /))]
    fn measure(&mut self, now_ns: u64) -> PyResult<()> {
        self.endpoint.measure(now_ns).map_err(local)
    }

    #[pyo3(signature = (now_ns, stream, size, held, /))]
    fn has_room(&mut self, now_ns: u64, stream: usize, size: usize, held: usize) -> PyResult<bool> {
        (self.endpoint.has_room(now_ns, stream, size, held)).map_err(local)
    }

    #[pyo3(signature = (now_ns, /))]
    fn transmit(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Outcome> {
        let sent = self.send_queued(py, now_ns)?;
        Ok(self.outcome(sent))
    }

    /// Read, take what is in order if `deliver`, and send what then is to be sent.
    #[pyo3(signature = (now_ns, stream, deliver, /))]
    fn exchange<'py>(
        &mut self,
        py: Python<'py>,
        now_ns: u64,
        stream: usize,
        deliver: bool,
    ) -> PyResult<Exchange<'py>> {
        self.endpoint.hold(!deliver);
        let count = self.read(py, stream)?;
        if count < 0 {
            return Ok((count, Vec::new(), false, None));
        }
        let data = if deliver && self.endpoint.ready_bytes() > 0 {
            self.taken(py)?
        } else {
            Vec::new()
        };
        let closed = self.endpoint.core.closed_by_peer().is_some();
        if count == 0 || closed || self.endpoint.is_ended() {
            return Ok((count, data, true, None));
        }
        let sent = self.send_queued(py, now_ns)?;
        let is_quiet = self.is_quiet(&sent) && self.endpoint.ready_bytes() == 0;
        let outcome = (!is_quiet).then(|| self.outcome(sent));
        Ok((count, data, false, outcome))
    }

    #[pyo3(signature = (stream, /))]
    fn send(&mut self, stream: usize) -> isize {
        signed(self.endpoint.send(stream))
    }

    #[pyo3(signature = (stream, count, /))]
    fn sent(&mut self, stream: usize, count: usize) -> PyResult<bool> {
        self.endpoint.on_sent(stream, count).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn writable(&mut self, stream: usize) -> PyResult<()> {
        self.endpoint.core.on_writable(stream).map_err(local)
    }

    #[pyo3(signature = (stream, data, /))]
    fn receive(&mut self, stream: usize, data: &[u8]) -> PyResult<()> {
        self.endpoint.receive(stream, data).map_err(either)
    }

    #[pyo3(signature = (stream, /))]
    fn receive_from(&mut self, py: Python<'_>, stream: usize) -> PyResult<isize> {
        self.read(py, stream)
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.taken(py)
    }

    #[getter]
    fn ready_bytes(&self) -> usize {
        self.endpoint.ready_bytes()
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&mut self, stream: usize) -> PyResult<bool> {
        self.endpoint.on_stream_end(stream).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn remove_stream(&mut self, stream: usize) -> PyResult<()> {
        self.endpoint.core.remove_stream(stream).map_err(local)
    }

    #[pyo3(signature = (token, /))]
    fn ping(&mut self, token: u64) {
        self.endpoint.core.ping(token);
    }

    #[pyo3(signature = (stream_id, weight, /))]
    fn add_stream(&mut self, stream_id: u32, weight: f64) -> PyResult<usize> {
        self.endpoint
            .core
            .add_stream(stream_id, weight)
            .map_err(local)
    }

    #[pyo3(signature = (weights, /))]
    fn set_weights(&mut self, weights: Vec<f64>) -> PyResult<()> {
        self.endpoint.core.set_weights(&weights).map_err(local)
    }

    #[pyo3(signature = (stream, delay_ns, /))]
    fn set_delay(&mut self, stream: usize, delay_ns: u64) -> PyResult<()> {
        self.endpoint
            .core
            .set_delay(stream, delay_ns)
            .map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn blocked(&self, stream: usize) -> bool {
        self.endpoint.core.is_blocked(stream)
    }

    fn timeout_ns(&self) -> Option<u64> {
        self.endpoint.core.timeout_ns()
    }

    #[getter]
    fn closed_by_peer(&self) -> Option<(u16, String)> {
        self.endpoint
            .core
            .closed_by_peer()
            .map(|(code, reason)| (code, reason.to_owned()))
    }

    #[getter]
    fn alive(&self) -> u64 {
        self.endpoint.core.alive().bits()
    }

    #[getter]
    fn stalled(&self) -> u64 {
        self.endpoint.core.stalled().bits()
    }

    #[getter]
    fn queued_bytes(&self) -> usize {
        self.endpoint.core.queued_bytes()
    }

    #[getter]
    fn finished(&self) -> bool {
        self.endpoint.core.is_finished()
    }

    #[getter]
    fn ended(&self) -> bool {
        self.endpoint.is_ended()
    }

    fn counters(&self) -> Counters {
        self.endpoint.core.counters().into()
    }

    #[pyo3(signature = (stream, proof, /))]
    fn expect_confirm(&mut self, stream: usize, proof: [u8; 32]) -> PyResult<()> {
        self.endpoint
            .core
            .expect_confirm(stream, proof)
            .map_err(local)
    }

    #[pyo3(signature = (length, /))]
    fn skip_early(&mut self, length: usize) {
        self.endpoint.core.skip_early(length);
    }

    fn reopen_streams(&mut self) {
        self.endpoint.core.reopen_streams();
    }

    fn farewell<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let farewell = self.endpoint.core.farewell()?;
        Some(PyBytes::new(py, &farewell))
    }

    #[pyo3(signature = (data, /))]
    fn early(&mut self, data: &[u8]) {
        // The caller has the bytes.
        self.endpoint.core.on_early(data, &mut Vec::new());
        self.endpoint.core.on_consumed(data.len());
    }

    fn shut(&mut self) {
        self.endpoint.core.shut();
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        let mut events = Vec::new();
        while let Some(event) = self.endpoint.poll_event() {
            events.push(match event {
                Event::StreamGone { slot } => ("gone", slot as u64),
                Event::StreamStalled { slot } => ("stalled", slot as u64),
                Event::StreamRecovered { slot } => ("recovered", slot as u64),
                Event::Closed(state::Outcome::Delivered) => ("delivered", 0),
                Event::Closed(state::Outcome::Undelivered { bytes }) => ("undelivered", bytes),
                Event::Closed(state::Outcome::Lost) => ("lost", 0),
            });
        }
        events
    }

    #[pyo3(signature = (idle_ns, probes, /))]
    fn set_keepalive(&mut self, idle_ns: Option<u64>, probes: u32) {
        self.endpoint.core.set_keepalive(idle_ns, probes);
    }

    #[pyo3(signature = (reconnect_ns, close_ns, /))]
    fn set_timeouts(&mut self, reconnect_ns: u64, close_ns: u64) {
        self.endpoint.core.set_reconnect_ns(reconnect_ns);
        self.endpoint.core.set_close_ns(close_ns);
    }

    #[pyo3(signature = (stream, priority, tell, /))]
    fn set_priority(&mut self, stream: usize, priority: u32, tell: bool) -> PyResult<()> {
        match tell {
            true => self.endpoint.core.set_priority(stream, priority),
            false => self.endpoint.core.note_priority(stream, priority),
        }
        .map_err(local)
    }
}

/// What may wait unsent in a socket that the endpoint does not have: a plain connection's.
#[pyclass(module = "mstcp._core")]
struct SendRoom(Room);

#[pymethods]
impl SendRoom {
    #[new]
    #[pyo3(signature = (descriptor, /))]
    fn new(descriptor: i32) -> Self {
        Self(Room::new(descriptor))
    }

    #[pyo3(signature = (rate_bps, frame_payload_bytes, header_bytes, /))]
    fn pace(
        &mut self,
        rate_bps: Option<f64>,
        frame_payload_bytes: usize,
        header_bytes: usize,
    ) -> PyResult<Option<usize>> {
        let paced = self.0.pace(rate_bps, frame_payload_bytes, header_bytes);
        paced.map_err(os_error)?;
        Ok(self.0.limit())
    }

    #[pyo3(signature = (size, held, /))]
    fn has_room(&mut self, size: usize, held: usize) -> bool {
        self.0.ask(size, held).0
    }

    #[pyo3(signature = (count, /))]
    fn sent(&mut self, count: usize) {
        self.0.on_sent(count);
    }
}

#[pyfunction]
#[pyo3(signature = (descriptor, /))]
fn unacknowledged_bytes(descriptor: i32) -> usize {
    sys::unacknowledged_bytes(descriptor)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Connection>()?;
    module.add_class::<SendRoom>()?;
    module.add_function(wrap_pyfunction!(unacknowledged_bytes, module)?)?;
    module.add_class::<Counters>()
}
