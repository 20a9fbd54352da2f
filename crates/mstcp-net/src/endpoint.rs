//! A connection and its sockets: the one path that bytes take in each direction.

use rustix::io::Errno;
use std::io::IoSlice;

use mstcp_proto::{Connection, Error, Event, LocalError, StreamSet};

use crate::inbox::{Inbox, ReadResult};
use crate::layers::Layer;
use crate::policy::StreamSockets;
use crate::sys;

/// What [`Endpoint::transmit`] did, and what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Bytes that the sockets took, headers included.
    pub bytes: usize,
    /// Streams whose sockets are full: call [`Endpoint::transmit`] after [`Connection::on_writable`].
    pub blocked: StreamSet,
    /// Streams that have sent their last byte: their direction of TCP is to be shut.
    pub ended: StreamSet,
    /// The stream that broke, which ended the call, and its errno.
    pub failed: Option<(usize, Errno)>,
}

/// One connection, after its hellos, and the non-blocking sockets of its streams.
pub struct Endpoint {
    /// The protocol. What is written to it leaves by [`Endpoint::transmit`].
    pub core: Connection,
    pub(crate) sockets: StreamSockets,
    pub(crate) inbox: Inbox,
    /// By slot: what changes the bytes of streams whose frames do not go as they are.
    layers: Vec<Option<Layer>>,
    /// Streams whose last bytes wait in their layers.
    ending: StreamSet,
}

impl Endpoint {
    /// A connection whose streams have no sockets yet.
    pub fn new(core: Connection) -> Self {
        Self {
            core,
            sockets: StreamSockets::default(),
            inbox: Inbox::default(),
            layers: Vec::new(),
            ending: StreamSet::default(),
        }
    }

    /// Have a layer between a stream and its socket from now on, and take what came in it already.
    ///
    /// # Errors
    /// What came is not what a peer sends.
    pub fn protect(&mut self, stream: usize, mut layer: Layer) -> Result<(), Error> {
        let early = layer.early();
        if stream >= self.layers.len() {
            self.layers.resize_with(stream + 1, || None);
        }
        self.layers[stream] = Some(layer);
        self.receive(stream, &early)
    }

    /// What is between a stream and its socket, if anything.
    pub fn layer_of(&self, stream: usize) -> Option<&Layer> {
        self.layers.get(stream)?.as_ref()
    }

    pub(crate) fn layer(&mut self, stream: usize) -> Option<&mut Layer> {
        self.layers.get_mut(stream)?.as_mut()
    }

    /// Use a socket for a stream: pace it at a rate, or ask TCP what it carries. See [`crate::UnsentLimit::pace`].
    ///
    /// # Errors
    /// An errno: the system refuses the rate.
    pub fn attach(
        &mut self,
        stream: usize,
        descriptor: i32,
        rate_bps: Option<f64>,
        frame_payload_bytes: usize,
        header_bytes: usize,
    ) -> Result<(), Errno> {
        let sockets = &mut self.sockets;
        sockets.attach(
            stream,
            descriptor,
            rate_bps,
            frame_payload_bytes,
            header_bytes,
        )?;
        if self.core.is_plain() {
            sockets.measure_no_more(stream);
            // What is offered at once must fit when the kernel calls the socket writable.
            let limit = sockets.limit(stream).unwrap_or(usize::MAX);
            self.core.set_plain_bytes(limit / 4);
        }
        Ok(())
    }

    /// The streams' sockets.
    pub fn sockets(&mut self) -> &mut StreamSockets {
        &mut self.sockets
    }

    /// Ask TCP about streams without a rate and about silent ones, where that is due.
    pub fn measure(&mut self, now_ns: u64) -> Result<(), LocalError> {
        self.sockets.check_awaited(now_ns);
        for stream in self.core.streams_to_query(now_ns).iter() {
            let unanswered = sys::unanswered(self.sockets.descriptor(stream));
            self.core.on_unanswered(now_ns, stream, unanswered);
        }
        self.sockets.measure(&mut self.core, now_ns)
    }

    /// Send until nothing is left to be sent or no socket has room.
    pub fn transmit(&mut self, now_ns: u64) -> Result<Sent, LocalError> {
        let mut sent = Sent {
            failed: self.flush_layers(),
            ..Sent::default()
        };
        if sent.failed.is_some() {
            return Ok(sent);
        }
        self.measure(now_ns)?;
        while let Some((stream, size)) = self.core.poll_frame(now_ns) {
            let mut count = 0;
            let held = self.layer(stream).map_or(0, |layer| layer.unsent_bytes());
            let sockets = &mut self.sockets;
            if sockets.has_room(&mut self.core, now_ns, stream, size, held)? {
                match self.send(stream) {
                    Ok(taken) => count = taken,
                    Err(Errno::AGAIN | Errno::INTR) => {}
                    Err(errno) => {
                        self.note_broken(errno);
                        sent.failed = Some((stream, errno));
                        break;
                    }
                }
            }
            sent.bytes += count;
            self.note_sent(stream, count)?;
        }
        let waiting = self.unsent_in_layers();
        sent.ended = self.ending.without(waiting);
        self.ending = self.ending.and(waiting);
        sent.blocked = self.core.blocked().or(waiting);
        Ok(sent)
    }

