//! Bytes on their way from the sockets to the application: read to where they stay, kept until they are taken.

use rustix::io::Errno;
use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;

use mstcp_proto::frame::{Expected, LONG_HEADER_BYTES};
use mstcp_proto::{Connection, Error, Slice};

use crate::memory::{self, InUse, Memory, CHUNK_BYTES};
use crate::sys;

/// A wake-up reads no more once it has read so much.
const READ_BYTES: usize = 1 << 19;
/// What the application is given at once, about.
const TAKE_BYTES: usize = 1 << 19;
/// Memory that has room for less is not read to unless the frame ends there: bytes are read by fewer calls elsewhere.
const LEAST_IN_PLACE: usize = 1 << 14;
/// A plain stream that brought less than this has no more, nearly always: to ask for it would be two system calls in vain.
const LEAST_REST: usize = 1 << 16;
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
pub type Count = Result<usize, Errno>;

/// Where a thread that waits wants bytes.
#[derive(Debug)]
pub struct Target<'a> {
    buffer: &'a mut [MaybeUninit<u8>],
    filled: usize,
}

impl<'a> Target<'a> {
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
pub struct Inbox {
    /// Not taken by the application yet.
    ready: VecDeque<Slice>,
    ready_bytes: usize,
    /// Chunks that slices still refer to.
    in_use: InUse,
    /// What the core has just put into order; empty between calls.
    in_order: Vec<Slice>,
    holds: bool,
    /// The errno of a plain connection that broke. Its socket tells it once, and then an end like any other.
    broken: Option<Errno>,
}

impl Inbox {
    /// Bytes that wait to be taken.
    pub fn ready_bytes(&self) -> usize {
        self.ready_bytes
    }

    /// Take bytes that were read elsewhere.
    pub fn receive(
        &mut self,
        core: &mut Connection,
        stream: usize,
        data: &[u8],
    ) -> Result<(), Error> {
        core.on_slice(stream, &Slice::copy_of(data), &mut self.in_order)?;
        self.note_ready();
        Ok(())
    }

    /// See [`Connection::release_opening`].
    pub fn release_opening(&mut self, core: &mut Connection) {
        core.release_opening(&mut self.in_order);
        self.note_ready();
    }

    /// Take the bytes that came with a client's hello.
    pub fn receive_early(&mut self, core: &mut Connection, early: &[u8]) {
        core.on_early(early, &mut self.in_order);
        self.note_ready();
    }

    /// Read a socket. The payload of large frames is read to where it stays, so that it is never copied after.
    pub fn read<M: Memory>(
        &mut self,
        core: &mut Connection,
        memory: &mut M,
        stream: usize,
        descriptor: i32,
    ) -> Result<Count, ReadError<M::Error>> {
        self.read_up_to(READ_BYTES, core, memory, stream, descriptor)
    }

    /// As [`Inbox::read`], until this many bytes have come or the socket has no more.
    fn read_up_to<M: Memory>(
        &mut self,
        enough_bytes: usize,
        core: &mut Connection,
        memory: &mut M,
        stream: usize,
        descriptor: i32,
    ) -> Result<Count, ReadError<M::Error>> {
        if let Some(errno) = self.broken {
            return Ok(Err(errno));
        }
        let mut all = 0;
        while all < enough_bytes {
            let (asked, result) = match core.expected(stream) {
                None => self.read_chunk(core, memory, stream, descriptor)?,
                Some(rest) => self.read_payload(core, memory, stream, descriptor, rest)?,
            };
            match result {
                Ok(count) => {
                    all += count;
                    let is_all = core.is_plain() && count < LEAST_REST;
                    if count < asked || is_all {
                        break;
                    }
                }
                Err(errno) => {
                    self.note_broken(core, errno);
                    if all > 0 {
                        break; // what came is taken first
                    }
                    return Ok(Err(errno));
                }
            }
        }
        Ok(Ok(all))
    }

    /// Note an error of a socket.
    pub fn note_broken(&mut self, core: &Connection, errno: Errno) {
        if core.is_plain() && !matches!(errno, Errno::AGAIN | Errno::INTR) {
            self.broken.get_or_insert(errno);
        }
    }

    /// Read a socket by one system call.
    pub fn read_once<M: Memory>(
        &mut self,
        core: &mut Connection,
        memory: &mut M,
        stream: usize,
        descriptor: i32,
    ) -> Result<Count, ReadError<M::Error>> {
        self.read_up_to(1, core, memory, stream, descriptor)
    }

    /// How many bytes [`Inbox::read_in_place`] would read to where there is room for `room`: none where that would take more
    /// system calls than it spares copies.
    pub fn next_in_place(&self, core: &Connection, stream: usize, room: usize) -> usize {
        let next = core.next_in_place(stream);
        let is_open = core.expected(stream).is_some() && self.broken.is_none();
        let is_worth = is_open && (room >= LEAST_IN_PLACE || room >= next);
        match is_worth && self.ready.is_empty() {
            true => next.min(room),
            false => 0,
        }
    }

