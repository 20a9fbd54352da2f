//! Bytes on their way from the sockets to the application: read to where they stay, kept until they are taken.

use rustix::io::Errno;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use mstcp_proto::frame::{Expected, LONG_HEADER_BYTES};
use mstcp_proto::{Error, Slice};

use crate::endpoint::Endpoint;
use crate::memory::{self, InUse, Memory, CHUNK_BYTES};
use crate::sys;

/// A wake-up reads no more once it has read so much.
const READ_BYTES: usize = 1 << 19;
/// What the application is given at once, about.
const TAKE_BYTES: usize = 1 << 19;
/// Memory that has room for less is not read to unless the frame ends there: bytes are read by fewer calls elsewhere.
const MIN_IN_PLACE: usize = 1 << 14;
/// A read of no more is copied, and its chunk free for the next: to make another costs more.
const MAX_COPIED: usize = 1 << 12;
/// A plain stream that brought less than this has no more, nearly always: to ask for it would be two system calls in vain.
const MIN_REST: usize = 1 << 16;
/// Slices below this size that wait for the application are joined: small ones must not hold a large chunk each.
const JOINED_BYTES: usize = 1 << 16;

/// Why a read failed, beside what the socket says.
#[derive(Debug)]
pub enum ReadError<E> {
    /// There was no memory.
    Memory(E),
    /// The peer broke the protocol, or there is no such stream.
    Protocol(Error),
}

impl<E> From<Error> for ReadError<E> {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}

impl<E: std::fmt::Debug> std::fmt::Display for ReadError<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory(error) => write!(f, "no memory to read to: {error:?}"),
            Self::Protocol(error) => write!(f, "{error}"),
        }
    }
}

impl<E: std::fmt::Debug> std::error::Error for ReadError<E> {}

/// How a read went: the bytes that came (0: the end of the stream), or an errno.
pub type ReadResult = Result<usize, Errno>;

/// Where a thread that waits wants bytes.
#[derive(Debug)]
pub struct ReadTarget<'a> {
    buffer: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> ReadTarget<'a> {
    /// Memory of which nothing is filled.
    pub fn new(buffer: &'a mut [MaybeUninit<u8>]) -> Self {
        Self { buffer, filled: 0 }
    }

    /// Memory that holds bytes already, none of which counts as filled.
    pub fn of_bytes(buffer: &'a mut [u8]) -> Self {
        // SAFETY: both are laid out alike, and nothing but bytes is ever written through a target.
        Self::new(unsafe {
            std::slice::from_raw_parts_mut(buffer.as_mut_ptr().cast(), buffer.len())
        })
    }

    /// How many bytes have come.
    pub fn filled(&self) -> usize {
        self.filled
    }

    /// How many more there is room for.
    pub fn room(&self) -> usize {
        self.buffer.len() - self.filled
    }

    fn rest(&mut self) -> &mut [MaybeUninit<u8>] {
        &mut self.buffer[self.filled..]
    }

    /// Append as many of these bytes as there is room for; return how many.
    fn append(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        // SAFETY: both are as long, and lie apart.
        unsafe {
            let place = self.rest().as_mut_ptr().cast();
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place, count);
        }
        self.filled += count;
        count
    }
}

/// What was read, and is in order.
#[derive(Default)]
pub(crate) struct Inbox {
    /// Not taken by the application yet.
    ready: VecDeque<Slice>,
    ready_bytes: usize,
    /// Chunks that slices still refer to.
    in_use: InUse,
    /// What the core has just put into order; empty between calls.
    in_order: Vec<Slice>,
    holds: bool,
    /// The last read left nothing in its socket.
    is_drained: bool,
    /// The errno of a plain connection that broke. Its socket tells it once, and then an end like any other.
    broken: Option<Errno>,
}

impl Endpoint {
    /// Bytes that wait to be taken.
    pub fn ready_bytes(&self) -> usize {
        self.inbox.ready_bytes
    }

    /// Take a stream's bytes that were read elsewhere, as TLS's.
    pub fn receive(&mut self, stream: usize, data: &[u8]) -> Result<(), Error> {
        let slice = Slice::copy_of(data);
        (self.core).on_slice(stream, &slice, &mut self.inbox.in_order)?;
        self.inbox.note_ready();
        Ok(())
    }

    /// Take what may have been the beginning of a hello on a stream of plain TCP that ends.
    pub(crate) fn release_opening(&mut self) {
        self.core.release_opening(&mut self.inbox.in_order);
        self.inbox.note_ready();
    }

    /// Take the bytes that came with a client's hello.
    pub(crate) fn receive_early(&mut self, early: &[u8]) {
        self.core.on_early(early, &mut self.inbox.in_order);
        self.inbox.note_ready();
    }

