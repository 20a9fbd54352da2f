//! One connection, for callers in C.

use std::ffi::{c_char, c_int, c_void};
use std::future::{poll_fn, Future};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use mstcp_tokio::{Connection, ReadHalf, StreamId, StreamStatistics, WriteHalf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::engine::{pass, wait};
use crate::error::{self, guard, CError};
use crate::mstcp_stream_spec;
use crate::readiness::{once, Readiness};

/// One half of a connection, and its descriptor.
struct Direction<H> {
    half: Mutex<H>,
    readiness: Readiness,
    poll_ready: fn(&Connection, &mut Context<'_>) -> Poll<()>,
    is_nonblocking: AtomicBool,
}

impl<H: AsRef<Connection>> Direction<H> {
    fn new(half: H, poll_ready: fn(&Connection, &mut Context<'_>) -> Poll<()>) -> Self {
        Self {
            half: Mutex::new(half),
            readiness: Readiness::default(),
            poll_ready,
            is_nonblocking: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, H> {
        self.half.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn into_inner(self) -> H {
        let half = self.half.into_inner();
        half.unwrap_or_else(PoisonError::into_inner)
    }

    fn arm(&self, half: &H) {
        (self.readiness).arm(|context| (self.poll_ready)(half.as_ref(), context));
    }

    /// Wait until `poll` is ready, or fail at once where the connection does not block.
    fn run<R>(
        &self,
        mut poll: impl FnMut(&mut H, &mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Result<R, CError> {
        let is_nonblocking = self.is_nonblocking.load(Ordering::Relaxed);
        let mut half = self.lock();
        let mut poll = |context: &mut Context<'_>| poll(&mut half, context);
        let result = match once(&mut poll) {
            Poll::Pending if is_nonblocking => Err(CError::new(
                ErrorKind::WouldBlock,
                "it would have to wait: see mstcp_read_descriptor and mstcp_write_descriptor",
            )),
            Poll::Pending => wait(poll_fn(poll)).and_then(|result| Ok(result?)),
            Poll::Ready(result) => {
                if !is_nonblocking {
                    pass();
                }
                result.map_err(CError::from)
            }
        };
        self.arm(&half);
        result
    }

    fn descriptor(&self) -> Result<c_int, CError> {
        let descriptor = self.readiness.descriptor()?;
        self.arm(&self.lock());
        Ok(descriptor)
    }
}

/// A connection.
pub struct mstcp_connection {
    reading: Direction<ReadHalf>,
    writing: Direction<WriteHalf>,
}

impl mstcp_connection {
    pub(crate) fn new(connection: Connection) -> *mut Self {
        let (reader, writer) = connection.into_split();
        Box::into_raw(Box::new(Self {
            reading: Direction::new(reader, Connection::poll_read_ready),
            writing: Direction::new(writer, Connection::poll_write_ready),
        }))
    }

    fn into_inner(self) -> Connection {
        self.reading.into_inner().unsplit(self.writing.into_inner())
    }

    fn with<R>(&self, act: impl FnOnce(&Connection) -> R) -> R {
        // Either half reaches the connection, and another thread may be waiting in one of them.
        if let Ok(writer) = self.writing.half.try_lock() {
            return act(writer.as_ref());
        }
        act((*self.reading.lock()).as_ref())
    }
}

/// Wait for bytes, and copy up to `size` of them to `buffer`. Returns how many came; 0: the peer sends no more; -1 on failure.
///
/// # Safety
/// The connection was not closed, and the buffer has this many bytes.
#[no_mangle]
pub unsafe extern "C" fn mstcp_read(
    connection: *const mstcp_connection,
    buffer: *mut u8,
    size: usize,
) -> isize {
    guard(-1, || {
        let connection = error::object(connection)?;
        if buffer.is_null() || size == 0 {
            return Err(CError::invalid(
                "the buffer must have room for a byte at least",
            ));
        }
        let bytes = std::slice::from_raw_parts_mut(buffer, size.min(isize::MAX as usize));
        let mut target = ReadBuf::new(bytes);
        connection
            .reading
            .run(|reader, context| Pin::new(reader).poll_read(context, &mut target))?;
        Ok(target.filled().len() as isize)
    })
}

/// Bytes that came, in the library's memory: see mstcp_read_chunk().
pub struct mstcp_chunk(Bytes);

/// Wait for bytes, and take them where they are, without a copy: `*bytes` points to them until mstcp_chunk_free() of `*chunk`.
/// Returns how many came; 0: the peer sends no more, and there is no chunk; -1 on failure.
///
/// # Safety
/// The connection was not closed, and both pointers can be written to.
#[no_mangle]
pub unsafe extern "C" fn mstcp_read_chunk(
    connection: *const mstcp_connection,
    chunk: *mut *mut mstcp_chunk,
    bytes: *mut *const u8,
) -> isize {
    guard(-1, || {
        let connection = error::object(connection)?;
        let came = connection
            .reading
            .run(|reader, context| pin!(reader.read_chunk()).poll(context))?;
        let Some(came) = came else {
            return Ok(0);
        };
        let held = Box::new(mstcp_chunk(came));
        let count = held.0.len();
        bytes.write(held.0.as_ptr());
        chunk.write(Box::into_raw(held));
        Ok(count as isize)
    })
}

/// Free a chunk of mstcp_read_chunk(), by any thread; it may be kept longer than its connection. NULL is allowed.
///
/// # Safety
/// The chunk is NULL or one that was not freed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_chunk_free(chunk: *mut mstcp_chunk) {
    if !chunk.is_null() {
        drop(Box::from_raw(chunk));
    }
}

/// Wait for room, and take up to `size` bytes to be sent. Returns how many were taken, 1 at least; -1 on failure. The peer may
/// not have them yet: see mstcp_close().
///
/// # Safety
/// The connection was not closed, and the buffer has this many bytes.
#[no_mangle]
pub unsafe extern "C" fn mstcp_write(
    connection: *const mstcp_connection,
    buffer: *const u8,
    size: usize,
) -> isize {
    guard(-1, || {
        let connection = error::object(connection)?;
        if size == 0 {
            return Ok(0);
        }
        if buffer.is_null() {
            return Err(CError::invalid("the buffer is NULL"));
        }
        let bytes = std::slice::from_raw_parts(buffer, size.min(isize::MAX as usize));
        let taken = connection
            .writing
            .run(|writer, context| Pin::new(writer).poll_write(context, bytes))?;
        Ok(taken as isize)
    })
}

/// Memory of the application, released when the last reference is dropped.
struct ApplicationBytes {
    bytes: *const u8,
    size: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
    is_taken: AtomicBool,
}

// SAFETY: nobody changes the bytes, and the application allows its function to be called by any thread.
unsafe impl Send for ApplicationBytes {}
// SAFETY: as above.
unsafe impl Sync for ApplicationBytes {}

impl Drop for ApplicationBytes {
    fn drop(&mut self) {
        if let (Some(release), true) = (self.release, *self.is_taken.get_mut()) {
            release(self.context);
        }
    }
}

struct LentBytes(Arc<ApplicationBytes>);

impl AsRef<[u8]> for LentBytes {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the application keeps them until they are released.
        unsafe { std::slice::from_raw_parts(self.0.bytes, self.0.size) }
    }
}

/// Wait for room, and send `size` bytes without a copy: they must stay as they are until `release(context)` is called once, by
/// whichever thread, and must not call the library. `release` may be NULL: they stay as long as the process. Returns 0, or -1 on
/// failure, after which `release` is not called.
///
/// # Safety
/// The connection was not closed, and the bytes are there.
#[no_mangle]
pub unsafe extern "C" fn mstcp_write_chunk(
    connection: *const mstcp_connection,
    bytes: *const u8,
    size: usize,
    release: Option<extern "C" fn(*mut c_void)>,
    context: *mut c_void,
) -> c_int {
    guard(-1, || {
        let connection = error::object(connection)?;
        if bytes.is_null() {
            return Err(CError::invalid("the bytes are NULL"));
        }
        let lent = Arc::new(ApplicationBytes {
            bytes,
            size,
            release,
            context,
            is_taken: AtomicBool::new(true),
        });
        let chunk = Bytes::from_owner(LentBytes(Arc::clone(&lent)));
        let sent = connection
            .writing
            .run(|writer, context| pin!(writer.write_chunk(chunk.clone())).poll(context));
        (lent.is_taken).store(sent.is_ok(), Ordering::Relaxed);
        sent.map(|()| 0)
    })
}

/// Send the end after what was written; reading goes on. Returns 0, or -1 on failure.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_shutdown(connection: *const mstcp_connection) -> c_int {
    guard(-1, || {
        let connection = error::object(connection)?;
        connection
            .writing
            .run(|writer, context| Pin::new(writer).poll_shutdown(context))?;
        Ok(0)
    })
}

/// Send what was written and the end, wait until the peer has everything, and free the connection, also on failure. Returns 0, or
/// -1 on failure. NULL is allowed.
///
/// # Safety
/// The connection was not closed, and no other call on it is under way.
#[no_mangle]
pub unsafe extern "C" fn mstcp_close(connection: *mut mstcp_connection) -> c_int {
    guard(-1, || {
        if !connection.is_null() {
            let connection = Box::from_raw(connection).into_inner();
            wait(connection.close())??;
        }
        Ok(0)
    })
}

/// Give the connection up at once and free it: what was written may be lost, and the peer is told the reason. NULL is allowed.
///
/// # Safety
/// The connection was not closed, no other call on it is under way, and the reason is a string.
#[no_mangle]
pub unsafe extern "C" fn mstcp_abort(connection: *mut mstcp_connection, reason: *const c_char) {
    guard((), || {
        if !connection.is_null() {
            let connection = Box::from_raw(connection).into_inner();
            connection
                .abort(error::text(reason).unwrap_or("the application gave the connection up"));
        }
        Ok(())
    });
}

/// Have mstcp_read() and mstcp_write() fail with EAGAIN instead of waiting, if `nonblocking` is not 0. Returns 0, or -1.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_set_nonblocking(
    connection: *const mstcp_connection,
    nonblocking: c_int,
) -> c_int {
    guard(-1, || {
        let connection = error::object(connection)?;
        for flag in [
            &connection.reading.is_nonblocking,
            &connection.writing.is_nonblocking,
        ] {
            flag.store(nonblocking != 0, Ordering::Relaxed);
        }
        Ok(0)
    })
}

/// A descriptor that is readable (POLLIN) while mstcp_read() would not wait. It is the connection's: nothing is to be read from it,
/// and it is closed with the connection. Returns -1 on failure.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_read_descriptor(connection: *const mstcp_connection) -> c_int {
    guard(-1, || error::object(connection)?.reading.descriptor())
}

/// A descriptor that is readable (POLLIN, not POLLOUT) while mstcp_write() would not wait; as mstcp_read_descriptor().
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_write_descriptor(connection: *const mstcp_connection) -> c_int {
    guard(-1, || error::object(connection)?.writing.descriptor())
}

/// Open a further stream, and again whenever it is lost; only where mstcp_connect() opened the connection. Returns its number, or -1
/// on failure.
///
/// # Safety
/// The connection was not closed, and the specification is one or NULL.
#[no_mangle]
pub unsafe extern "C" fn mstcp_add_stream(
    connection: *const mstcp_connection,
    spec: *const mstcp_stream_spec,
) -> c_int {
    guard(-1, || {
        let connection = error::object(connection)?;
        let spec = spec.as_ref().map(|spec| spec.read()).transpose()?;
        let added = connection.with(|inner| inner.add_stream(spec.unwrap_or_default()));
        Ok(added?.index() as c_int)
    })
}

/// Take a stream out once the peer has what it carried, and open it no more; the others go on. Returns 0, or -1 on failure: it is the
/// last one, or there is none of this number.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_remove_stream(
    connection: *const mstcp_connection,
    stream: u32,
) -> c_int {
    act(connection, |inner| inner.remove_stream(id_of(stream)))
}

/// Pace a stream at another goodput in bit/s; 0: as TCP's congestion control allows. Returns 0, or -1 on failure.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_set_rate(
    connection: *const mstcp_connection,
    stream: u32,
    rate_bps: f64,
) -> c_int {
    let rate_bps = (rate_bps != 0.0).then_some(rate_bps);
    act(connection, |inner| inner.set_rate(id_of(stream), rate_bps))
}

/// Use a stream by another priority, both ways: see mstcp_stream_spec. Returns 0, or -1 on failure.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_set_priority(
    connection: *const mstcp_connection,
    stream: u32,
    priority: u8,
) -> c_int {
    act(connection, |inner| {
        inner.set_priority(id_of(stream), priority)
    })
}

