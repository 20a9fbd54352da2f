//! `mstcp._core.Connection`: the driver of a connection, for Python.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use mstcp_net::shared::Locked;
use mstcp_net::{Driver, MappedFile, SharedDriver, ShellStream, SocketId, StreamId, StreamSocket};
use mstcp_proto::error::LocalError;
use mstcp_proto::{scheduler, Config};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::action::{failure, Action, Known};
use crate::bytes::{self, Bytes, PythonMemory};
use crate::client::{Address, AskedStream, Options};
use crate::convert::os_error;
use crate::counters::Counters;
use crate::receive_memory::budget;
use crate::waiter::{Bell, Waiter};
use crate::{either, local};

/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From this many queued bytes on other threads run while they are sent.
const DETACHED_BYTES: usize = 1 << 16;

#[pyclass(module = "mstcp._core", frozen)]
pub(crate) struct Connection {
    shared: Arc<SharedDriver>,
    known: Mutex<Known>,
    /// When Python was told to call again; the greatest number: not.
    told_due_ns: AtomicU64,
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

/// Send what is queued, other threads of Python going on where that is much.
fn settle(driver: &mut Driver, py: Python<'_>, now_ns: u64) {
    match driver.queued_bytes() >= DETACHED_BYTES {
        true => py.detach(|| driver.settle(now_ns)),
        false => driver.settle(now_ns),
    }
}

fn taken<'py>(driver: &mut Driver, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    if driver.ready_bytes() == 0 {
        return Ok(Vec::new());
    }
    let slices = driver.take_unsettled();
    let objects = bytes::objects(py, &slices);
    drop(slices);
    driver.endpoint().reclaim();
    objects
}

impl Connection {
    fn of(core: mstcp_proto::Connection, frame_payload_bytes: usize) -> Self {
        Self::with(Driver::of_core(core, frame_payload_bytes))
    }

    /// A connection whose streams are not read before `start`.
    pub(crate) fn of_driver(mut driver: Driver) -> Self {
        driver.start_later();
        Self::with(driver)
    }

