//! The task of a connection: between its sockets, its core and its application.

use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::io;
use std::os::fd::AsRawFd;
use std::pin::{pin, Pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use ::tokio::io::{AsyncRead, AsyncWrite, DuplexStream, Interest, ReadBuf};
use ::tokio::net::TcpStream;
use ::tokio::sync::{mpsc, oneshot};
use ::tokio::time::{sleep_until, Instant, Sleep};
use mstcp_proto::control::code;
use mstcp_proto::frame::HEADER_BYTES;
use mstcp_proto::handshake::Proof;
use mstcp_proto::{Event, Outcome, Slice};

use super::client::Path;
use super::{invalid, Connection, Ending, WAITING_BYTES};
use crate::{sys, Endpoint, Layer, OwnMemory};

/// What a stream weighs whose rate nobody gave, until it is measured; in bit/s.
pub(super) const UNKNOWN_BPS: f64 = 1e10;
/// A socket in which enough is unsent is tried again after so long: epoll tells edges, and the kernel sees none where it would
/// take more than is to wait in it.
const BLOCKED: Duration = Duration::from_millis(1);
/// Nothing is due: something else wakes the task.
const IDLE: Duration = Duration::from_secs(3600);
/// What is taken from the application at once.
const WRITE_BYTES: usize = 1 << 16;

/// What a connection's driver tells those who let streams join it.
#[derive(Default)]
pub(super) struct Status {
    /// How many streams it has.
    pub(super) alive: AtomicUsize,
    /// Once it is over: see [`mstcp_proto::Connection::farewell`].
    pub(super) farewell: Mutex<Option<Vec<u8>>>,
}

/// A stream whose hellos are done.
pub(super) struct Joined {
    pub(super) socket: TcpStream,
    pub(super) layer: Option<Layer>,
    pub(super) id: u32,
    /// The proof that its first frame must be, if the peer is the one that opened it.
    pub(super) confirm: Option<Proof>,
    /// At a client: how it is opened again.
    pub(super) path: Option<Path>,
}

struct Stream {
    socket: TcpStream,
    path: Option<Path>,
}

struct Driver {
    endpoint: Endpoint,
    frame_payload_bytes: usize,
    streams: Vec<Option<Stream>>,
    joins: mpsc::Receiver<Joined>,
    began: Instant,
    /// The application's other end, and whether it is gone.
    application: DuplexStream,
    closed: oneshot::Receiver<()>,
    is_closed: bool,
    has_written_all: bool,
    is_shut: bool,
    has_told_end: bool,
    /// Taken from the endpoint, of the first as many bytes less as the application has.
    taken: VecDeque<Slice>,
    taken_from: usize,
    ending: Ending,
    status: Arc<Status>,
    over: Option<Option<(io::ErrorKind, String)>>,
}

/// Begin a connection whose first stream is open.
pub(super) fn start(
    endpoint: Endpoint,
    frame_payload_bytes: usize,
    first: (TcpStream, Option<Layer>, Option<Path>),
    joins: mpsc::Receiver<Joined>,
    status: Arc<Status>,
) -> io::Result<Connection> {
    let (bytes, application) = ::tokio::io::duplex(WAITING_BYTES);
    let (closing, closed) = oneshot::channel();
    let ending = Ending::default();
    let mut driver = Driver {
        endpoint,
        frame_payload_bytes,
        streams: Vec::new(),
        joins,
        began: Instant::now(),
        application,
        closed,
        is_closed: false,
        has_written_all: false,
        is_shut: false,
        has_told_end: false,
        taken: VecDeque::new(),
        taken_from: 0,
        ending: Arc::clone(&ending),
        status,
        over: None,
    };
    let (socket, layer, path) = first;
    driver.attach(0, Stream { socket, path }, layer)?;
    Ok(Connection {
        bytes,
        driver: ::tokio::spawn(driver.run()),
        ending,
        _closing: closing,
    })
}

impl Driver {
    async fn run(mut self) {
        while self.over.is_none() {
            let due = self.pump();
            if self.over.is_none() {
                let mut timer = pin!(sleep_until(due));
                poll_fn(|context| self.poll(context, timer.as_mut())).await;
            }
        }
        for stream in self.streams.drain(..).flatten() {
            if !matches!(self.over, Some(None)) {
                // Closed in any case.
                let _ = stream.socket.set_zero_linger();
            }
        }
        *(self.status.farewell.lock()).unwrap_or_else(PoisonError::into_inner) =
            self.endpoint.core.farewell();
        *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = self.over.flatten();
    }

    fn now_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn end(&mut self, kind: io::ErrorKind, why: impl Into<String>) {
        self.over.get_or_insert_with(|| Some((kind, why.into())));
    }

    fn attach(&mut self, slot: usize, stream: Stream, layer: Option<Layer>) -> io::Result<()> {
        let descriptor = stream.socket.as_raw_fd();
        let sockets = self.endpoint.sockets();
        sockets
            .attach(
                slot,
                descriptor,
                None,
                self.frame_payload_bytes,
                HEADER_BYTES,
            )
            .map_err(io::Error::from_raw_os_error)?;
        if slot >= self.streams.len() {
            self.streams.resize_with(slot + 1, || None);
        }
        self.streams[slot] = Some(stream);
        if let Some(layer) = layer {
            self.endpoint.protect(slot, layer).map_err(invalid)?;
        }
        Ok(())
    }

    fn add(&mut self, joined: Joined) {
        let core = &mut self.endpoint.core;
        let Ok(slot) = core.add_stream(joined.id, UNKNOWN_BPS) else {
            return; // it has 64: the socket is closed, and its peer tries later
        };
        let confirmed = joined
            .confirm
            .map_or(Ok(()), |proof| core.expect_confirm(slot, proof));
        let (socket, path) = (joined.socket, joined.path);
        let attached = self.attach(slot, Stream { socket, path }, joined.layer);
        if confirmed.is_err() || attached.is_err() {
            self.lose(slot);
        }
    }

    /// Go on without a stream; a client opens it again unless the peer has ended it.
    fn lose(&mut self, slot: usize) {
        let is_proper = self.endpoint.on_stream_end(slot).unwrap_or(false);
        self.let_go(slot, is_proper);
    }

    fn let_go(&mut self, slot: usize, is_proper: bool) {
        let Some(stream) = self.streams.get_mut(slot).and_then(Option::take) else {
            return;
        };
        if !is_proper {
            // Closed in any case.
            let _ = stream.socket.set_zero_linger();
            drop(stream.socket);
            if let Some(path) = stream.path {
                path.reopen();
            }
        }
    }

    /// Send what is to be sent, and do what has happened; when to do so again.
    fn pump(&mut self) -> Instant {
        let now_ns = self.now_ns();
        let mut due_ns = None;
        let mut has_blocked = false;
        loop {
            let sent = match self.endpoint.transmit(now_ns) {
                Ok(sent) => sent,
                Err(error) => {
                    self.end(io::ErrorKind::Other, error.to_string());
                    break;
                }
            };
            for slot in sent.ended.iter() {
                sys::shut(self.endpoint.sockets().descriptor(slot));
            }
            if let Some((slot, _)) = sent.failed {
                self.lose(slot);
                continue;
            }
            due_ns = sent.due_ns;
            has_blocked = !sent.blocked.is_empty();
            break;
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::StreamGone { slot } => self.let_go(slot, false),
                Event::StreamStalled { .. } | Event::StreamRecovered { .. } => {}
                Event::Closed(outcome) => self.finish(&outcome),
            }
            due_ns = Some(now_ns);
        }
        let told = self.endpoint.core.closed_by_peer();
        if let Some(why) = told.map(|(_, why)| why.to_owned()) {
            self.end(
                io::ErrorKind::ConnectionAborted,
                format!("the peer gave up: {why}"),
            );
        }
        let alive = self.endpoint.core.alive().iter().count();
        self.status.alive.store(alive, Ordering::Relaxed);
        let due = due_ns.map(|at_ns| self.began + Duration::from_nanos(at_ns.max(now_ns)));
        let due = due.unwrap_or(self.began + Duration::from_nanos(now_ns) + IDLE);
        match has_blocked {
            true => due.min(Instant::now() + BLOCKED),
            false => due,
        }
    }

    fn finish(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Delivered => drop(self.over.get_or_insert(None)),
            Outcome::Undelivered { bytes } => self.end(
                io::ErrorKind::TimedOut,
                format!("closed before the peer had everything: {bytes} bytes were not delivered"),
            ),
            Outcome::Lost => self.end(
                io::ErrorKind::ConnectionReset,
                "no stream of the connection is left",
            ),
        }
    }

    /// Wait until something has happened, and take it.
    fn poll(&mut self, context: &mut Context<'_>, timer: Pin<&mut Sleep>) -> Poll<()> {
        let mut has_progress = timer.poll(context).is_ready();
        if has_progress {
            for slot in self.endpoint.core.blocked().iter() {
                // The stream is there.
                let _ = self.endpoint.core.on_writable(slot);
            }
        }
        while let Poll::Ready(Some(joined)) = self.joins.poll_recv(context) {
            self.add(joined);
            has_progress = true;
        }
        for slot in 0..self.streams.len() {
            let stream = self.streams[slot].as_ref();
            if stream.is_some_and(|stream| stream.socket.poll_read_ready(context).is_ready()) {
                self.read(slot);
                has_progress = true;
            }
        }
        has_progress |= self.deliver(context) | self.take_written(context);
        match has_progress || self.over.is_some() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn read(&mut self, slot: usize) {
        let Some(stream) = &self.streams[slot] else {
            return;
        };
        let endpoint = &mut self.endpoint;
        let mut broken = None;
        let result = stream.socket.try_io(Interest::READABLE, || {
            match endpoint.read(&mut OwnMemory, slot) {
                Ok(Ok(count)) => Ok(count),
                Ok(Err(errno)) => Err(io::Error::from_raw_os_error(errno)),
                Err(error) => {
                    broken = Some(error.to_string());
                    Ok(1)
                }
            }
        });
        if let Some(why) = broken {
            self.endpoint.core.close(code::PROTOCOL_ERROR, &why);
            // What can't be said is not.
            let _ = self.endpoint.transmit(self.now_ns());
            self.end(io::ErrorKind::InvalidData, why);
            return;
        }
        match result {
            Ok(0) => self.lose(slot),
            Err(error) if !is_not_now(&error) => self.lose(slot),
            Ok(_) | Err(_) => {}
        }
    }

    /// Give the application what is in order; true if it took some.
    fn deliver(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        loop {
            if self.taken.is_empty() {
                self.endpoint.reclaim();
                if self.endpoint.ready_bytes() == 0 {
                    break;
                }
                self.taken.extend(self.endpoint.take());
            }
            let Some(first) = self.taken.front() else {
                break;
            };
            let rest = &first[self.taken_from..];
            let application = Pin::new(&mut self.application);
            match application.poll_write(context, rest) {
                Poll::Ready(Ok(count)) if count < rest.len() => self.taken_from += count,
                // What an application that is gone does not take is thrown away.
                Poll::Ready(_) => {
                    self.taken.pop_front();
                    self.taken_from = 0;
                }
                Poll::Pending => break,
            }
            has_moved = true;
        }
        let has_all = self.taken.is_empty() && self.endpoint.is_ended();
        if has_all && !self.has_told_end {
            self.has_told_end = true;
            // In memory nothing is to be waited for.
            let _ = Pin::new(&mut self.application).poll_shutdown(context);
        }
        has_moved
    }

    /// Take what the application wrote, as long as not too much waits; true if there was something.
    fn take_written(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_moved = false;
        // It tells once.
        self.is_closed = self.is_closed || Pin::new(&mut self.closed).poll(context).is_ready();
        let mut memory = [0; WRITE_BYTES];
        while !self.has_written_all && self.endpoint.core.queued_bytes() < WAITING_BYTES {
            let mut buffer = ReadBuf::new(&mut memory);
            let application = Pin::new(&mut self.application);
            match application.poll_read(context, &mut buffer) {
                Poll::Pending => break,
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    if let Err(error) = self.endpoint.core.write(buffer.filled()) {
                        self.end(io::ErrorKind::Other, invalid(error).to_string());
                    }
                }
                Poll::Ready(_) => {
                    self.has_written_all = true;
                    self.endpoint.core.end();
                }
            }
            has_moved = true;
        }
        if self.is_closed && self.has_written_all && !self.is_shut {
            self.is_shut = true;
            self.endpoint.core.shut();
            has_moved = true;
        }
        has_moved
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
