//! What shells need that close sockets by themselves, hold bytes back, or have threads drive a connection in turn.

use std::os::fd::{AsRawFd, RawFd};

use mstcp_proto::{Connection, Slice, StreamSet};

use super::{Action, Driver, Side, SocketId, StreamId};
use crate::config::StreamSpec;
use crate::endpoint::Endpoint;
use crate::error::Error;

impl Driver {
    /// The protocol, for what no other method does; [`Driver::settle`] is to be called after it.
    pub fn core(&mut self) -> &mut Connection {
        &mut self.endpoint.core
    }

    /// The sockets and the protocol.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    /// A stream's slot in the core and the number of its socket, as long as that is open.
    pub fn place_of(&self, stream: StreamId) -> Option<(usize, SocketId)> {
        let mut slots = self.slots.iter().enumerate();
        let (at, slot) = slots.find(|(_, slot)| slot.stream == stream)?;
        Some((at, slot.open.as_ref()?.socket))
    }

    /// How the stream in a slot is used.
    pub fn spec_of(&self, slot: usize) -> StreamSpec {
        (self.slots.get(slot)).map_or_else(StreamSpec::default, |slot| slot.spec)
    }

    /// Have the shell close a stream's socket when it is told to watch it no more. It must have no clone of it.
    pub fn release_socket(&mut self, slot: usize) -> Option<RawFd> {
        let open = self.slots.get_mut(slot)?.open.as_mut()?;
        open.descriptor.release().then(|| {
            // The shell closes it, also where it was never asked to watch it.
            if self
                .watched
                .iter()
                .all(|(socket, ..)| *socket != open.socket)
            {
                self.watched.push((open.socket, false, false));
            }
            open.descriptor.as_raw_fd()
        })
    }

    /// Whether a socket is that of an open stream.
    pub fn is_open_stream(&self, socket: SocketId) -> bool {
        self.slot_of(socket).is_some()
    }

    /// Go on without a stream whose place another takes.
    pub fn drop_stream(&mut self, now_ns: u64, slot: usize) {
        if self.endpoint.core.alive().contains(slot) {
            self.lose(now_ns, slot, super::Loss::Silent);
        }
    }

    /// End the connection at once, without a word.
    pub fn give_up(&mut self, now_ns: u64, error: Error) {
        self.finish(Err(error));
        self.settle(now_ns);
    }

    /// Pause writing above this many bytes that no socket has taken, and go on below `few_bytes`.
    pub fn set_write_limits(&mut self, most_bytes: usize, few_bytes: usize) {
        self.most_queued_bytes = most_bytes;
        self.few_queued_bytes = few_bytes;
        self.resume();
    }

    /// Whether the application takes nothing now. What comes is then joined, and plain TCP is left in the kernel, unless other
    /// threads take it: see [`Driver::read_ahead`].
    pub fn hold(&mut self, holds: bool) {
        self.are_sockets_new |= self.holds != holds;
        self.holds = holds;
        self.endpoint.hold(holds);
    }

    /// Have plain TCP read though the application takes nothing now.
    pub fn read_ahead(&mut self) {
        self.reads_ahead = true;
        self.are_sockets_new = true;
    }

    /// Read no stream before [`Driver::start`]; streams are opened meanwhile.
    pub fn start_later(&mut self) {
        self.starts_later = true;
    }

    /// Read streams from now on.
    pub fn start(&mut self) {
        self.starts_later = false;
        self.stand_by(false);
        self.are_sockets_new = true;
    }

    /// Whether other streams are being opened for the first time.
    pub fn is_joining(&self) -> bool {
        matches!(&self.side, Side::Client(dialler) if dialler.is_joining())
    }

    /// Watch no sockets, which other threads have, or watch them again.
    pub fn stand_by(&mut self, stands_by: bool) {
        self.are_sockets_new |= self.stands_by != stands_by;
        self.stands_by = stands_by;
    }

    /// Whether it watches no sockets.
    pub fn stands_by(&self) -> bool {
        self.stands_by
    }

    /// Bytes that no socket has taken.
    pub fn queued_bytes(&self) -> usize {
        self.endpoint.core.queued_bytes()
    }

    /// Bytes that the sockets took so far, headers included.
    pub fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// The slots that other threads are to read, and those that they are to tell of room.
    pub(crate) fn interest(&self) -> (StreamSet, StreamSet) {
        let mut readable = self.endpoint.core.readable();
        for (slot, entry) in self.slots.iter().enumerate() {
            if entry.open.as_ref().map_or(true, |open| open.has_ended) {
                readable.remove(slot);
            }
        }
        (readable, self.blocked)
    }

    /// As [`Driver::take`]; [`Driver::settle`] is to be called after it.
    pub fn take_unsettled(&mut self) -> Vec<Slice> {
        let slices = self.endpoint.take();
        self.note_taken_elsewhere();
        slices
    }

    /// Note that a stream's socket has room.
    pub(crate) fn note_room(&mut self, slot: usize) {
        // A stream that is gone has none.
        let _ = self.endpoint.core.on_writable(slot);
    }

    /// Note that other threads have taken bytes that were in order.
    pub(crate) fn note_taken_elsewhere(&mut self) {
        self.has_told_bytes = self.endpoint.ready_bytes() > 0;
    }

    /// Whether there is something to be done that concerns the shell's loop, and not the threads that wait.
    pub(crate) fn has_news(&self) -> bool {
        !(self.actions.iter()).all(|action| matches!(action, Action::Deliver))
    }
}
