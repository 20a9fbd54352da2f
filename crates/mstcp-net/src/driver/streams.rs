//! Streams of a connection that come, change and go.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use mstcp_proto::frame::HEADER_BYTES;
use mstcp_proto::handshake::{ClientHello, Proof};
use mstcp_proto::LocalError;
use rustix::io::Errno;

use super::{Action, Driver, Event, Loss, NewStream, OpenSlot, Side, Slot, StreamId};
use crate::config::{check_announced, StreamSpec};
use crate::dial;
use crate::error::Error;
use crate::inbox::ReadError;
use crate::incoming::JoinedStream;
use crate::layers::Layer;
use crate::memory::OwnMemory;

const ANY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Driver {
    /// Open a further stream, and again whenever it is lost. [`Event::StreamOpened`] tells when it carries bytes.
    ///
    /// # Errors
    /// [`Error::Config`]: this is the server's end, or the source does not fit the destination.
    pub fn add_stream(&mut self, now_ns: u64, spec: StreamSpec) -> Result<StreamId, Error> {
        self.add_stream_over(now_ns, spec, None)
    }

    /// As [`Driver::add_stream`], over a socket that is bound already if one is given.
    ///
    /// # Errors
    /// As above.
    pub fn add_stream_over(
        &mut self,
        now_ns: u64,
        spec: StreamSpec,
        given: Option<OwnedFd>,
    ) -> Result<StreamId, Error> {
        let Side::Client(dialler) = &mut self.side else {
            let problem = "streams are added by the end that opened the connection";
            return Err(Error::Config(problem.to_owned()));
        };
        if self.is_closed || self.over.is_some() {
            return Err(Error::Closed);
        }
        let stream = dialler.add(now_ns, spec, given)?;
        self.due(now_ns);
        Ok(stream)
    }

    /// Take a stream out once the peer has what it carried, and open it no more; the others go on.
    ///
    /// # Errors
    /// It is the last one, or there is none of this number.
    pub fn remove_stream(&mut self, now_ns: u64, stream: StreamId) -> Result<(), Error> {
        self.take_out(stream)?;
        self.settle(now_ns);
        Ok(())
    }

    fn take_out(&mut self, stream: StreamId) -> Result<(), Error> {
        let place = self.place_of(stream);
        if let Some((slot, _)) = place {
            self.endpoint.core.remove_stream(slot)?;
            self.slots[slot].is_removed = true;
        }
        let is_dialled = match &mut self.side {
            Side::Client(dialler) => dialler.remove(stream),
            Side::Server(_) | Side::Plain(_) => false,
        };
        self.are_sockets_new = true;
        match place.is_some() || is_dialled {
            true => Ok(()),
            false => Err(LocalError::NoSuchStream(stream.index()).into()),
        }
    }

    /// Announce these addresses to the client (servers only), in place of [`crate::ServerConfig::announced`].
    ///
    /// # Errors
    /// [`Error::Config`]: they are too many, or this is the client's end.
    pub fn announce(&mut self, now_ns: u64, addresses: Vec<SocketAddr>) -> Result<(), Error> {
        if let Side::Client(_) = self.side {
            return Err(Error::Config("the server announces addresses".to_owned()));
        }
        check_announced(&addresses)?;
        self.endpoint.core.announce(addresses);
        self.settle(now_ns);
        Ok(())
    }

    /// Have streams to the addresses that the server announces, as many as are wanted, and none to others that it did.
    pub(super) fn follow_announced(&mut self, now_ns: u64, addresses: &[SocketAddr]) {
        if let Side::Client(dialler) = &mut self.side {
            for withdrawn in dialler.follow_announced(now_ns, addresses) {
                // The last one stays, and is not opened again.
                let _ = self.take_out(withdrawn);
            }
        }
    }

    /// Pace streams at other goodputs in bit/s, also once they are opened again; none: as TCP's congestion control allows.
    ///
    /// # Errors
    /// A rate is none, or all are 0.
    pub fn set_rates(
        &mut self,
        now_ns: u64,
        rates: &[(StreamId, Option<f64>)],
    ) -> Result<(), Error> {
        let mut specs: Vec<StreamSpec> = self.slots.iter().map(|slot| slot.spec).collect();
        for (slot, spec) in self.slots.iter().zip(&mut specs) {
            if let Some((_, rate_bps)) = rates.iter().find(|(stream, _)| *stream == slot.stream) {
                spec.rate_bps = *rate_bps;
                spec.check()?;
            }
        }
        self.set_weights(&specs)?;
        for (stream, rate_bps) in rates {
            if let Side::Client(dialler) = &mut self.side {
                if let Some(Some(spec)) = dialler.specs.get_mut(stream.index()) {
                    spec.rate_bps = *rate_bps;
                }
            }
            if let Some(at) = self.slots.iter().position(|slot| slot.stream == *stream) {
                self.slots[at].spec = specs[at];
                self.pace(at)?;
            }
        }
        self.settle(now_ns);
        Ok(())
    }

    /// Use a stream by another priority, both ways: see [`StreamSpec::priority`].
    ///
    /// # Errors
    /// There is no such stream.
    pub fn set_priority(
        &mut self,
        now_ns: u64,
        stream: StreamId,
        priority: u8,
    ) -> Result<(), Error> {
        let slot = self.slots.iter().position(|slot| slot.stream == stream);
        let slot = slot.ok_or(LocalError::NoSuchStream(stream.index()))?;
        self.slots[slot].spec.priority = priority;
        self.endpoint.core.set_priority(slot, priority.into())?;
        self.settle(now_ns);
        Ok(())
    }

    fn set_weights(&mut self, specs: &[StreamSpec]) -> Result<(), Error> {
        let weights: Vec<f64> = specs.iter().map(StreamSpec::weight).collect();
        Ok(self.endpoint.core.set_weights(&weights)?)
    }

    pub(super) fn pace(&mut self, slot: usize) -> Result<(), Error> {
        let Some(open) = &self.slots[slot].open else {
            return Ok(());
        };
        let (descriptor, rate_bps) = (open.descriptor.as_raw_fd(), self.slots[slot].spec.rate_bps);
        let (payload_bytes, header_bytes) =
            (self.frame_payload_bytes, self.slots[slot].header_bytes);
        let endpoint = &mut self.endpoint;
        Ok(endpoint.attach(slot, descriptor, rate_bps, payload_bytes, header_bytes)?)
    }

    pub(super) fn open_first(&mut self, now_ns: u64, new: NewStream) {
        self.is_open = true;
        self.actions.push_back(Action::Opened);
        let spec = new.spec;
        let result = self.put(now_ns, 0, new);
        let weighed = self.set_weights(&[spec]);
        // The stream is there, and so is the range of its priority.
        let _ = (self.endpoint.core).note_priority(0, spec.priority.into());
        if result.and(weighed).is_err() {
            self.lose(now_ns, 0, Loss::Ended);
        }
    }

    /// Have a further stream, whose first frame is to be this CONFIRM where it is the peer that opened it.
    pub(super) fn add(&mut self, now_ns: u64, id: u32, new: NewStream, confirm: Option<Proof>) {
        let added = self.endpoint.core.add_stream(id, new.spec.weight());
        self.add_at(now_ns, added, new, confirm);
    }

    /// Have a further stream of a client, which says this hello first.
    pub(super) fn greet_on(&mut self, now_ns: u64, mut new: NewStream, greeting: ClientHello) {
        new.greets = true;
        let added = self.endpoint.core.join(greeting, new.spec.weight());
        self.add_at(now_ns, added, new, None);
    }

    fn add_at(
        &mut self,
        now_ns: u64,
        added: Result<usize, LocalError>,
        new: NewStream,
        confirm: Option<Proof>,
    ) {
        let core = &mut self.endpoint.core;
        // A connection that has 64 closes the socket, and its peer tries later.
        let Ok(slot) = added else {
            return;
        };
        // The stream is there, and so is the range of its priority.
        let _ = core.note_priority(slot, new.spec.priority.into());
        if let Some(confirm) = confirm {
            let _ = core.expect_confirm(slot, confirm);
        }
        if self.put(now_ns, slot, new).is_err() {
            self.lose(now_ns, slot, Loss::Ended);
        }
    }

    pub(super) fn put(&mut self, now_ns: u64, slot: usize, new: NewStream) -> Result<(), Error> {
        let parts = new.parts;
        let (local, peer) = match (&self.side, dial::addresses(&parts.socket)) {
            // Its peer may be gone already: reading tells.
            (Side::Plain(_), Err(_)) => (ANY, ANY),
            (_, addresses) => addresses?,
        };
        let layer_bytes = parts.layer.as_ref().map_or(0, Layer::overhead_bytes);
        let frame_bytes = match self.endpoint.core.is_plain() {
            true => 0,
            false => HEADER_BYTES,
        };
        let stream = new.stream;
        let entry = Slot {
            stream,
            spec: new.spec,
            local,
            peer,
            header_bytes: frame_bytes + layer_bytes,
            is_removed: false,
            open: Some(OpenSlot {
                socket: new.socket,
                descriptor: parts.socket,
                has_ended: false,
                greets: new.greets,
                route: new.route,
            }),
        };
        match self.slots.get_mut(slot) {
            Some(place) => *place = entry,
            None => self.slots.push(entry),
        }
        self.are_sockets_new = true;
        self.pace(slot)?;
        if let Some(layer) = parts.layer {
            self.endpoint.protect(slot, layer)?;
        }
        let opened = Event::StreamOpened {
            stream,
            local,
            peer,
        };
        self.actions.push_back(Action::Event(opened));
        self.endpoint.receive(slot, &parts.behind)?;
        if parts.has_ended {
            self.end_stream(now_ns, slot);
        }
        Ok(())
    }

    /// Note that the hello of a stream was answered.
    pub(super) fn note_joined(&mut self, slot: usize) {
        if let Some(open) = self.slots[slot].open.as_mut() {
            open.greets = false;
            if let Side::Client(dialler) = &mut self.side {
                dialler.note_joined(self.slots[slot].stream);
            }
        }
    }

    /// Let a stream join that a client has opened.
    pub(super) fn join(&mut self, now_ns: u64, joined: JoinedStream) {
        if self.over.is_some() {
            return;
        }
        let (id, confirm) = (joined.hello.stream_id, joined.confirm);
        if id == 0 {
            // The client says the first hello again, on another path.
            self.lose(now_ns, 0, Loss::Silent);
        }
        self.last_socket += 1;
        let early = joined.hello.early_data.clone();
        let new = NewStream::accepted(self.streams_joined, self.last_socket, joined);
        self.streams_joined += 1;
        self.add(now_ns, id, new, Some(confirm));
        self.endpoint.receive_early(&early);
    }

    /// Go on without a stream; a client opens it again unless the peer has ended it.
    pub(super) fn lose(&mut self, now_ns: u64, slot: usize, loss: Loss) {
        let is_proper = self.endpoint.on_stream_end(slot).unwrap_or(false);
        let loss = if is_proper { Loss::Finished } else { loss };
        self.let_go(now_ns, slot, loss);
    }

    pub(super) fn let_go(&mut self, now_ns: u64, slot: usize, loss: Loss) {
        self.let_go_by(now_ns, slot, loss, Error::NoHello);
    }

    /// As [`Driver::let_go`], of a stream whose hello may not have been answered: this is why.
    pub(super) fn let_go_by(&mut self, now_ns: u64, slot: usize, loss: Loss, unanswered: Error) {
        let Some(entry) = self.slots.get_mut(slot) else {
            return;
        };
        let Some(open) = entry.open.take() else {
            return;
        };
        self.are_sockets_new = true;
        let stream = entry.stream;
        let loss = match entry.is_removed && loss != Loss::Finished {
            true => Loss::Removed,
            false => loss,
        };
        let mut reopens = false;
        if loss != Loss::Finished {
            dial::reset_on_close(&open.descriptor);
            if let (Side::Client(dialler), Some((route, took_ns))) = (&mut self.side, open.route) {
                reopens = dialler.specs[stream.index()].is_some();
                match open.greets {
                    true => dialler.dial_again(now_ns, stream, took_ns, unanswered),
                    false => dialler.open(now_ns, stream, route, took_ns, true),
                }
                dialler.on_lost(now_ns, stream);
            }
        }
        let lost = Event::StreamLost {
            stream,
            reopens,
            loss,
        };
        self.actions.push_back(Action::Event(lost));
        self.follow_dialler(now_ns);
    }

    /// Do what follows from the end of a stream's socket.
    pub(super) fn end_stream(&mut self, now_ns: u64, slot: usize) {
        if !self.endpoint.core.is_plain() {
            return self.lose(now_ns, slot, Loss::Ended);
        }
        // The peer's bytes have ended, and ours go on.
        let _ = self.endpoint.on_stream_end(slot);
        if let Some(open) = self.slots.get_mut(slot).and_then(|slot| slot.open.as_mut()) {
            open.has_ended = true;
            self.are_sockets_new = true;
        }
    }

    /// Do what follows from an error of a stream's socket; what it brought before is read: it may say why.
    pub(super) fn break_stream(&mut self, now_ns: u64, slot: usize, errno: Errno) {
        if self.over.is_some() || !self.endpoint.core.alive().contains(slot) {
            return;
        }
        if self.endpoint.core.is_plain() {
            let has_all = self.endpoint.core.is_finished() && self.unacknowledged_bytes() == 0;
            return self.finish(match self.is_closed && has_all {
                true => Ok(()), // the peer closed first, but has everything
                false => Err(errno.into()),
            });
        }
        loop {
            match self.endpoint.read(&mut OwnMemory, slot) {
                Ok(Ok(1..)) => {}
                Ok(_) => break,
                Err(ReadError::Protocol(error)) => return self.refuse(now_ns, error),
                Err(ReadError::Memory(never)) => match never {},
            }
        }
        if self.endpoint.core.closed_by_peer().is_none() {
            self.lose(now_ns, slot, Loss::Broken(errno));
        }
    }
}
