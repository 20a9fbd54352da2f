//! `mstcp._core.Waiter` and `LoopWaker`: a connection that an event loop and the threads which wait for it drive in turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mstcp_net::inbox::ReadTarget;
use mstcp_net::memory::keep_freed_memory;
use mstcp_net::shared::{self, Clock, SharedDriver, ThreadUse, WaitError, WaitFor, WaitOutcome};
use mstcp_proto::LocalError;
use pyo3::exceptions::{PyBlockingIOError, PyTimeoutError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::buffer::WritableBuffer;
use crate::bytes::NewBytes;
use crate::connection::WriteData;
use crate::convert::os_error;
use crate::local;

/// What `recv` makes room for, however much it is asked for.
const MAX_RECEIVED_BYTES: usize = 1 << 20;

/// Whether the process is about to end.
static IS_EXITING: AtomicBool = AtomicBool::new(false);

/// Keep threads that wait from now on in their wait. At its end CPython before 3.14 ends a thread that asks for the
/// interpreter by unwinding its stack, and where Rust's frames are on it that aborts the process.
#[pyfunction]
fn keep_waiting_threads() {
    IS_EXITING.store(true, Ordering::Release);
}

/// As `Python::detach`, in a thread of the application.
fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> T {
    py.detach(|| {
        let done = work();
        while IS_EXITING.load(Ordering::Acquire) {
            std::thread::park();
        }
        done
    })
}

#[pyclass(module = "mstcp._core", frozen)]
pub struct LoopWaker(Arc<shared::LoopWaker>);

#[pymethods]
impl LoopWaker {
    #[new]
    fn new() -> PyResult<Self> {
        let loop_waker = shared::LoopWaker::new().map_err(os_error)?;
        Ok(Self(Arc::new(loop_waker)))
    }

    fn fileno(&self) -> i32 {
        self.0.descriptor()
    }

    fn take(&self) -> Vec<u64> {
        self.0.take()
    }
}

#[pyclass(module = "mstcp._core", frozen)]
struct Readiness(Mutex<shared::Readiness>);

#[pymethods]
impl Readiness {
    #[new]
    fn new() -> PyResult<Self> {
        let readiness = shared::Readiness::new().map_err(os_error)?;
        Ok(Self(Mutex::new(readiness)))
    }

    fn fileno(&self) -> i32 {
        self.locked().descriptor()
    }

    #[pyo3(signature = (is_set, /))]
    fn set(&self, is_set: bool) {
        self.locked().set(is_set);
    }
}

impl Readiness {
    fn locked(&self) -> MutexGuard<'_, shared::Readiness> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pyclass(module = "mstcp._core", frozen)]
pub struct Waiter(Arc<SharedDriver>);

impl Waiter {
    pub fn new(endpoint: &Arc<SharedDriver>, loop_waker: &LoopWaker, id: u64) -> Self {
        keep_freed_memory();
        endpoint.hand_over(Arc::clone(&loop_waker.0), id);
        Self(Arc::clone(endpoint))
    }

    /// Wait for a wish; none: the connection is closed.
    fn wait(
        &self,
        py: Python<'_>,
        now_ns: u64,
        wait_for: &mut WaitFor<'_>,
        timeout_ns: Option<u64>,
    ) -> PyResult<Option<usize>> {
        let outcome = if timeout_ns == Some(0) {
            let shared = &self.0;
            detached(py, || shared.attempt(wait_for, now_ns)).map_err(local)?
        } else {
            let clock = Clock::new(now_ns);
            let until_ns = timeout_ns.map(|timeout_ns| now_ns.saturating_add(timeout_ns));
            let check = || Python::attach(|py| py.check_signals());
            detached(py, || self.0.wait(wait_for, &clock, until_ns, check)).map_err(wait_error)?
        };
        match outcome {
            WaitOutcome::Done(count) => Ok(Some(count)),
            WaitOutcome::Ended => Ok(Some(0)),
            WaitOutcome::Over | WaitOutcome::Dismissed => Ok(None),
            WaitOutcome::TimedOut if timeout_ns == Some(0) => Err(PyBlockingIOError::new_err(
                "the operation would have to wait, and the timeout is 0",
            )),
            WaitOutcome::TimedOut => Err(PyTimeoutError::new_err("timed out")),
        }
    }
}

fn wait_error(error: WaitError<PyErr>) -> PyErr {
    match error {
        WaitError::System(errno) => os_error(errno),
        WaitError::Core(error) => local(error),
        WaitError::Interrupted(error) => error,
    }
}

#[pymethods]
impl Waiter {
    // --- in threads that wait -------------------------------------------------------------------------------
    #[pyo3(signature = (now_ns, size, timeout_ns, keeps = false, /))]
    fn receive<'py>(
        &self,
        py: Python<'py>,
        now_ns: u64,
        size: usize,
        timeout_ns: Option<u64>,
        keeps: bool,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let mut bytes = NewBytes::new(py, size.clamp(1, MAX_RECEIVED_BYTES))?;
        let target = ReadTarget::new(bytes.buffer());
        let mut wait_for = match keeps {
            true => WaitFor::Peek(target),
            false => WaitFor::Bytes(target),
        };
        match self.wait(py, now_ns, &mut wait_for, timeout_ns)? {
            None => Ok(None),
            Some(0) => Ok(Some(PyBytes::new(py, b""))),
            Some(count) => Ok(Some(bytes.into_object(py, count)?)),
        }
    }

    #[pyo3(signature = (now_ns, buffer, timeout_ns, /))]
    fn receive_into(
        &self,
        py: Python<'_>,
        now_ns: u64,
        buffer: &Bound<'_, PyAny>,
        timeout_ns: Option<u64>,
    ) -> PyResult<Option<usize>> {
        let mut buffer = WritableBuffer::new(buffer)?;
        self.wait(
            py,
            now_ns,
            &mut WaitFor::Bytes(ReadTarget::new(buffer.bytes())),
            timeout_ns,
        )
    }

    #[pyo3(signature = (now_ns, data, most, few, timeout_ns, /))]
    fn send(
        &self,
        py: Python<'_>,
        now_ns: u64,
        data: &Bound<'_, PyBytes>,
        most: usize,
        few: usize,
        timeout_ns: Option<u64>,
    ) -> PyResult<bool> {
        let mut wait_for = WaitFor::Room { most, few };
        if self.wait(py, now_ns, &mut wait_for, timeout_ns)?.is_none() {
            return Ok(false);
        }
        let piece = WriteData::new(data);
        let shared = &self.0;
        let write = move |core: &mut mstcp_proto::Connection| piece.push(core);
        detached(py, || shared.write(now_ns, timeout_ns != Some(0), write))
            .map_err(|error: LocalError| local(error))?;
        Ok(true)
    }

    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        py.detach(|| self.0.readable_descriptor()).map_err(os_error)
    }

    #[pyo3(signature = (readers, writers, /))]
    fn dismiss(&self, py: Python<'_>, readers: bool, writers: bool) {
        py.detach(|| self.0.dismiss(readers, writers));
    }

    // --- in the loop's thread -------------------------------------------------------------------------------
    fn requests(&self, py: Python<'_>) -> (bool, bool, bool) {
        let requests = py.detach(|| self.0.take_requests());
        (requests.stand_by, requests.attend, requests.watch)
    }

    #[getter]
    fn is_out(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.lock().is_out())
    }

    #[pyo3(signature = (now_ns, idle_ns, /))]
    fn look(&self, py: Python<'_>, now_ns: u64, idle_ns: u64) -> &'static str {
        match py.detach(|| self.0.lock().look(now_ns, idle_ns)) {
            ThreadUse::Idle => "idle",
            ThreadUse::Recent => "recent",
            ThreadUse::Waiting => "waiting",
        }
    }

    fn claim(&self, py: Python<'_>) -> bool {
        py.detach(|| self.0.lock().claim())
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(keep_waiting_threads, module)?)?;
    module.add_class::<LoopWaker>()?;
    module.add_class::<Readiness>()?;
    module.add_class::<Waiter>()
}