    fn note_sent(&mut self, stream: usize, count: usize) -> Result<(), LocalError> {
        if self.on_sent(stream, count)? {
            self.ending.insert(stream);
            if let Some(layer) = self.layer(stream) {
                layer.end();
            }
        }
        Ok(())
    }

    /// Streams of whose layers' bytes the sockets have not taken all.
    fn unsent_in_layers(&self) -> StreamSet {
        let mut waiting = StreamSet::default();
        for (slot, layer) in self.layers.iter().enumerate() {
            if layer.as_ref().is_some_and(|layer| layer.unsent_bytes() > 0) {
                waiting.insert(slot);
            }
        }
        waiting
    }

    /// Bytes that wait in layers.
    pub(crate) fn unsent_in_layers_bytes(&self) -> usize {
        let layers = self.layers.iter().flatten();
        layers.map(Layer::unsent_bytes).sum()
    }

    /// Send what waits in layers; the stream that broke, if one did, and its errno.
    fn flush_layers(&mut self) -> Option<(usize, Errno)> {
        for slot in self.unsent_in_layers().iter() {
            let descriptor = self.sockets.descriptor(slot);
            if let Some(Err(errno)) = self.layer(slot).map(|layer| layer.flush(descriptor)) {
                return Some((slot, errno));
            }
        }
        None
    }

    /// Send what was polled through the stream's layer: all of it, or nothing while earlier bytes wait.
    fn send_in_layer(&mut self, stream: usize) -> ReadResult {
        let descriptor = self.sockets.descriptor(stream);
        let mut bytes = Vec::new();
        self.core
            .rest(stream, |piece| bytes.extend_from_slice(piece));
        let Some(layer) = self.layer(stream) else {
            return Err(Errno::BADF);
        };
        if !layer.flush(descriptor)? {
            return Err(Errno::AGAIN);
        }
        layer.write(&bytes)?;
        layer.flush(descriptor)?;
        Ok(bytes.len())
    }

    /// Send what was polled on a stream's socket.
    pub fn send(&mut self, stream: usize) -> ReadResult {
        if self.layer(stream).is_some() {
            return self.send_in_layer(stream);
        }
        let mut pieces = [IoSlice::new(&[]); sys::MAX_PIECES];
        let mut count = 0;
        self.core.rest(stream, |piece| {
            if count < sys::MAX_PIECES {
                pieces[count] = IoSlice::new(piece);
                count += 1;
            }
        });
        if count == 0 {
            return Ok(0); // the end of plain TCP
        }
        sys::send(self.sockets.descriptor(stream), &pieces[..count])
    }

    /// Note how many of the polled bytes a socket took; true if the stream has sent its last byte.
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        self.sockets.on_sent(stream, count);
        self.core.on_sent(stream, count)
    }

    /// When to call [`Endpoint::transmit`] again, or [`Endpoint::measure`] where frames are sent one by one.
    pub fn timeout_ns(&self) -> Option<u64> {
        let due = [self.core.timeout_ns(), self.sockets.awaited_due_ns()];
        due.into_iter().flatten().min()
    }

    /// Whether all of the peer's bytes have been taken.
    pub fn is_ended(&self) -> bool {
        self.core.is_ended() && self.ready_bytes() == 0
    }

    /// What has happened, see [`Connection::poll_event`]; the socket of a stream that is gone is used no more.
    pub fn poll_event(&mut self) -> Option<Event> {
        let event = self.core.poll_event();
        if let Some(slot) = event.as_ref().and_then(Event::gone_slot) {
            self.detach(slot);
        }
        event
    }

    /// Note that a stream is gone; true if the peer had ended it. What it had not brought through goes over the others.
    ///
    /// On a plain connection the peer's bytes have ended, and ours go on.
    pub fn on_stream_end(&mut self, stream: usize) -> Result<bool, LocalError> {
        if self.core.is_plain() {
            self.release_opening();
            return self.core.on_stream_end(stream);
        }
        self.detach(stream);
        self.core.on_stream_end(stream)
    }

    fn detach(&mut self, stream: usize) {
        self.sockets.detach(stream);
        self.ending.remove(stream);
        if let Some(layer) = self.layers.get_mut(stream) {
            *layer = None;
        }
    }
}