    fn with(driver: Driver) -> Self {
        Self {
            shared: Arc::new(SharedDriver::new(driver)),
            known: Mutex::default(),
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

    /// Open a connection of a client.
    #[staticmethod]
    #[pyo3(signature = (now_ns, destinations, streams, options, cipher, /))]
    fn connect(
        py: Python<'_>,
        now_ns: u64,
        destinations: Vec<Address>,
        streams: Vec<AskedStream>,
        options: Options,
        cipher: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let streams = streams.into_iter().map(AskedStream::take).collect();
        let destinations = destinations.into_iter().map(|to| to.0).collect();
        let config = Arc::new(options.config(cipher));
        let driver = Driver::connect_over(now_ns, config, destinations, streams);
        let driver = driver.map_err(|error| failure(py, &error))?;
        Ok(Self::of_driver(driver))
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

    // --- what the event loop tells and does -------------------------------------------------------------------------------------

    /// Read a socket, take what is in order if `deliver`, and send what then is to be sent.
    #[pyo3(signature = (now_ns, socket, deliver, /))]
    fn readable<'py>(
        &self,
        py: Python<'py>,
        now_ns: u64,
        socket: u64,
        deliver: bool,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut driver = self.locked(py);
        let socket = SocketId::from_number(socket);
        driver.read_to(now_ns, socket, &mut PythonMemory(py))?;
        let data = match deliver {
            true => taken(&mut driver, py)?,
            false => Vec::new(),
        };
        settle(&mut driver, py, now_ns);
        Ok(data)
    }

    #[pyo3(signature = (now_ns, socket, /))]
    fn writable(&self, py: Python<'_>, now_ns: u64, socket: u64) {
        let mut driver = self.locked(py);
        driver.note_writable(now_ns, SocketId::from_number(socket));
        settle(&mut driver, py, now_ns);
    }

    #[pyo3(signature = (now_ns, /))]
    fn due(&self, py: Python<'_>, now_ns: u64) {
        self.told_due_ns.store(u64::MAX, Ordering::Relaxed);
        self.locked(py).due(now_ns);
    }

    #[pyo3(signature = (now_ns, /))]
    fn settle(&self, py: Python<'_>, now_ns: u64) {
        settle(&mut self.locked(py), py, now_ns);
    }

    /// What is to be done; the last is the timer, where it is to be sooner than was told.
    fn actions(&self, py: Python<'_>) -> Vec<Action> {
        let mut driver = self.locked(py);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut actions = Vec::new();
        while let Some(action) = driver.poll_action() {
            actions.extend(Action::of(py, action, &mut driver, &mut known));
        }
        actions.retain_mut(|action| action.take_socket(&mut driver));
        // Threads that have the sockets have the timer too.
        let due_ns = driver.timeout_ns().filter(|_| !driver.stands_by());
        if let Some(due_ns) = due_ns {
            if due_ns < self.told_due_ns.load(Ordering::Relaxed) {
                self.told_due_ns.store(due_ns, Ordering::Relaxed);
                actions.push(Action::timer(due_ns));
            }
        }
        actions
    }

    /// Read the streams from now on.
    fn start(&self, py: Python<'_>) {
        self.locked(py).start();
    }

    #[pyo3(signature = (stands_by, /))]
    fn stand_by(&self, py: Python<'_>, stands_by: bool) {
        if stands_by {
            self.told_due_ns.store(u64::MAX, Ordering::Relaxed);
        }
        self.locked(py).stand_by(stands_by);
    }

    #[pyo3(signature = (holds, /))]
    fn hold(&self, py: Python<'_>, holds: bool) {
        self.locked(py).hold(holds);
    }

    fn take<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        taken(&mut self.locked(py), py)
    }

    #[pyo3(signature = (bell, number, /))]
    fn hand_over(&self, py: Python<'_>, bell: &Bell, number: u64) -> Waiter {
        self.locked(py).read_ahead();
        Waiter::new(&self.shared, bell, number)
    }

    // --- what the application wants ---------------------------------------------------------------------------------------------

    #[pyo3(signature = (data, /))]
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut driver = self.locked(py);
        Piece::new(data).push(driver.core()).map_err(local)
    }

    #[pyo3(signature = (descriptor, offset, length, /))]
    fn write_file(
        &self,
        py: Python<'_>,
        descriptor: i32,
        offset: u64,
        length: usize,
    ) -> PyResult<()> {
        let mut driver = self.locked(py);
        let mapped = MappedFile::new(descriptor, offset, length).map_err(os_error)?;
        (driver.core())
            .write_shared(Arc::new(mapped))
            .map_err(local)
    }

    /// Write and send.
    #[pyo3(signature = (now_ns, data, /))]
    fn write_now(&self, py: Python<'_>, now_ns: u64, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut driver = self.locked(py);
        Piece::new(data).push(driver.core()).map_err(local)?;
        settle(&mut driver, py, now_ns);
        Ok(())
    }

