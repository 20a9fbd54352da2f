//! Bytes on their way from the sockets to the application: read to where they stay, kept until they are taken.

use std::collections::VecDeque;
use std::sync::Arc;

use mstcp_core::frame::{Expected, LONG_HEADER_BYTES};
use mstcp_core::{Connection, Slice};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::{self, Bytes, NewBytes};
use crate::chunks::{self, Lent, CHUNK_BYTES};
use crate::{either, sockets};

/// A wake-up reads no more once it has read so much.
const READ_BYTES: usize = 1 << 19;
/// What the application is given at once, about.
const TAKE_BYTES: usize = 1 << 19;

/// What was read, and is in order.
#[derive(Default)]
pub struct Inbox {
    /// Not taken by the application yet.
    ready: VecDeque<Slice>,
    ready_bytes: usize,
    /// Chunks that slices still refer to.
    lent: Lent,
    /// What the core has just put into order; empty between calls.
    found: Vec<Slice>,
}

impl Inbox {
    /// Bytes that wait to be taken.
    pub fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// Take bytes that were read elsewhere.
    pub fn receive(&mut self, core: &mut Connection, stream: usize, data: &[u8]) -> PyResult<()> {
        let chunk = Arc::new(data.to_vec());
        core.on_chunk(stream, &chunk, data.len(), &mut self.found)
            .map_err(either)?;
        self.note_ready();
        Ok(())
    }

    /// Read a socket; 0 is the end of the stream, the error an errno.
    ///
    /// The payload of large frames is read to where it stays, so that it is never copied after.
    pub fn read(
        &mut self,
        core: &mut Connection,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
    ) -> PyResult<Result<usize, i32>> {
        let mut all = 0;
        while all < READ_BYTES {
            let (asked, result) = match core.expected(stream) {
                Some(expected) => self.read_payload(core, py, stream, descriptor, expected)?,
                None => (usize::MAX, self.read_chunk(core, py, stream, descriptor)?),
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
        core: &mut Connection,
        py: Python<'_>,
        stream: usize,
        descriptor: i32,
    ) -> PyResult<Result<usize, i32>> {
        let mut chunk = chunks::take();
        let result = match Arc::get_mut(&mut chunk) {
            Some(buffer) => py.detach(|| sockets::receive(descriptor, buffer)),
            None => Err(libc::EAGAIN),
        };
        let Ok(count) = result else {
            chunks::give_back(chunk);
            return Ok(result);
        };
        let outcome = core.on_chunk(stream, &chunk, count, &mut self.found);
        self.lent.lend(chunk);
        outcome.map_err(either)?;
        self.note_ready();
        Ok(Ok(count))
    }

    /// Read the rest of a frame's payload into an object of its own, and the header after it; also return how much was
    /// asked for.
    fn read_payload(
        &mut self,
        core: &mut Connection,
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
                let outcome = core.on_slice(stream, &slice, &mut self.found);
                outcome.map_err(either)?;
            }
            let rest = Slice::copy_of(&header[..count - in_payload]);
            let outcome = core.on_slice(stream, &rest, &mut self.found);
            outcome.map_err(either)?;
            self.note_ready();
        }
        Ok((asked, result))
    }

    /// Take of what is in order about `TAKE_BYTES`: objects that were read to, and copies of what lies between them.
    pub fn take<'py>(
        &mut self,
        core: &mut Connection,
        py: Python<'py>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
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
        }
        self.ready_bytes -= taken_bytes;
        core.on_consumed(taken_bytes);
        self.lent.reclaim();
        Ok(taken)
    }

    fn note_ready(&mut self) {
        for slice in self.found.drain(..) {
            self.ready_bytes += slice.len();
            self.ready.push_back(slice);
        }
    }
}
