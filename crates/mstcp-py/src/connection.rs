//! `mstcp._core.Connection`: the protocol core, and the I/O of bytes that Python need not see.

use std::io::IoSlice;
use std::sync::Arc;

use mstcp_core::{scheduler, state, Config, Event};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::Bytes;
use crate::counters::Counters;
use crate::inbox::Inbox;
use crate::receive_memory::budget;
use crate::stream_sockets::StreamSockets;
use crate::{local, sockets};

/// Writes of this size and more are referred to, smaller ones copied.
const SHARED_WRITE_BYTES: usize = 1 << 14;
/// From this size on a copy lets other threads run meanwhile.
const DETACHED_BYTES: usize = 1 << 16;

#[pyclass(module = "mstcp._core")]
struct Connection {
    inner: mstcp_core::Connection,
    inbox: Inbox,
    sockets: StreamSockets,
}

/// Bytes sent and queued, streams blocked and ended (bits), a broken stream and its errno, when to call again.
type Outcome = (usize, usize, u64, u64, Option<(usize, i32)>, Option<u64>);

/// What was read (an errno if below 0), the bytes taken, whether something ended, and what was sent.
type Exchange<'py> = (isize, Vec<Bound<'py, PyBytes>>, bool, Option<Outcome>);

impl Connection {
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
            inbox: Inbox::default(),
            sockets: StreamSockets::default(),
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
        self.sockets
            .attach(stream, descriptor, unsent_limit, has_rate);
    }

    #[pyo3(signature = (now_ns, /))]
    fn measure(&mut self, now_ns: u64) -> PyResult<Vec<(usize, Option<usize>)>> {
        self.sockets.measure(&mut self.inner, now_ns).map_err(local)
    }

    #[pyo3(signature = (now_ns, /))]
    fn transmit(&mut self, py: Python<'_>, now_ns: u64) -> PyResult<Outcome> {
        let (mut sent, mut ended, mut failed) = (0, 0, None);
        self.sockets
            .measure(&mut self.inner, now_ns)
            .map_err(local)?;
        while let Some((stream, size)) = self.inner.poll_frame(now_ns) {
            let mut count = 0;
            let room = self.sockets.has_room(&mut self.inner, now_ns, stream, size);
            if room.map_err(local)? {
                match self.send_polled(py, stream, self.sockets.descriptor(stream)) {
                    Ok(taken) => count = taken,
                    Err(libc::EAGAIN | libc::EINTR) => {}
                    Err(errno) => {
                        failed = Some((stream, errno));
                        break;
                    }
                }
            }
            self.sockets.on_sent(stream, count);
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
        let descriptor = self.sockets.descriptor(stream);
        let count = match self.inbox.read(&mut self.inner, py, stream, descriptor)? {
            Ok(count) => count,
            Err(errno) => return Ok((-(errno as isize), Vec::new(), false, None)),
        };
        let data = if deliver && self.inbox.ready_bytes() > 0 {
            self.inbox.take(&mut self.inner, py)?
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
        self.inbox.receive(&mut self.inner, stream, data)
    }

    #[pyo3(signature = (stream, descriptor, /))]
    fn receive_from(&mut self, py: Python<'_>, stream: usize, descriptor: i32) -> PyResult<isize> {
        let result = self.inbox.read(&mut self.inner, py, stream, descriptor)?;
        Ok(result.map_or_else(|errno| -(errno as isize), |count| count as isize))
    }

    fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.inbox.take(&mut self.inner, py)
    }

    #[getter]
    fn ready_bytes(&self) -> usize {
        self.inbox.ready_bytes()
    }

    #[pyo3(signature = (stream, /))]
    fn stream_end(&mut self, stream: usize) -> PyResult<bool> {
        self.sockets.detach(stream);
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
        self.inner.is_ended() && self.inbox.ready_bytes() == 0
    }

    fn counters(&self) -> Counters {
        self.inner.counters().into()
    }

    #[pyo3(signature = (stream, proof, /))]
    fn expect_confirm(&mut self, stream: usize, proof: [u8; 32]) -> PyResult<()> {
        self.inner.expect_confirm(stream, proof).map_err(local)
    }

    #[pyo3(signature = (length, /))]
    fn skip_early(&mut self, length: usize) {
        self.inner.skip_early(length);
    }

    #[pyo3(signature = (data, /))]
    fn early(&mut self, data: &[u8]) {
        // The caller has the bytes.
        self.inner.on_early(data, &mut Vec::new());
        self.inner.on_consumed(data.len());
    }

    fn shut(&mut self) {
        self.inner.shut();
    }

    fn events(&mut self) -> Vec<(&'static str, u64)> {
        let mut events = Vec::new();
        while let Some(event) = self.inner.poll_event() {
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
        self.inner.set_keepalive(idle_ns, probes);
    }

    #[pyo3(signature = (reconnect_ns, close_ns, /))]
    fn set_timeouts(&mut self, reconnect_ns: u64, close_ns: u64) {
        self.inner.set_reconnect_ns(reconnect_ns);
        self.inner.set_close_ns(close_ns);
    }

    #[pyo3(signature = (stream, priority, tell, /))]
    fn set_priority(&mut self, stream: usize, priority: u32, tell: bool) -> PyResult<()> {
        match tell {
            true => self.inner.set_priority(stream, priority),
            false => self.inner.note_priority(stream, priority),
        }
        .map_err(local)
    }
}

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Connection>()?;
    module.add_class::<Counters>()
}
