//! `mstcp._core.Connection`: the driver of a connection, for Python.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::MmapOptions;
use mstcp_net::shared::DriverGuard;
use mstcp_net::{Driver, SharedDriver, SocketId, StreamId};
use mstcp_proto::LocalError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::action::{failure, Action, SocketTable};
use crate::bytes::{self, Bytes, PythonMemory};
use crate::client::{Address, AskedStream, Options};
use crate::counters::Counters;
use crate::local;
use crate::waiter::{LoopWaker, Waiter};

/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From this many queued bytes on other threads run while they are sent.
const DETACHED_BYTES: usize = 1 << 16;

#[pyclass(module = "mstcp._core", frozen)]
pub(crate) struct Connection {
    shared: Arc<SharedDriver>,
    known: Mutex<SocketTable>,
    /// When Python was told to call again; the greatest number: not.
    told_due_ns: AtomicU64,
}

/// Bytes to be written.
pub(crate) struct WriteData(Bytes);

impl WriteData {
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
    /// A connection whose streams are not read before `start`.
    pub(crate) fn of_driver(mut driver: Driver) -> Self {
        // Bytes of MSTCP wait here for `start`, those of plain TCP in the kernel.
        if driver.core().is_plain() {
            driver.start_later();
        }
        Self {
            shared: Arc::new(SharedDriver::new(driver)),
            known: Mutex::default(),
            told_due_ns: AtomicU64::new(u64::MAX),
        }
    }

    /// The connection, other threads of Python going on while one has it.
    fn locked(&self, py: Python<'_>) -> DriverGuard<'_> {
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

    #[pyo3(signature = (waker, number, /))]
    fn hand_over(&self, py: Python<'_>, waker: &LoopWaker, number: u64) -> Waiter {
        self.locked(py).read_ahead();
        Waiter::new(&self.shared, waker, number)
    }

    // --- what the application wants ---------------------------------------------------------------------------------------------

    #[pyo3(signature = (descriptor, offset, length, /))]
    fn write_file(
        &self,
        py: Python<'_>,
        descriptor: i32,
        offset: u64,
        length: usize,
    ) -> PyResult<()> {
        let mut driver = self.locked(py);
        // SAFETY: the application leaves the file as it is until the peer has acknowledged it.
        let mapped = unsafe {
            MmapOptions::new()
                .offset(offset)
                .len(length)
                .map(descriptor)
        }?;
        (driver.core())
            .write_shared(Arc::new(mapped))
            .map_err(local)
    }

    /// Write and send.
    #[pyo3(signature = (now_ns, data, /))]
    fn write_now(&self, py: Python<'_>, now_ns: u64, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut driver = self.locked(py);
        WriteData::new(data).push(driver.core()).map_err(local)?;
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

    #[pyo3(signature = (now_ns, rates, /))]
    fn set_rates(
        &self,
        py: Python<'_>,
        now_ns: u64,
        rates: Vec<(usize, Option<f64>)>,
    ) -> PyResult<()> {
        let rates: Vec<_> = (rates.into_iter())
            .map(|(number, rate_bps)| (StreamId::from_index(number), rate_bps))
            .collect();
        let set = self.locked(py).set_rates(now_ns, &rates);
        set.map_err(|error| failure(py, &error))
    }

    #[pyo3(signature = (now_ns, number, /))]
    fn remove_stream(&self, py: Python<'_>, now_ns: u64, number: usize) -> PyResult<()> {
        let stream = StreamId::from_index(number);
        let removed = self.locked(py).remove_stream(now_ns, stream);
        removed.map_err(|error| failure(py, &error))
    }

    /// Open a further stream; returns its number.
    #[pyo3(signature = (now_ns, stream, /))]
    fn dial(&self, py: Python<'_>, now_ns: u64, stream: AskedStream) -> PyResult<usize> {
        let (spec, socket) = stream.take();
        let added = self.locked(py).add_stream_over(now_ns, spec, socket);
        Ok(added.map_err(|error| failure(py, &error))?.index())
    }

    #[pyo3(signature = (now_ns, addresses, /))]
    fn announce(&self, py: Python<'_>, now_ns: u64, addresses: Vec<Address>) -> PyResult<()> {
        let addresses = addresses.into_iter().map(|address| address.0).collect();
        let announced = self.locked(py).announce(now_ns, addresses);
        announced.map_err(|error| failure(py, &error))
    }

    #[pyo3(signature = (now_ns, /))]
    fn network_changed(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).network_changed(now_ns);
    }

    #[getter]
    fn is_joining(&self, py: Python<'_>) -> bool {
        self.locked(py).is_joining()
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

    /// Say the first hello, with what was written.
    #[pyo3(signature = (now_ns, /))]
    fn greet(&self, py: Python<'_>, now_ns: u64) {
        self.locked(py).greet(now_ns);
    }

    // --- how it is --------------------------------------------------------------------------------------------------------------

    #[pyo3(signature = (idle_ns, probes, /))]
    fn set_keepalive(&self, py: Python<'_>, idle_ns: Option<u64>, probes: u32) {
        self.locked(py).core().set_keepalive(idle_ns, probes);
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
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Connection>()?;
    module.add_class::<Action>()?;
    module.add_class::<Counters>()
}