    /// Read the bytes that the application wants next to where it wants them, and the header after them; also return how much
    /// was asked for. See [`Inbox::next_in_place`].
    pub fn read_in_place(
        &mut self,
        core: &mut Connection,
        stream: usize,
        descriptor: i32,
        target: &mut Target<'_>,
    ) -> Result<(usize, Count), Error> {
        let length = self.next_in_place(core, stream, target.room());
        let mut header = [0; LONG_HEADER_BYTES];
        let header_bytes = match core.expected(stream) {
            Some(expected) if expected.payload_bytes == length => expected.header_bytes,
            _ => 0,
        };
        let header = &mut header[..header_bytes];
        let result = sys::receive_both(descriptor, &mut target.rest()[..length], header);
        if let Err(errno) = result {
            self.note_broken(core, errno);
        }
        if let Ok(count) = result {
            let in_payload = count.min(length);
            target.filled += in_payload;
            core.on_in_place(stream, in_payload, &mut self.in_order)?;
            let rest = Slice::copy_of(&header[..count - in_payload]);
            core.on_slice(stream, &rest, &mut self.in_order)?;
            self.note_ready();
        }
        Ok((length + header_bytes, result))
    }

    /// Read whatever comes; also return how much was asked for.
    fn read_chunk<M: Memory>(
        &mut self,
        core: &mut Connection,
        memory: &M,
        stream: usize,
        descriptor: i32,
    ) -> Result<(usize, Count), Error> {
        let mut chunk = memory::take_chunk();
        let result = match Arc::get_mut(&mut chunk) {
            Some(buffer) => memory.call(|| sys::receive(descriptor, buffer)),
            None => Err(Errno::AGAIN),
        };
        match result {
            Ok(count) => {
                let came = Slice::new(Arc::clone(&chunk), 0..count);
                let outcome = core.on_slice(stream, &came, &mut self.in_order);
                drop(came);
                self.in_use.note(chunk);
                outcome?;
                self.note_ready();
            }
            Err(_) => memory::give_chunk_back(chunk),
        }
        Ok((CHUNK_BYTES, result))
    }

    /// Read the rest of a frame's payload into a block of its own, and the header after it; also return how much was asked for.
    fn read_payload<M: Memory>(
        &mut self,
        core: &mut Connection,
        memory: &mut M,
        stream: usize,
        descriptor: i32,
        expected: Expected,
    ) -> Result<(usize, Count), ReadError<M::Error>> {
        // A block of just the size: to cut it would have the system take memory back and give it again.
        let waiting = sys::waiting_bytes(descriptor).max(1);
        let length = expected.payload_bytes.min(CHUNK_BYTES).min(waiting);
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
                core.on_slice(stream, &Slice::of_storage(block), &mut self.in_order)?;
            }
            let header = Slice::copy_of(&header[..count - in_payload]);
            core.on_slice(stream, &header, &mut self.in_order)?;
            self.note_ready();
        }
        Ok((length + header_bytes, result))
    }

    /// Take of what is in order about half a megabyte; the peer may then send as much more.
    pub fn take(&mut self, core: &mut Connection) -> Vec<Slice> {
        let (mut taken, mut taken_bytes) = (Vec::with_capacity(4), 0);
        while taken_bytes < TAKE_BYTES {
            let Some(slice) = self.ready.pop_front() else {
                break;
            };
            taken_bytes += slice.len();
            taken.push(slice);
        }
        self.ready_bytes -= taken_bytes;
        core.on_consumed(taken_bytes);
        taken
    }

    /// Copy what is in order to where the application wants it. The peer may then send as much more.
    pub fn take_into(&mut self, core: &mut Connection, target: &mut Target<'_>) {
        let filled = target.filled;
        while let Some(slice) = self.ready.front_mut() {
            let count = target.append(slice);
            if count < slice.len() {
                *slice = slice.part(count..slice.len());
                break;
            }
            self.ready.pop_front();
        }
        self.ready_bytes -= target.filled - filled;
        core.on_consumed(target.filled - filled);
        self.in_use.reclaim();
    }

    /// Copy what is in order to where the application wants to see it, and keep it.
    pub fn peek_into(&self, target: &mut Target<'_>) {
        for slice in &self.ready {
            target.append(slice);
        }
    }

    /// Give back the memory of what was taken and dropped since.
    pub fn reclaim(&mut self) {
        self.in_use.reclaim();
    }

    /// Whether the application takes nothing now: what waits for it is then joined.
    pub fn hold(&mut self, holds: bool) {
        self.holds = holds;
    }

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
