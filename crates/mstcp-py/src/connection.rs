//! `mstcp._core.Connection`: the protocol core, and the I/O of bytes that Python need not see.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mstcp_core::frame::{Expected, LONG_HEADER_BYTES};
use mstcp_core::{scheduler, Budget, Config, Slice};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{self, Bytes, NewBytes};
use crate::{either, local, sockets};

/// A wake-up reads no more once it has read so much.
const READ_BYTES: usize = 1 << 19;
/// What the application is given at once, about.
const TAKE_BYTES: usize = 1 << 19;
/// What one system call reads at most.
const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that are kept for later reads, over all connections.
const SPARE_CHUNKS: usize = 32;
/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From this size on a copy lets other threads run meanwhile.
const DETACHED_BYTES: usize = 1 << 16;

/// How often TCP is asked what a stream without a rate carries, in nanoseconds.
const MEASURE_NS: u64 = 10_000_000;
/// Of what such a stream carries, what may wait in its socket: so many seconds, and within these bounds.
const UNSENT_SECONDS: f64 = 0.010;
const LEAST_UNSENT_BYTES: usize = 1 << 14;
const MOST_UNSENT_BYTES: usize = 1 << 18;

static SPARE: Mutex<Vec<Arc<Vec<u8>>>> = Mutex::new(Vec::new());

/// What all connections of the process may promise to receive, unless the application says otherwise.
const RECEIVE_BUDGET_BYTES: u64 = 1 << 30;

fn budget() -> &'static Arc<Budget> {
    static BUDGET: OnceLock<Arc<Budget>> = OnceLock::new();
    BUDGET.get_or_init(|| Arc::new(Budget::new(RECEIVE_BUDGET_BYTES)))
}

#[pyfunction]
#[pyo3(signature = (limit_bytes, /))]
fn limit_receive_memory(limit_bytes: u64) {
    budget().set_limit_bytes(limit_bytes);
}

#[pyfunction]
fn receive_memory() -> (u64, u64) {
    (budget().promised_bytes(), budget().limit_bytes())
}

fn take_chunk() -> Arc<Vec<u8>> {
    let spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner).pop();
    spare.unwrap_or_else(|| Arc::new(vec![0; CHUNK_BYTES]))
}

fn give_back(chunk: Arc<Vec<u8>>) {
    let mut spare = SPARE.lock().unwrap_or_else(PoisonError::into_inner);
    if spare.len() < SPARE_CHUNKS && Arc::strong_count(&chunk) == 1 {
        spare.push(chunk);
    }
}

#[pyclass(module = "mstcp._core")]
struct Connection {
    inner: mstcp_core::Connection,
    /// In order, and not taken by the application yet.
    ready: VecDeque<Slice>,
    ready_bytes: usize,
    /// Chunks that slices still refer to.
    lent: Vec<Arc<Vec<u8>>>,
    found: Vec<Slice>,
    /// By stream; those of lost streams are not used any more.
    sockets: Vec<Socket>,
}

/// A stream's socket, and what may wait in it.
#[derive(Clone, Copy)]
struct Socket {
    descriptor: i32,
    /// The most unsent bytes, and how many more would have been allowed when the kernel was last asked.
    unsent_limit: Option<usize>,
    unsent_room: usize,
    /// For a stream without a rate: when to ask TCP again what it carries.
    measure_ns: Option<u64>,
}

impl Socket {
    const NONE: Self = Self {
        descriptor: -1,
        unsent_limit: None,
        unsent_room: 0,
        measure_ns: None,
    };

    /// Whether `size` bytes more were not too many unsent ones when the kernel was last asked.
    ///
    /// The kernel calls the socket writable when less than half of the bound is unsent: what is larger (a frame that was
    /// begun before the bound shrank) must not wait for more, or it would wait for ever.
    fn has_room(&self, size: usize) -> bool {
        self.unsent_limit
            .map_or(true, |limit| self.unsent_room >= size.min(limit / 2))
    }

