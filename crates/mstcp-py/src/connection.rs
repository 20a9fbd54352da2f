//! `mstcp._core.Connection`: the endpoint of a connection, for Python.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use mstcp_net::shared::Locked;
use mstcp_net::{sys, Endpoint, MappedFile, Sent, SharedEndpoint};
use mstcp_proto::error::LocalError;
use mstcp_proto::hello::NONCE_BYTES;
use mstcp_proto::{scheduler, Config};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{self, Bytes, PythonMemory};
use crate::convert::{event, os_error, outcome, signed, Outcome};
use crate::counters::Counters;
use crate::handshake::Client;
use crate::loan::{Bell, Loan};
use crate::receive_memory::budget;
use crate::{either, local};

/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From so many queued bytes on other threads run while they are sent.
const DETACHED_BYTES: usize = 1 << 16;

#[pyclass(module = "mstcp._core", frozen)]
struct Connection {
    shared: Arc<SharedEndpoint>,
    frame_payload_bytes: usize,
    /// When Python was told to call again; the greatest number: not.
    told_due_ns: AtomicU64,
}

/// What was read (an errno if below 0), the bytes taken, whether something ended, and what was sent.
type Exchange<'py> = (isize, Vec<Bound<'py, PyBytes>>, bool, Option<Outcome>);

fn read(endpoint: &mut Endpoint, py: Python<'_>, stream: usize) -> PyResult<isize> {
    let result = endpoint.read(&mut PythonMemory(py), stream);
    Ok(signed(result.map_err(bytes::read_error)?))
}

fn taken<'py>(endpoint: &mut Endpoint, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let slices = endpoint.take();
    let objects = bytes::objects(py, &slices);
    drop(slices);
    endpoint.reclaim();
    objects
}

/// Bytes to be written.
pub(crate) struct Piece(Bytes);

impl Piece {
    pub(crate) fn new(data: &Bound<'_, PyBytes>) -> Self {
        Self(Bytes::new(data))
    }

    /// Write them: small ones are copied, others referred to.
    pub(crate) fn push(self, core: &mut mstcp_proto::Connection) -> Result<(), LocalError> {
        let bytes = self.0.as_ref();
        if bytes.len() < SHARED_WRITE_BYTES {
            return core.write(bytes);
        }
        core.write_shared(Arc::new(self.0))
    }
}

fn send_queued(endpoint: &mut Endpoint, py: Python<'_>, now_ns: u64) -> PyResult<Sent> {
    let sent = if endpoint.core.queued_bytes() >= DETACHED_BYTES {
        py.detach(|| endpoint.transmit(now_ns))
    } else {
        endpoint.transmit(now_ns)
    };
    sent.map_err(local)
}

impl Connection {
    fn of(core: mstcp_proto::Connection, frame_payload_bytes: usize) -> Self {
        Self {
            shared: Arc::new(SharedEndpoint::new(Endpoint::new(core))),
            frame_payload_bytes,
            told_due_ns: AtomicU64::new(u64::MAX),
        }
    }

    /// The connection, other threads of Python going on while one has it.
    fn locked(&self, py: Python<'_>) -> Locked<'_> {
        loop {
            if let Some(locked) = self.shared.try_lock() {
                return locked;
            }
            py.detach(|| drop(self.shared.lock()));
        }
    }

    /// What Python is to be told.
    fn outcome(&self, sent: Sent) -> Outcome {
        let due_ns = sent.due_ns.unwrap_or(u64::MAX);
        self.told_due_ns.store(due_ns, Ordering::Relaxed);
        outcome(sent)
    }

    /// Whether nothing was sent and nothing is to be done that was not told.
    fn is_quiet(&self, sent: &Sent) -> bool {
        let known = |due| self.told_due_ns.load(Ordering::Relaxed) <= due;
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
        let mut core = mstcp_proto::Connection::new(config, scheduler).map_err(local)?;
        core.set_weights(&weights).map_err(local)?;
        core.share_budget(Arc::clone(budget()));
        Ok(Self::of(core, frame_payload_bytes))
    }

    /// See `mstcp_proto::Connection::plain`.
    #[staticmethod]
    #[pyo3(signature = (frame_payload_bytes, *, send_queue_bytes, is_decided = true))]
    fn plain(
        frame_payload_bytes: usize,
        send_queue_bytes: usize,
        is_decided: bool,
    ) -> PyResult<Self> {
        let core =
            mstcp_proto::Connection::plain(frame_payload_bytes, send_queue_bytes, is_decided);
        Ok(Self::of(core.map_err(local)?, frame_payload_bytes))
    }

    #[getter]
    fn is_plain(&self, py: Python<'_>) -> bool {
        self.locked(py).core.is_plain()
    }

    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        Piece::new(data).push(&mut endpoint.core).map_err(local)
    }

