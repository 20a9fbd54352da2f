//! A connection and its sockets: the one path that bytes take in each direction.

use std::io::IoSlice;

use mstcp_core::{Connection, Error, Event, LocalError, Slice, StreamSet};

use crate::inbox::{Count, Inbox, ReadError};
use crate::memory::Memory;
use crate::policy::StreamSockets;
use crate::sys;

/// What [`Endpoint::transmit`] did, and what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Bytes that the sockets took, headers included.
    pub bytes: usize,
    /// Application bytes that no socket has taken.
    pub queued_bytes: usize,
    /// Streams whose sockets are full: call [`Endpoint::transmit`] after [`Connection::on_writable`].
    pub blocked: StreamSet,
    /// Streams that have sent their last byte: their direction of TCP is to be shut.
    pub ended: StreamSet,
    /// The stream that broke, which ended the call, and its errno.
    pub failed: Option<(usize, i32)>,
    /// When to call again though nothing happened.
    pub due_ns: Option<u64>,
}

/// One connection, after its hellos, and the non-blocking sockets of its streams.
pub struct Endpoint {
    /// The protocol. What is written to it leaves by [`Endpoint::transmit`].
    pub core: Connection,
    sockets: StreamSockets,
    inbox: Inbox,
}

impl Endpoint {
    /// A connection whose streams have no sockets yet.
    pub fn new(core: Connection) -> Self {
        Self {
            core,
            sockets: StreamSockets::default(),
            inbox: Inbox::default(),
        }
    }

    /// The streams' sockets.
    pub fn sockets(&mut self) -> &mut StreamSockets {
        &mut self.sockets
    }

    /// Ask TCP about streams without a rate and about silent ones, where that is due; `transmit` does so itself.
    pub fn measure(&mut self, now_ns: u64) -> Result<(), LocalError> {
        for stream in self.core.doubted(now_ns).iter() {
            let is_unanswered = sys::is_unanswered(self.sockets.descriptor(stream));
            self.core.on_unanswered(now_ns, stream, is_unanswered);
        }
        self.sockets.measure(&mut self.core, now_ns)
    }

    /// Whether `size` bytes more in a stream's socket are not too many unsent ones; those that TLS holds count.
    pub fn has_room(
        &mut self,
        now_ns: u64,
        stream: usize,
        size: usize,
        held: usize,
    ) -> Result<bool, LocalError> {
        self.sockets
            .has_room(&mut self.core, now_ns, stream, size, held)
    }

    /// Send until nothing is left to be sent or no socket has room.
    pub fn transmit(&mut self, now_ns: u64) -> Result<Sent, LocalError> {
        let mut sent = Sent::default();
        self.measure(now_ns)?;
        while let Some((stream, size)) = self.core.poll_frame(now_ns) {
            let mut count = 0;
            if self.has_room(now_ns, stream, size, 0)? {
                match self.send(stream) {
                    Ok(taken) => count = taken,
                    Err(libc::EAGAIN | libc::EINTR) => {}
                    Err(errno) => {
                        sent.failed = Some((stream, errno));
                        break;
                    }
                }
            }
            sent.bytes += count;
            if self.on_sent(stream, count)? {
                sent.ended.insert(stream);
            }
        }
        sent.queued_bytes = self.core.queued_bytes();
        sent.blocked = self.core.blocked();
        sent.due_ns = self.core.timeout_ns();
        Ok(sent)
    }

    /// Send what was polled on a stream's socket.
    pub fn send(&self, stream: usize) -> Count {
        let mut pieces = [IoSlice::new(&[]); sys::MAX_PIECES];
        let mut count = 0;
        self.core.rest(stream, |piece| {
            if count < sys::MAX_PIECES {
                pieces[count] = IoSlice::new(piece);
                count += 1;
            }
        });
        sys::send(self.sockets.descriptor(stream), &pieces[..count])
    }

    /// Note how many of the polled bytes a socket took; true if the stream has sent its last byte.
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        self.sockets.on_sent(stream, count);
        self.core.on_sent(stream, count)
    }

    /// Read a stream's socket once; 0 bytes are the end of the stream.
    pub fn read<M: Memory>(
        &mut self,
        memory: &mut M,
        stream: usize,
    ) -> Result<Count, ReadError<M::Error>> {
        let descriptor = self.sockets.descriptor(stream);
        self.inbox.read(&mut self.core, memory, stream, descriptor)
    }

    /// Take a stream's bytes that were read elsewhere, as TLS's.
    pub fn receive(&mut self, stream: usize, data: &[u8]) -> Result<(), Error> {
        self.inbox.receive(&mut self.core, stream, data)
    }

    /// Take the bytes that came with a client's hello.
    pub fn receive_early(&mut self, early: &[u8]) {
        self.inbox.receive_early(&mut self.core, early);
    }

    /// Whether the application takes nothing now: see [`Inbox::hold`].
    pub fn hold(&mut self, holds: bool) {
        self.inbox.hold(holds);
    }

    /// Take about half a megabyte of what is in order; the peer may then send as much more.
    pub fn take(&mut self) -> Vec<Slice> {
        self.inbox.take(&mut self.core)
    }

    /// Give back the memory of what was taken and dropped since.
    pub fn reclaim(&mut self) {
        self.inbox.reclaim();
    }

    /// Bytes that wait to be taken.
    pub fn ready_bytes(&self) -> usize {
        self.inbox.ready_bytes()
    }

    /// Whether all of the peer's bytes have been taken.
    pub fn is_ended(&self) -> bool {
        self.core.is_ended() && self.inbox.ready_bytes() == 0
    }

    /// What has happened, see [`Connection::poll_event`]; the socket of a stream that is gone is used no more.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.core.poll_event();
        if let Some(Event::StreamGone { slot }) = event {
            self.sockets.detach(slot);
        }
        event
    }

    /// Note that a stream is gone; true if the peer had ended it. What it had not brought through goes over the others.
    pub fn on_stream_end(&mut self, stream: usize) -> Result<bool, LocalError> {
        self.sockets.detach(stream);
        self.core.on_stream_end(stream)
    }
}