    /// Take what TCP carries: bound what waits by it. True if the bound has changed.
    fn note_rate(&mut self, rate_bps: f64) -> bool {
        let bytes = (rate_bps / 8.0 * UNSENT_SECONDS) as usize;
        let limit = (bytes < MOST_UNSENT_BYTES).then_some(bytes.max(LEAST_UNSENT_BYTES));
        let old = self.unsent_limit.unwrap_or(MOST_UNSENT_BYTES);
        let new = limit.unwrap_or(MOST_UNSENT_BYTES);
        // Not for every wobble.
        if old.abs_diff(new) <= old / 8 {
            return false;
        }
        self.unsent_limit = limit;
        self.unsent_room = 0;
        sockets::set_unsent_limit(self.descriptor, new);
        true
    }
}

/// Bytes sent and queued, streams blocked and ended (bits), a broken stream and its errno, when to call again.
type Outcome = (usize, usize, u64, u64, Option<(usize, i32)>, Option<u64>);

/// What was read (an errno if below 0), the bytes taken, whether something ended, and what was sent.
type Exchange<'py> = (isize, Vec<Bound<'py, PyBytes>>, bool, Option<Outcome>);

impl Connection {
    /// Read a socket; 0 is the end of the stream, the error an errno.
    ///
    /// The payload of large frames is read to where it stays, so that it is never copied after.
    fn read(
        &mut self,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
    ) -> PyResult<Result<usize, i32>> {
        let mut all = 0;
        while all < READ_BYTES {
            let (asked, result) = match self.inner.expected(stream) {
                Some(expected) => self.read_payload(py, stream, descriptor, expected)?,
                None => (usize::MAX, self.read_chunk(py, stream, descriptor)?),
            };
            match result {
                Ok(count) => {
                    all += count;
                    if count < asked {
                        break;
                    }
                }
                // It is still there, or comes again, at the next call.
                Err(_) if all > 0 => break,
                Err(errno) => return Ok(Err(errno)),
            }
        }
        Ok(Ok(all))
    }

    /// Read whatever comes.
    fn read_chunk(
        &mut self,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
    ) -> PyResult<Result<usize, i32>> {
        let mut chunk = take_chunk();
        let result = match Arc::get_mut(&mut chunk) {
            Some(buffer) => py.detach(|| sockets::receive(descriptor, buffer)),
            None => Err(libc::EAGAIN),
        };
        let Ok(count) = result else {
            give_back(chunk);
            return Ok(result);
        };
        let outcome = self.inner.on_chunk(stream, &chunk, count, &mut self.found);
        if Arc::strong_count(&chunk) == 1 {
            give_back(chunk);
        } else {
            self.lent.push(chunk);
        }
        outcome.map_err(either)?;
        self.note_ready();
        Ok(Ok(count))
    }

    /// Read the rest of a frame's payload into an object of its own, and the header after it; also return how much was
    /// asked for.
    fn read_payload(
        &mut self,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
        expected: Expected,
    ) -> PyResult<(usize, Result<usize, i32>)> {
        // An object of just the size: to cut it would have the system take memory back and give it again.
        let waiting = sockets::waiting_bytes(descriptor).max(1);
        let length = expected.payload_bytes.min(CHUNK_BYTES).min(waiting);
        let mut header = [0; LONG_HEADER_BYTES];
        let header_bytes = match length == expected.payload_bytes {
            true => expected.header_bytes,
            false => 0,
        };
        let header = &mut header[..header_bytes];
        let mut payload = NewBytes::new(py, length)?;
        let asked = length + header_bytes;
        let buffer = payload.buffer();
        let result = py.detach(|| sockets::receive_both(descriptor, buffer, header));
        if let Ok(count) = result {
            let in_payload = count.min(length);
            if in_payload > 0 {
                let slice = Slice::of_storage(Arc::new(payload.finish(py, in_payload)?));
                let outcome = self.inner.on_slice(stream, &slice, &mut self.found);
                outcome.map_err(either)?;
            }
            let rest = Slice::copy_of(&header[..count - in_payload]);
            let outcome = self.inner.on_slice(stream, &rest, &mut self.found);
            outcome.map_err(either)?;
            self.note_ready();
        }
        Ok((asked, result))
    }