/// Announce `count` further addresses that lead here, each "IP:PORT", to the client, which opens streams to as many as its
/// configuration says; only where mstcp_accept() returned the connection. They take the place of all that were announced before: an
/// address that is missing is withdrawn, and its stream is taken out. Returns 0, or -1 on failure.
///
/// # Safety
/// The connection was not closed, and there are this many strings.
#[no_mangle]
pub unsafe extern "C" fn mstcp_announce(
    connection: *const mstcp_connection,
    addresses: *const *const c_char,
    count: usize,
) -> c_int {
    guard(-1, || {
        let addresses = crate::addresses(addresses, count)?;
        error::object(connection)?.with(|inner| inner.announce(addresses))?;
        Ok(0)
    })
}

/// # Safety
/// The connection is NULL, or was not closed.
unsafe fn act(
    connection: *const mstcp_connection,
    act: impl FnOnce(&Connection) -> Result<(), mstcp_tokio::Error>,
) -> c_int {
    guard(-1, || {
        error::object(connection)?.with(act)?;
        Ok(0)
    })
}

fn id_of(stream: u32) -> StreamId {
    StreamId::from_index(stream as usize)
}

/// Tell that the host's addresses or routes have changed: streams that are lost by it are opened again at once. Returns 0, or -1.
///
/// # Safety
/// The connection was not closed.
#[no_mangle]
pub unsafe extern "C" fn mstcp_network_changed(connection: *const mstcp_connection) -> c_int {
    act(connection, |inner| {
        inner.network_changed();
        Ok(())
    })
}