    /// Read a stream's socket; 0 bytes are the end of the stream. The payload of large frames is read to where it stays, so that
    /// it is never copied after.
    pub fn read<M: Memory>(
        &mut self,
        memory: &mut M,
        stream: usize,
    ) -> Result<ReadResult, ReadError<M::Error>> {
        self.read_up_to(READ_BYTES, memory, stream)
    }

    /// Whether the last read left nothing in its socket.
    pub(crate) fn is_drained(&self) -> bool {
        self.inbox.is_drained
    }

    /// Read a stream's socket by one system call.
    pub(crate) fn read_once<M: Memory>(
        &mut self,
        memory: &mut M,
        stream: usize,
    ) -> Result<ReadResult, ReadError<M::Error>> {
        self.read_up_to(1, memory, stream)
    }

    /// Read until this many bytes have come or the socket has no more.
    fn read_up_to<M: Memory>(
        &mut self,
        enough_bytes: usize,
        memory: &mut M,
        stream: usize,
    ) -> Result<ReadResult, ReadError<M::Error>> {
        let descriptor = self.sockets.descriptor(stream);
        self.inbox.is_drained = false;
        if let Some(layer) = self.layer(stream) {
            let mut bytes = Vec::new();
            let count = layer.read(descriptor, &mut bytes);
            self.receive(stream, &bytes)?;
            return Ok(count);
        }
        if let Some(errno) = self.inbox.broken {
            return Ok(Err(errno));
        }
        let mut all = 0;
        while all < enough_bytes {
            let (asked, result) = match self.core.expected(stream) {
                None => self.read_chunk(memory, stream, descriptor)?,
                Some(rest) => match sys::waiting_bytes(descriptor) {
                    0 if all > 0 => (0, Err(Errno::AGAIN)),
                    waiting => self.read_payload(memory, stream, descriptor, rest, waiting)?,
                },
            };
            match result {
                Ok(count) => {
                    all += count;
                    self.inbox.is_drained = count < asked;
                    let is_all = self.core.is_plain() && count < MIN_REST;
                    if count < asked || is_all {
                        break;
                    }
                }
                Err(errno) => {
                    self.inbox.is_drained = true;
                    self.note_broken(errno);
                    if all > 0 {
                        break; // what came is taken first
                    }
                    return Ok(Err(errno));
                }
            }
        }
        self.await_rest(stream, all);
        Ok(Ok(all))
    }

    /// Have the kernel wait for the rest of a frame before it wakes who reads.
    fn await_rest(&mut self, stream: usize, count: usize) {
        if self.core.is_plain() {
            return; // nobody knows how much is to come
        }
        let expected = self.core.expected(stream);
        let rest = expected.map_or(0, |expected| expected.payload_bytes);
        self.sockets.on_read(stream, count, rest);
    }

    /// Note an error of a socket.
    pub(crate) fn note_broken(&mut self, errno: Errno) {
        if self.core.is_plain() && !matches!(errno, Errno::AGAIN | Errno::INTR) {
            self.inbox.broken.get_or_insert(errno);
        }
    }

    /// How many bytes [`Endpoint::read_in_place`] would read to where there is room for `room`: none where that would take more
    /// system calls than it spares copies.
    pub fn next_in_place(&self, stream: usize, room: usize) -> usize {
        let next = self.core.next_in_place(stream);
        let is_protected = self.layer_of(stream).is_some();
        let is_open = self.core.expected(stream).is_some() && self.inbox.broken.is_none();
        let is_worth = is_open && (room >= MIN_IN_PLACE || room >= next);
        match is_worth && !is_protected && self.inbox.ready.is_empty() {
            true => next.min(room),
            false => 0,
        }
    }

    /// Read the bytes that the application wants next to where it wants them, and the header after them; also return how much
    /// was asked for. See [`Endpoint::next_in_place`].
    pub fn read_in_place(
        &mut self,
        stream: usize,
        target: &mut ReadTarget<'_>,
    ) -> Result<(usize, ReadResult), Error> {
        let length = self.next_in_place(stream, target.room());
        let mut header = [0; LONG_HEADER_BYTES];
        let header_bytes = match self.core.expected(stream) {
            Some(expected) if expected.payload_bytes == length => expected.header_bytes,
            _ => 0,
        };
        let header = &mut header[..header_bytes];
        let descriptor = self.sockets.descriptor(stream);
        let result = sys::receive_both(descriptor, &mut target.rest()[..length], header);
        match result {
            Err(errno) => self.note_broken(errno),
            Ok(count) => {
                let in_payload = count.min(length);
                target.filled += in_payload;
                (self.core).on_in_place(stream, in_payload, &mut self.inbox.in_order)?;
                self.receive(stream, &header[..count - in_payload])?;
                self.await_rest(stream, count);
            }
        }
        Ok((length + header_bytes, result))
    }