    #[pyo3(signature = (now_ns, /))]
    fn end(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).end(now_ns);
    }

    #[pyo3(signature = (now_ns, /))]
    fn close(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).close(now_ns);
    }

    #[pyo3(signature = (now_ns, code, reason, /))]
    fn abort(&self, py: Python<'_>, now_ns: u64, code: u16, reason: &str) {
        self.locked(py).abort_by(now_ns, code, reason);
    }

    /// End at once, without a word.
    #[pyo3(signature = (now_ns, /))]
    fn give_up(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).give_up(now_ns, mstcp_net::Error::Closed);
    }

    #[pyo3(signature = (most_bytes, few_bytes, /))]
    fn set_write_limits(&self, py: Python<'_>, most_bytes: usize, few_bytes: usize) {
        self.locked(py).set_write_limits(most_bytes, few_bytes);
    }

    // --- streams ----------------------------------------------------------------------------------------------------------------

    /// Use a socket for a stream; returns its number.
    #[pyo3(signature = (stream, descriptor, rate_bps, /))]
    fn attach(
        &self,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
        rate_bps: Option<f64>,
    ) -> PyResult<u64> {
        let mut driver = self.locked(py);
        // SAFETY: the transport closes a socket when it is told to watch it no more.
        let socket = unsafe { StreamSocket::of_shell(descriptor) };
        let attached = driver.attach(ShellStream {
            slot: stream,
            socket,
            rate_bps,
            layer: None,
        });
        Ok(attached.map_err(|error| failure(py, &error))?.number())
    }

    #[pyo3(signature = (stream, rate_bps, /))]
    fn pace(&self, py: Python<'_>, stream: usize, rate_bps: Option<f64>) -> PyResult<()> {
        let paced = self.locked(py).pace_at(stream, rate_bps);
        paced.map_err(|error| failure(py, &error))
    }

    #[pyo3(signature = (now_ns, stream, /))]
    fn remove_stream(&self, py: Python<'_>, now_ns: u64, stream: usize) -> PyResult<()> {
        let removed = self.locked(py).retire(now_ns, stream);
        removed.map_err(|error| failure(py, &error))
    }

    /// Open a further stream; returns its number.
    #[pyo3(signature = (now_ns, stream, /))]
    fn dial(&self, py: Python<'_>, now_ns: u64, stream: AskedStream) -> PyResult<usize> {
        let (spec, socket) = stream.take();
        let added = self.locked(py).add_stream_over(now_ns, spec, socket);
        Ok(added.map_err(|error| failure(py, &error))?.index())
    }

    /// Open a stream no more that is not open.
    #[pyo3(signature = (now_ns, number, /))]
    fn forget(&self, py: Python<'_>, now_ns: u64, number: usize) {
        // It may be open by now.
        let _ = self
            .locked(py)
            .remove_stream(now_ns, StreamId::from_index(number));
    }

    /// Pace a stream at another rate once it is open.
    #[pyo3(signature = (number, rate_bps, /))]
    fn note_rate(&self, py: Python<'_>, number: usize, rate_bps: Option<f64>) {
        let stream = StreamId::from_index(number);
        self.locked(py).note_rate(stream, rate_bps);
    }

    #[getter]
    fn is_joining(&self, py: Python<'_>) -> bool {
        self.locked(py).is_joining()
    }

    #[pyo3(signature = (stream_id, weight, /))]
    fn add_stream(&self, py: Python<'_>, stream_id: u32, weight: f64) -> PyResult<usize> {
        let added = self.locked(py).core().add_stream(stream_id, weight);
        added.map_err(local)
    }

    #[pyo3(signature = (weights, /))]
    fn set_weights(&self, py: Python<'_>, weights: Vec<f64>) -> PyResult<()> {
        let set = self.locked(py).core().set_weights(&weights);
        set.map_err(local)
    }

    #[pyo3(signature = (stream, delay_ns, /))]
    fn set_delay(&self, py: Python<'_>, stream: usize, delay_ns: u64) -> PyResult<()> {
        let set = self.locked(py).core().set_delay(stream, delay_ns);
        set.map_err(local)
    }

    #[pyo3(signature = (stream, priority, /))]
    fn set_priority(&self, py: Python<'_>, stream: usize, priority: u32) -> PyResult<()> {
        let set = self.locked(py).core().set_priority(stream, priority);
        set.map_err(local)
    }

    // --- hellos -----------------------------------------------------------------------------------------------------------------

    #[pyo3(signature = (stream, proof, /))]
    fn expect_confirm(&self, py: Python<'_>, stream: usize, proof: [u8; 32]) -> PyResult<()> {
        let expected = self.locked(py).core().expect_confirm(stream, proof);
        expected.map_err(local)
    }

    /// Say the first hello, with what was written.
    #[pyo3(signature = (now_ns, /))]
    fn greet(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).greet(now_ns);
    }

    #[pyo3(signature = (stream, data, /))]
    fn receive(&self, py: Python<'_>, stream: usize, data: &[u8]) -> PyResult<()> {
        let received = self.locked(py).endpoint().receive(stream, data);
        received.map_err(either)
    }

    /// Note that the peer has ended a stream, of which its socket does not tell.
    #[pyo3(signature = (now_ns, stream, /))]
    fn stream_end(&self, py: Python<'_>, now_ns: u64, stream: usize) {
        self.locked(py).note_end(now_ns, stream);
    }

    // --- how it is --------------------------------------------------------------------------------------------------------------

    #[pyo3(signature = (idle_ns, probes, /))]
    fn set_keepalive(&self, py: Python<'_>, idle_ns: Option<u64>, probes: u32) {
        self.locked(py).core().set_keepalive(idle_ns, probes);
    }

    #[pyo3(signature = (reconnect_ns, close_ns, /))]
    fn set_timeouts(&self, py: Python<'_>, reconnect_ns: u64, close_ns: u64) {
        let mut driver = self.locked(py);
        driver.core().set_reconnect_ns(reconnect_ns);
        driver.core().set_close_ns(close_ns);
    }

    #[getter]
    fn connection_id<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let id = self.locked(py).connection_id()?;
        Some(PyBytes::new(py, &id))
    }

    #[getter]
    fn frame_payload_bytes(&self, py: Python<'_>) -> usize {
        self.locked(py).frame_payload_bytes()
    }

    #[getter]
    fn is_plain(&self, py: Python<'_>) -> bool {
        self.locked(py).core().is_plain()
    }

    #[getter]
    fn alive(&self, py: Python<'_>) -> u64 {
        self.locked(py).core().alive().bits()
    }

    #[getter]
    fn stalled(&self, py: Python<'_>) -> u64 {
        self.locked(py).core().stalled().bits()
    }

    #[getter]
    fn ready_bytes(&self, py: Python<'_>) -> usize {
        self.locked(py).ready_bytes()
    }

    #[getter]
    fn queued_bytes(&self, py: Python<'_>) -> usize {
        self.locked(py).queued_bytes()
    }

    #[getter]
    fn sent_bytes(&self, py: Python<'_>) -> u64 {
        self.locked(py).sent_bytes()
    }

    #[getter]
    fn unacknowledged_bytes(&self, py: Python<'_>) -> usize {
        self.locked(py).unacknowledged_bytes()
    }

    #[getter]
    fn ended(&self, py: Python<'_>) -> bool {
        self.locked(py).is_ended()
    }

    fn counters(&self, py: Python<'_>) -> Counters {
        self.locked(py).core().counters().into()
    }

    // --- frame by frame, without sockets ----------------------------------------------------------------------------------------

    #[pyo3(signature = (now_ns, /))]
    fn poll(&self, py: Python<'_>, now_ns: u64) -> Option<(usize, usize)> {
        self.locked(py).core().poll_frame(now_ns)
    }

    #[pyo3(signature = (stream, /))]
    fn offered<'py>(&self, py: Python<'py>, stream: usize) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        (self.locked(py).core()).rest(stream, |piece| bytes.extend_from_slice(piece));
        PyBytes::new(py, &bytes)
    }

    #[pyo3(signature = (stream, count, /))]
    fn sent(&self, py: Python<'_>, stream: usize, count: usize) -> PyResult<bool> {
        let sent = self.locked(py).endpoint().on_sent(stream, count);
        sent.map_err(local)
    }

    #[pyo3(signature = (now_ns, /))]
    fn measure(&self, py: Python<'_>, now_ns: u64) -> PyResult<()> {
        let measured = self.locked(py).endpoint().measure(now_ns);
        measured.map_err(local)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Connection>()?;
    module.add_class::<Action>()?;
    module.add_class::<Counters>()
}