    /// Take of what is in order about `TAKE_BYTES`: objects that were read to, and copies of what lies between them.
    fn take_ready<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let (mut taken, mut taken_bytes) = (Vec::with_capacity(4), 0);
        let mut between = Vec::new();
        while taken_bytes < TAKE_BYTES {
            let Some(slice) = self.ready.pop_front() else {
                break;
            };
            taken_bytes += slice.len();
            let storage = slice.whole_storage();
            match storage.and_then(|storage| storage.as_any().downcast_ref::<Bytes>()) {
                Some(whole) => {
                    if !between.is_empty() {
                        taken.push(bytes::copy(py, &between)?);
                        between.clear();
                    }
                    taken.push(whole.object(py));
                }
                None => between.push(slice),
            }
        }
        if !between.is_empty() {
            taken.push(bytes::copy(py, &between)?);
            between.clear();
        }
        self.ready_bytes -= taken_bytes;
        self.inner.on_consumed(taken_bytes);
        self.reclaim();
        Ok(taken)
    }

    /// Send what was polled; the error is an errno.
    fn send_polled(&self, py: Python<'_>, stream: usize, descriptor: i32) -> Result<usize, i32> {
        let mut pieces = Vec::with_capacity(4);
        self.inner.rest(stream, |piece| {
            if pieces.len() < sockets::MAX_PIECES {
                pieces.push(IoSlice::new(piece));
            }
        });
        let large = pieces.iter().map(|piece| piece.len()).sum::<usize>() >= DETACHED_BYTES;
        if large {
            py.detach(|| sockets::send(descriptor, &pieces))
        } else {
            sockets::send(descriptor, &pieces)
        }
    }

    /// Whether `size` bytes more in the socket are not too many unsent ones.
    ///
    /// TCP_NOTSENT_LOWAT alone is not enough: the kernel looks at it for each buffer it begins, and those hold tens of
    /// kilobytes: a tenth of a second on a slow path.
    fn has_room(&mut self, now_ns: u64, stream: usize, size: usize) -> PyResult<bool> {
        let socket = &mut self.sockets[stream];
        if let (Some(limit), false) = (socket.unsent_limit, socket.has_room(size)) {
            let unsent = sockets::unsent_bytes(socket.descriptor);
            socket.unsent_room = limit.saturating_sub(unsent);
            self.inner
                .on_unsent(now_ns, stream, unsent)
                .map_err(local)?;
        }
        Ok(self.sockets[stream].has_room(size))
    }

    /// Ask TCP about streams without a rate, where that is due; return the streams whose bound of unsent bytes changed.
    fn measure_streams(&mut self, now_ns: u64) -> PyResult<Vec<(usize, Option<usize>)>> {
        let mut changed = Vec::new();
        for (stream, socket) in self.sockets.iter_mut().enumerate() {
            if !socket.measure_ns.is_some_and(|due_ns| now_ns >= due_ns) {
                continue;
            }
            socket.measure_ns = Some(now_ns + MEASURE_NS);
            let Some(path) = sockets::path(socket.descriptor) else {
                continue;
            };
            let known = self
                .inner
                .on_measured(stream, path.rate_bps, path.delay_ns)
                .and_then(|()| self.inner.on_unsent(now_ns, stream, path.unsent_bytes));
            known.map_err(local)?;
            if socket.note_rate(path.rate_bps) {
                changed.push((stream, socket.unsent_limit));
            }
        }
        Ok(changed)
    }

    fn note_ready(&mut self) {
        for slice in self.found.drain(..) {
            self.ready_bytes += slice.len();
            self.ready.push_back(slice);
        }
    }

    fn reclaim(&mut self) {
        let mut index = 0;
        while index < self.lent.len() {
            if Arc::strong_count(&self.lent[index]) == 1 {
                give_back(self.lent.swap_remove(index));
            } else {
                index += 1;
            }
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
        let mut inner = mstcp_core::Connection::new(config, scheduler).map_err(local)?;
        inner.set_weights(&weights).map_err(local)?;
        inner.share_budget(Arc::clone(budget()));
        Ok(Self {
            inner,
            ready: VecDeque::new(),
            ready_bytes: 0,
            lent: Vec::new(),
            found: Vec::new(),
            sockets: Vec::new(),
        })
    }

    #[pyo3(signature = (data, /))]
    fn write(&mut self, data: &Bound<'_, PyBytes>) -> PyResult<()> {
        let bytes = data.as_bytes();
        if bytes.len() < SHARED_WRITE_BYTES {
            return self.inner.write(bytes).map_err(local);
        }
        let shared = Bytes::new(data);
        self.inner.write_shared(Box::new(shared)).map_err(local)
    }

    fn end(&mut self) {
        self.inner.end();
    }

    fn close_streams(&mut self) {
        self.inner.close_streams();
    }

    #[pyo3(signature = (code, reason, /))]
    fn close(&mut self, code: u16, reason: &str) {
        self.inner.close(code, reason);
    }

    #[pyo3(signature = (now_ns, /))]
    fn poll(&mut self, now_ns: u64) -> Option<(usize, usize)> {
        self.inner.poll_frame(now_ns)
    }

    #[pyo3(signature = (stream, /))]
    fn offered<'py>(&self, py: Python<'py>, stream: usize) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        self.inner
            .rest(stream, |piece| bytes.extend_from_slice(piece));
        PyBytes::new(py, &bytes)
    }

    #[pyo3(signature = (stream, descriptor, unsent_limit, has_rate, /))]
    fn attach(
        &mut self,
        stream: usize,
        descriptor: i32,
        unsent_limit: Option<usize>,
        has_rate: bool,
    ) {
        if stream >= self.sockets.len() {
            self.sockets.resize(stream + 1, Socket::NONE);
        }
        self.sockets[stream] = Socket {
            descriptor,
            unsent_limit,
            unsent_room: 0,
            measure_ns: (!has_rate).then_some(0),
        };
    }

    #[pyo3(signature = (now_ns, /))]
    fn measure(&mut self, now_ns: u64) -> PyResult<Vec<(usize, Option<usize>)>> {
        self.measure_streams(now_ns)
    }

    #[pyo3(signature = (now_ns, /))]
    fn transmit(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Outcome> {
        let (mut sent, mut ended, mut failed) = (0, 0, None);
        self.measure_streams(now_ns)?;
        while let Some((stream, size)) = self.inner.poll_frame(now_ns) {
            if stream >= self.sockets.len() {
                self.sockets.resize(stream + 1, Socket::NONE);
            }
            let mut count = 0;
            if self.has_room(now_ns, stream, size)? {
                match self.send_polled(py, stream, self.sockets[stream].descriptor) {
                    Ok(taken) => count = taken,
                    Err(libc::EAGAIN | libc::EINTR) => {}
                    Err(errno) => {
                        failed = Some((stream, errno));
                        break;
                    }
                }
            }
            let room = &mut self.sockets[stream].unsent_room;
            *room = room.saturating_sub(count);
            sent += count;
            if self.inner.on_sent(stream, count).map_err(local)? {
                ended |= 1 << stream;
            }
        }
        Ok((
            sent,
            self.inner.queued_bytes(),
            self.inner.blocked().bits(),
            ended,
            failed,
            self.inner.timeout_ns(),
        ))
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
        let descriptor = self
            .sockets
            .get(stream)
            .map_or(-1, |found| found.descriptor);
        let count = match self.read(py, stream, descriptor)? {
            Ok(count) => count,
            Err(errno) => return Ok((-(errno as isize), Vec::new(), false, None)),
        };
        let data = if deliver && self.ready_bytes > 0 {
            self.take_ready(py)?
        } else {
            Vec::new()
        };
        let special = count == 0 || self.ended() || self.inner.closed_by_peer().is_some();
        let outcome = if special {
            None
        } else {
            Some(self.transmit(py, now_ns)?)
        };
        Ok((count as isize, data, special, outcome))
    }

    #[pyo3(signature = (stream, descriptor, /))]
    fn send(&self, py: Python<'_>, stream: usize, descriptor: i32) -> isize {
        self.send_polled(py, stream, descriptor)
            .map_or_else(|errno| -(errno as isize), |count| count as isize)
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
    fn receive(&mut self, stream: usize, data: &[u8]) -> PyResult<()> {
        let chunk = Arc::new(data.to_vec());
        self.inner
            .on_chunk(stream, &chunk, data.len(), &mut self.found)
            .map_err(either)?;
        self.note_ready();
        Ok(())
    }

    #[pyo3(signature = (stream, descriptor, /))]
    fn receive_from(&mut self, py: Python<'_>, stream: usize, descriptor: i32) -> PyResult<isize> {
        let result = self.read(py, stream, descriptor)?;
        Ok(result.map_or_else(|errno| -(errno as isize), |count| count as isize))
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.take_ready(py)
    }

    #[getter]
    fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&mut self, stream: usize) -> PyResult<bool> {
        if let Some(socket) = self.sockets.get_mut(stream) {
            *socket = Socket::NONE;
        }
        self.inner.on_stream_end(stream).map_err(local)
    }

    #[pyo3(signature = (stream, /))]
    fn remove_stream(&mut self, stream: usize) -> PyResult<()> {
        self.inner.remove_stream(stream).map_err(local)
    }

    #[pyo3(signature = (token, /))]
    fn ping(&mut self, token: u64) {
        self.inner.ping(token);
    }

    #[pyo3(signature = (stream_id, weight, /))]
    fn add_stream(&mut self, stream_id: u32, weight: f64) -> PyResult<usize> {
        self.inner.add_stream(stream_id, weight).map_err(local)
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

    fn timeout_ns(&self) -> Option<u64> {
        self.inner.timeout_ns()
    }

    #[getter]
    fn closed_by_peer(&self) -> Option<(u16, String)> {
        self.inner
            .closed_by_peer()
            .map(|(code, reason)| (code, reason.to_owned()))
    }

    #[getter]
    fn alive(&self) -> u64 {
        self.inner.alive().bits()
    }

    #[getter]
    fn stalled(&self) -> u64 {
        self.inner.stalled().bits()
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
        self.inner.is_ended() && self.ready_bytes == 0
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics().into()
    }
}

#[pyclass(module = "mstcp._core", frozen, get_all)]
struct Statistics {
    streams: Vec<(u64, u64, u64, u64, u64, u64, u64)>,
    out_of_order_frames: u64,
    reorder_bytes: usize,
    reorder_max_bytes: usize,
    queued_bytes: usize,
    unacknowledged_bytes: usize,
    duplicate_bytes: u64,
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
                stream.resent_bytes,
                stream.stalls,
            )
        });
        Self {
            streams: streams.collect(),
            out_of_order_frames: from.out_of_order_frames,
            reorder_bytes: from.reorder_bytes,
            reorder_max_bytes: from.reorder_max_bytes,
            queued_bytes: from.queued_bytes,
            unacknowledged_bytes: from.unacknowledged_bytes,
            duplicate_bytes: from.duplicate_bytes,
        }
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(limit_receive_memory, module)?)?;
    module.add_function(wrap_pyfunction!(receive_memory, module)?)?;
    module.add_class::<Connection>()?;
    module.add_class::<Statistics>()
}