    /// Read whatever comes; also return how much was asked for.
    fn read_chunk<M: Memory>(
        &mut self,
        memory: &M,
        stream: usize,
        descriptor: i32,
    ) -> Result<(usize, ReadResult), Error> {
        let mut chunk = memory::take_chunk();
        let result = match Arc::get_mut(&mut chunk) {
            Some(buffer) => memory.call(|| sys::receive(descriptor, buffer)),
            None => Err(Errno::AGAIN),
        };
        match result {
            Ok(count) => {
                let came = match count <= MAX_COPIED {
                    true => Slice::copy_of(&chunk[..count]),
                    false => Slice::new(Arc::clone(&chunk), 0..count),
                };
                let outcome = (self.core).on_slice(stream, &came, &mut self.inbox.in_order);
                drop(came);
                self.inbox.in_use.note(chunk);
                outcome?;
                self.inbox.note_ready();
            }
            Err(_) => memory::give_chunk_back(chunk),
        }
        Ok((CHUNK_BYTES, result))
    }

    /// Read the rest of a frame's payload into a block of its own, and the header after it; also return how much was asked for.
    fn read_payload<M: Memory>(
        &mut self,
        memory: &mut M,
        stream: usize,
        descriptor: i32,
        expected: Expected,
        waiting_bytes: usize,
    ) -> Result<(usize, ReadResult), ReadError<M::Error>> {
        // A block of just the size: to cut it would have the system take memory back and give it again.
        let length = expected.payload_bytes.min(CHUNK_BYTES);
        let length = length.min(waiting_bytes.max(1));
        let header_bytes = match length == expected.payload_bytes {
            true => expected.header_bytes,
            false => 0,
        };
        let mut header = [0; LONG_HEADER_BYTES];
        let mut payload = memory.block(length).map_err(ReadError::Memory)?;
        let buffer = M::buffer(&mut payload);
        let rest = &mut header[..header_bytes];
        let result = memory.call(|| sys::receive_both(descriptor, &mut buffer[..length], rest));
        if let Ok(count) = result {
            let in_payload = count.min(length);
            if in_payload > 0 {
                let block = memory
                    .finish(payload, in_payload)
                    .map_err(ReadError::Memory)?;
                let block = Slice::of_storage(block);
                (self.core).on_slice(stream, &block, &mut self.inbox.in_order)?;
            }
            self.receive(stream, &header[..count - in_payload])?;
        }
        Ok((length + header_bytes, result))
    }

    /// Take about half a megabyte of what is in order; the peer may then send as much more.
    pub fn take(&mut self) -> Vec<Slice> {
        let (mut taken, mut taken_bytes) = (Vec::with_capacity(4), 0);
        while taken_bytes < TAKE_BYTES {
            let Some(slice) = self.take_one() else {
                break;
            };
            taken_bytes += slice.len();
            taken.push(slice);
        }
        taken
    }

    /// Take the first piece of what is in order.
    pub(crate) fn take_one(&mut self) -> Option<Slice> {
        let slice = self.inbox.ready.pop_front()?;
        self.inbox.ready_bytes -= slice.len();
        self.core.on_consumed(slice.len());
        Some(slice)
    }

    /// Copy what is in order to where the application wants it. The peer may then send as much more.
    pub fn take_into(&mut self, target: &mut ReadTarget<'_>) {
        let filled = target.filled;
        let inbox = &mut self.inbox;
        while let Some(slice) = inbox.ready.front_mut() {
            let count = target.append(slice);
            if count < slice.len() {
                *slice = slice.part(count..slice.len());
                break;
            }
            inbox.ready.pop_front();
        }
        inbox.ready_bytes -= target.filled - filled;
        self.core.on_consumed(target.filled - filled);
        self.reclaim();
    }

    /// Copy what is in order to where the application wants to see it, and keep it.
    pub(crate) fn peek_into(&self, target: &mut ReadTarget<'_>) {
        for slice in &self.inbox.ready {
            target.append(slice);
        }
    }

    /// Give back the memory of what was taken and dropped since.
    pub fn reclaim(&mut self) {
        self.inbox.in_use.reclaim();
    }

    /// Whether the application takes nothing now: what waits for it is then joined.
    pub(crate) fn hold(&mut self, holds: bool) {
        self.inbox.holds = holds;
    }
}

impl Inbox {
    fn note_ready(&mut self) {
        for slice in self.in_order.drain(..) {
            self.ready_bytes += slice.len();
            match self.ready.back_mut() {
                _ if !self.holds || slice.len() >= JOINED_BYTES => self.ready.push_back(slice),
                Some(last) if last.len() + slice.len() <= JOINED_BYTES => last.append(&slice),
                _ => self.ready.push_back(slice.kept(JOINED_BYTES)),
            }
        }
        if self.holds {
            self.in_use.reclaim();
        }
    }
}