    #[pyo3(signature = (descriptor, offset, length, /))]
    fn write_file(
        &self,
        py: Python<'_>,
        descriptor: i32,
        offset: u64,
        length: usize,
    ) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        let mapped = MappedFile::new(descriptor, offset, length).map_err(os_error)?;
        (endpoint.core)
            .write_shared(Arc::new(mapped))
            .map_err(local)
    }

    /// Write and transmit.
    #[pyo3(signature = (now_ns, data, /))]
    fn write_now(
        &self,
        py: Python<'_>,
        now_ns: u64,
        data: &Bound<'_, PyBytes>,
    ) -> PyResult<Outcome> {
        let mut endpoint = self.locked(py);
        Piece::new(data).push(&mut endpoint.core).map_err(local)?;
        let sent = send_queued(&mut endpoint, py, now_ns)?;
        Ok(self.outcome(sent))
    }

    fn end(&self, py: Python<'_>) {
        let mut endpoint = self.locked(py);
        endpoint.core.end();
    }

    fn close_streams(&self, py: Python<'_>) {
        let mut endpoint = self.locked(py);
        endpoint.core.close_streams();
    }

    #[pyo3(signature = (code, reason, /))]
    fn close(&self, py: Python<'_>, code: u16, reason: &str) {
        let mut endpoint = self.locked(py);
        endpoint.core.close(code, reason);
    }

    #[pyo3(signature = (now_ns, /))]
    fn poll(&self, py: Python<'_>, now_ns: u64) -> Option<(usize, usize)> {
        let mut endpoint = self.locked(py);
        endpoint.core.poll_frame(now_ns)
    }

    #[pyo3(signature = (stream, /))]
    fn offered<'py>(&self, py: Python<'py>, stream: usize) -> Bound<'py, PyBytes> {
        let endpoint = self.locked(py);
        let mut bytes = Vec::new();
        endpoint
            .core
            .rest(stream, |piece| bytes.extend_from_slice(piece));
        PyBytes::new(py, &bytes)
    }

    #[pyo3(signature = (stream, descriptor, rate_bps, header_bytes, /))]
    fn attach(
        &self,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
        rate_bps: Option<f64>,
        header_bytes: usize,
    ) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        let payload = self.frame_payload_bytes;
        endpoint
            .attach(stream, descriptor, rate_bps, payload, header_bytes)
            .map_err(os_error)
    }

    #[pyo3(signature = (now_ns, /))]
    fn measure(&self, py: Python<'_>, now_ns: u64) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.measure(now_ns).map_err(local)
    }

    #[pyo3(signature = (now_ns, stream, size, held, /))]
    fn has_room(
        &self,
        py: Python<'_>,
        now_ns: u64,
        stream: usize,
        size: usize,
        held: usize,
    ) -> PyResult<bool> {
        let mut endpoint = self.locked(py);
        (endpoint.has_room(now_ns, stream, size, held)).map_err(local)
    }

    #[pyo3(signature = (now_ns, /))]
    fn transmit(&self, py: Python<'_>, now_ns: u64) -> PyResult<Outcome> {
        let mut endpoint = self.locked(py);
        let sent = send_queued(&mut endpoint, py, now_ns)?;
        Ok(self.outcome(sent))
    }

    /// Read, take what is in order if `deliver`, and send what then is to be sent.
    #[pyo3(signature = (now_ns, stream, deliver, /))]
    fn exchange<'py>(
        &self,
        py: Python<'py>,
        now_ns: u64,
        stream: usize,
        deliver: bool,
    ) -> PyResult<Exchange<'py>> {
        let mut endpoint = self.locked(py);
        endpoint.hold(!deliver);
        let count = read(&mut endpoint, py, stream)?;
        if count < 0 {
            return Ok((count, Vec::new(), false, None));
        }
        let data = if deliver && endpoint.ready_bytes() > 0 {
            taken(&mut endpoint, py)?
        } else {
            Vec::new()
        };
        let closed = endpoint.core.closed_by_peer().is_some();
        if count == 0 || closed || endpoint.is_ended() {
            return Ok((count, data, true, None));
        }
        let sent = send_queued(&mut endpoint, py, now_ns)?;
        let is_quiet = self.is_quiet(&sent) && endpoint.ready_bytes() == 0;
        let outcome = (!is_quiet).then(|| self.outcome(sent));
        Ok((count, data, false, outcome))
    }

    #[pyo3(signature = (stream, /))]
    fn send(&self, py: Python<'_>, stream: usize) -> isize {
        let mut endpoint = self.locked(py);
        signed(endpoint.send(stream))
    }

    #[pyo3(signature = (stream, count, /))]
    fn sent(&self, py: Python<'_>, stream: usize, count: usize) -> PyResult<bool> {
        let mut endpoint = self.locked(py);
        endpoint.on_sent(stream, count).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn writable(&self, py: Python<'_>, stream: usize) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.core.on_writable(stream).map_err(local)
    }

    #[pyo3(signature = (stream, data, /))]
    fn receive(&self, py: Python<'_>, stream: usize, data: &[u8]) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.receive(stream, data).map_err(either)
    }

    #[pyo3(signature = (stream, /))]
    fn receive_from(&self, py: Python<'_>, stream: usize) -> PyResult<isize> {
        let mut endpoint = self.locked(py);
        read(&mut endpoint, py, stream)
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        // Others use the connection while bytes are copied.
        let slices = self.locked(py).take();
        let objects = bytes::objects(py, &slices);
        drop(slices);
        self.locked(py).reclaim();
        objects
    }

    #[getter]
    fn ready_bytes(&self, py: Python<'_>) -> usize {
        let endpoint = self.locked(py);
        endpoint.ready_bytes()
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&self, py: Python<'_>, stream: usize) -> PyResult<bool> {
        let mut endpoint = self.locked(py);
        endpoint.on_stream_end(stream).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn remove_stream(&self, py: Python<'_>, stream: usize) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.core.remove_stream(stream).map_err(local)
    }

    #[pyo3(signature = (token, /))]
    fn ping(&self, py: Python<'_>, token: u64) {
        let mut endpoint = self.locked(py);
        endpoint.core.ping(token);
    }

    #[pyo3(signature = (stream_id, weight, /))]
    fn add_stream(&self, py: Python<'_>, stream_id: u32, weight: f64) -> PyResult<usize> {
        let mut endpoint = self.locked(py);
        endpoint.core.add_stream(stream_id, weight).map_err(local)
    }

    #[pyo3(signature = (weights, /))]
    fn set_weights(&self, py: Python<'_>, weights: Vec<f64>) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.core.set_weights(&weights).map_err(local)
    }

    #[pyo3(signature = (stream, delay_ns, /))]
    fn set_delay(&self, py: Python<'_>, stream: usize, delay_ns: u64) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.core.set_delay(stream, delay_ns).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn blocked(&self, py: Python<'_>, stream: usize) -> bool {
        let endpoint = self.locked(py);
        endpoint.core.is_blocked(stream)
    }

    fn timeout_ns(&self, py: Python<'_>) -> Option<u64> {
        let endpoint = self.locked(py);
        endpoint.timeout_ns()
    }

    #[getter]
    fn closed_by_peer(&self, py: Python<'_>) -> Option<(u16, String)> {
        let endpoint = self.locked(py);
        endpoint
            .core
            .closed_by_peer()
            .map(|(code, reason)| (code, reason.to_owned()))
    }

    #[getter]
    fn alive(&self, py: Python<'_>) -> u64 {
        let endpoint = self.locked(py);
        endpoint.core.alive().bits()
    }

    /// The streams that should be read now, one bit each.
    #[getter]
    fn readable(&self, py: Python<'_>) -> u64 {
        let endpoint = self.locked(py);
        endpoint.core.readable().bits()
    }

    #[getter]
    fn stalled(&self, py: Python<'_>) -> u64 {
        let endpoint = self.locked(py);
        endpoint.core.stalled().bits()
    }

    #[getter]
    fn queued_bytes(&self, py: Python<'_>) -> usize {
        let endpoint = self.locked(py);
        endpoint.core.queued_bytes()
    }

    #[getter]
    fn finished(&self, py: Python<'_>) -> bool {
        let endpoint = self.locked(py);
        endpoint.core.is_finished()
    }

    #[getter]
    fn ended(&self, py: Python<'_>) -> bool {
        let endpoint = self.locked(py);
        endpoint.is_ended()
    }

    fn counters(&self, py: Python<'_>) -> Counters {
        let endpoint = self.locked(py);
        endpoint.core.counters().into()
    }

    #[pyo3(signature = (stream, proof, /))]
    fn expect_confirm(&self, py: Python<'_>, stream: usize, proof: [u8; 32]) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        endpoint.core.expect_confirm(stream, proof).map_err(local)
    }

    #[pyo3(signature = (length, /))]
    fn skip_early(&self, py: Python<'_>, length: usize) {
        let mut endpoint = self.locked(py);
        endpoint.core.skip_early(length);
    }

    #[pyo3(signature = (client, /))]
    fn open_by(&self, py: Python<'_>, client: &Client) {
        self.locked(py).core.open_by(client.0.clone());
    }

    #[pyo3(signature = (nonce, priority, most_bytes, /))]
    fn greet(
        &self,
        py: Python<'_>,
        nonce: [u8; NONCE_BYTES],
        priority: u32,
        most_bytes: usize,
    ) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        (endpoint.core.greet(nonce, priority, most_bytes)).map_err(local)
    }

    fn client(&self, py: Python<'_>) -> Option<Client> {
        self.locked(py).core.client().cloned().map(Client)
    }

    fn take_unconfirmed(&self, py: Python<'_>) {
        self.locked(py).core.take_unconfirmed();
    }

    #[getter]
    fn is_unconfirmed(&self, py: Python<'_>) -> bool {
        self.locked(py).core.is_unconfirmed()
    }

    fn reopen_streams(&self, py: Python<'_>) {
        let mut endpoint = self.locked(py);
        endpoint.core.reopen_streams();
    }

    fn farewell<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let farewell = self.locked(py).core.farewell()?;
        Some(PyBytes::new(py, &farewell))
    }

    #[pyo3(signature = (data, /))]
    fn early(&self, py: Python<'_>, data: &[u8]) {
        let mut endpoint = self.locked(py);
        endpoint.receive_early(data);
    }

    fn shut(&self, py: Python<'_>) {
        let mut endpoint = self.locked(py);
        endpoint.core.shut();
    }

    fn leave_budget(&self, py: Python<'_>) {
        self.locked(py).core.leave_budget();
    }

    fn events(&self, py: Python<'_>) -> Vec<(&'static str, u64)> {
        let mut endpoint = self.locked(py);
        let mut events = Vec::new();
        while let Some(event) = endpoint.poll_event() {
            events.push(self::event(event));
        }
        events
    }

    #[pyo3(signature = (idle_ns, probes, /))]
    fn set_keepalive(&self, py: Python<'_>, idle_ns: Option<u64>, probes: u32) {
        let mut endpoint = self.locked(py);
        endpoint.core.set_keepalive(idle_ns, probes);
    }

    #[pyo3(signature = (reconnect_ns, close_ns, /))]
    fn set_timeouts(&self, py: Python<'_>, reconnect_ns: u64, close_ns: u64) {
        let mut endpoint = self.locked(py);
        endpoint.core.set_reconnect_ns(reconnect_ns);
        endpoint.core.set_close_ns(close_ns);
    }

    #[pyo3(signature = (bell, number, /))]
    fn lend(&self, bell: &Bell, number: u64) -> Loan {
        Loan::new(&self.shared, bell, number)
    }

    #[pyo3(signature = (stream, priority, tell, /))]
    fn set_priority(
        &self,
        py: Python<'_>,
        stream: usize,
        priority: u32,
        tell: bool,
    ) -> PyResult<()> {
        let mut endpoint = self.locked(py);
        match tell {
            true => endpoint.core.set_priority(stream, priority),
            false => endpoint.core.note_priority(stream, priority),
        }
        .map_err(local)
    }
}

#[pyfunction]
#[pyo3(signature = (descriptor, /))]
fn unacknowledged_bytes(descriptor: i32) -> usize {
    sys::unacknowledged_bytes(descriptor)
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(unacknowledged_bytes, module)?)?;
    module.add_class::<Connection>()?;
    module.add_class::<Counters>()
}