/// Room for an address and its port as text, with the zero at the end.
pub const MSTCP_ADDRESS_BYTES: usize = 64;

fn text_of(address: SocketAddr) -> [c_char; MSTCP_ADDRESS_BYTES] {
    let mut text = [0; MSTCP_ADDRESS_BYTES];
    for (to, from) in text.iter_mut().zip(address.to_string().bytes()) {
        *to = from as c_char;
    }
    text
}

/// What one stream has carried so far.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct mstcp_stream_statistics {
    /// Its number.
    pub stream: u32,
    /// Its own address, "IP:PORT".
    pub local: [c_char; MSTCP_ADDRESS_BYTES],
    /// The peer's address.
    pub peer: [c_char; MSTCP_ADDRESS_BYTES],
    /// 1 while it carries bytes.
    pub is_open: u8,
    /// 1 while nothing comes through it.
    pub is_stalled: u8,
    /// Application bytes sent on it, those that were sent again included.
    pub sent_bytes: u64,
    /// Application bytes that came on it.
    pub received_bytes: u64,
    /// Application bytes that others had lost, sent again on it.
    pub resent_bytes: u64,
    /// What TCP delivers or could, in bit/s; 0: not known.
    pub delivery_rate_bps: f64,
    /// Smoothed round-trip time in seconds, queues included; 0: not known.
    pub round_trip_s: f64,
}

