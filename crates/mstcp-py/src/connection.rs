//! `mstcp._core.Connection`: the protocol core, and the I/O of bytes that Python need not see.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::{Arc, Mutex, PoisonError};

use mstcp_core::{scheduler, Config, Slice};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::{either, local, sockets};

/// What one read takes at most.
const CHUNK_BYTES: usize = 1 << 18;
/// Chunks that are kept for later reads, over all connections.
const SPARE_CHUNKS: usize = 32;
/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From this size on a copy lets other threads run meanwhile.
const DETACHED_BYTES: usize = 1 << 16;

static SPARE: Mutex<Vec<Arc<Vec<u8>>>> = Mutex::new(Vec::new());

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

/// A `bytes` object: it never changes, and lives as long as this reference.
struct SharedWrite {
    _owner: Py<PyBytes>,
    start: *const u8,
    length: usize,
}

// SAFETY: the bytes are immutable, and the reference to their owner may be dropped on any thread.
unsafe impl Send for SharedWrite {}
// SAFETY: as above.
unsafe impl Sync for SharedWrite {}

impl AsRef<[u8]> for SharedWrite {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` and `length` are those of the owner's bytes.
        unsafe { std::slice::from_raw_parts(self.start, self.length) }
    }
}

/// The memory of a new object that nobody else has seen.
struct Exclusive(*mut u8);

// SAFETY: whoever holds it is alone with the memory.
unsafe impl Send for Exclusive {}

impl Exclusive {
    /// Copy the slices, `length` bytes in all, one after the other.
    fn fill(self, slices: &VecDeque<Slice>, length: usize) {
        let mut at = 0;
        for slice in slices {
            assert!(
                slice.len() <= length - at,
                "the sum of the slices is `length`"
            );
            // SAFETY: within the memory, as checked; the slice is elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(slice.as_ptr(), self.0.add(at), slice.len()) };
            at += slice.len();
        }
        assert!(at == length, "the sum of the slices is `length`");
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
}

impl Socket {
    const NONE: Self = Self {
        descriptor: -1,
        unsent_limit: None,
        unsent_room: 0,
    };
}

/// Bytes sent and queued, streams blocked and ended (bits), a broken stream and its errno, when to call again.
type Outcome = (usize, usize, u64, u64, Option<(usize, i32)>, Option<u64>);

/// What was read (an errno if below 0), the bytes taken, whether something ended, and what was sent.
type Exchange<'py> = (isize, Option<Bound<'py, PyBytes>>, bool, Option<Outcome>);

impl Connection {
    /// Read a socket once; 0 is the end of the stream, the error an errno.
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
        let Some(limit) = socket.unsent_limit else {
            return Ok(true);
        };
        if socket.unsent_room < size {
            let unsent = sockets::unsent_bytes(socket.descriptor);
            socket.unsent_room = limit.saturating_sub(unsent);
            self.inner
                .on_unsent(now_ns, stream, unsent)
                .map_err(local)?;
        }
        Ok(self.sockets[stream].unsent_room >= size)
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
        let shared = SharedWrite {
            start: bytes.as_ptr(),
            length: bytes.len(),
            _owner: data.clone().unbind(),
        };
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

    #[pyo3(signature = (stream, descriptor, unsent_limit, /))]
    fn attach(&mut self, stream: usize, descriptor: i32, unsent_limit: Option<usize>) {
        if stream >= self.sockets.len() {
            self.sockets.resize(stream + 1, Socket::NONE);
        }
        self.sockets[stream] = Socket {
            descriptor,
            unsent_limit,
            unsent_room: 0,
        };
    }

    #[pyo3(signature = (now_ns, /))]
    fn transmit(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Outcome> {
        let (mut sent, mut ended, mut failed) = (0, 0, None);
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

    /// Read once, take what is in order if `deliver`, and send what then is to be sent.
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
        let count = match self.read_chunk(py, stream, descriptor)? {
            Ok(count) => count,
            Err(errno) => return Ok((-(errno as isize), None, false, None)),
        };
        let data = if deliver && self.ready_bytes > 0 {
            Some(self.take(py)?)
        } else {
            None
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
        let result = self.read_chunk(py, stream, descriptor)?;
        Ok(result.map_or_else(|errno| -(errno as isize), |count| count as isize))
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let length = std::mem::take(&mut self.ready_bytes);
        // PyBytes::new_with would fill the object with zeros first: a sixth of a fast receiver's time.
        // SAFETY: Python makes a new object of `length` bytes, or NULL with its exception set.
        let taken = unsafe {
            let object = ffi::PyBytes_FromStringAndSize(std::ptr::null(), length as isize);
            Bound::from_owned_ptr_or_err(py, object)?.cast_into_unchecked::<PyBytes>()
        };
        // SAFETY: nobody else knows the new object, whose bytes lie there.
        let start = Exclusive(unsafe { ffi::PyBytes_AsString(taken.as_ptr()) }.cast::<u8>());
        let ready = &self.ready;
        let copy = move || start.fill(ready, length);
        if length >= DETACHED_BYTES {
            py.detach(copy);
        } else {
            copy();
        }
        self.ready.clear();
        self.inner.on_consumed(length);
        self.reclaim();
        Ok(taken)
    }

    #[getter]
    fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&mut self, stream: usize) -> PyResult<bool> {
        self.inner.on_stream_end(stream).map_err(local)
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
    streams: Vec<(u64, u64, u64, u64, u64, u64)>,
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
    module.add_class::<Connection>()?;
    module.add_class::<Statistics>()
}