impl From<&StreamStatistics> for mstcp_stream_statistics {
    fn from(stream: &StreamStatistics) -> Self {
        let path = stream.path;
        Self {
            stream: stream.stream.index() as u32,
            local: text_of(stream.local),
            peer: text_of(stream.peer),
            is_open: stream.is_open.into(),
            is_stalled: stream.is_stalled.into(),
            sent_bytes: stream.sent_bytes,
            received_bytes: stream.received_bytes,
            resent_bytes: stream.resent_bytes,
            delivery_rate_bps: path.map_or(0.0, |path| path.delivery_rate_bps),
            round_trip_s: path.map_or(0.0, |path| path.round_trip.as_secs_f64()),
        }
    }
}

/// Fill in the statistics of the first `most` streams. Returns how many streams there are, or -1 on failure.
///
/// # Safety
/// The connection was not closed, and `streams` has room for this many, or is NULL and `most` 0.
#[no_mangle]
pub unsafe extern "C" fn mstcp_statistics(
    connection: *const mstcp_connection,
    streams: *mut mstcp_stream_statistics,
    most: usize,
) -> c_int {
    guard(-1, || {
        let statistics = error::object(connection)?.with(Connection::statistics);
        if !streams.is_null() {
            for (at, stream) in statistics.streams.iter().take(most).enumerate() {
                streams.add(at).write(stream.into());
            }
        }
        Ok(statistics.streams.len() as c_int)
    })
}
