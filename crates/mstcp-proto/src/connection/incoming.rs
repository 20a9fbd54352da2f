//! What comes on the streams: bytes for the application, and what the peer says.

use super::Connection;
use crate::control::Control;
use crate::error::{Error, RemoteError};
use crate::frame::Expected;
use crate::scheduler::StreamSet;
use crate::slice::Slice;
use crate::state::Event;

impl Connection {
    /// Take bytes of a stream; append to `out` the application bytes that are now in order, which count as taken.
    ///
    /// After a remote error the connection must not be used again.
    pub fn on_received(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut slices = Vec::new();
        self.receive(stream, data, None, &mut slices)?;
        for slice in &slices {
            out.extend_from_slice(slice);
            self.on_consumed(slice.len());
        }
        Ok(())
    }

    /// Take bytes of a stream in memory that may be kept; append to `out` what is now in order, without copying.
    ///
    /// What the application then takes is reported by [`Connection::on_consumed`].
    pub fn on_slice(
        &mut self,
        stream: usize,
        slice: &Slice,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.receive(stream, slice, Some(slice), out)
    }

    /// Take bytes of a stream; append to `out` what is now in order, copied.
    pub fn on_copied(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.receive(stream, data, None, out)
    }

    /// How many bytes can be read from a stream to where the application wants the next ones: they are the payload of a frame
    /// whose header has come.
    pub fn next_in_place(&self, stream: usize) -> usize {
        self.receiver.next_in_place(stream)
    }

    /// Whether a stream brings nothing next but payload of a large frame.
    pub fn expects_payload(&self, stream: usize) -> bool {
        self.receiver.expects_payload(stream)
    }

    /// Take note of this many bytes, [`Connection::next_in_place`] at most, that were read to where the application wants them;
    /// append to `out` what is in order after them. The bytes count as taken by the application.
    pub fn on_in_place(
        &mut self,
        stream: usize,
        count: usize,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        self.receiver.on_in_place(stream, count, out)?;
        self.receiver.on_consumed(count);
        if self.alive().contains(stream) && count > 0 {
            self.peer_activity.hear(stream);
        }
        Ok(())
    }

    /// What is likely to come next on a stream whose frames are large; see
    /// [`Parser::expected`](crate::frame::Parser::expected). On a plain connection any number of bytes, which all can stay where
    /// they are read to.
    pub fn expected(&self, stream: usize) -> Option<Expected> {
        self.receiver.expected(stream)
    }

    pub(super) fn receive(
        &mut self,
        stream: usize,
        data: &[u8],
        shared: Option<&Slice>,
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        if self.opening.is_some() {
            return self.on_answer(stream, data, out);
        }
        if let Some(at) = self.joining.iter().position(|one| one.slot == stream) {
            return self.on_join_answer(at, data, out);
        }
        let mut controls = Vec::new();
        let had_last = self.receiver.has_last(stream);
        match self
            .receiver
            .on_received(stream, data, shared, out, &mut controls)
        {
            Err(Error::Remote(RemoteError::NotConfirmed)) => {
                self.give_up(stream);
                return Ok(());
            }
            result => result?,
        }
        if self.alive().contains(stream) && !data.is_empty() {
            self.peer_activity.hear(stream);
            let is_unconfirmed = self.sender.id(stream) > 0 && self.receiver.awaits_confirm(stream);
            self.sender.set_unconfirmed(stream, is_unconfirmed);
        }
        if self.receiver.has_last(stream) && !had_last && !self.trusting {
            // The peer takes the stream out: so do we, in the other direction.
            let _ = self.sender.retire(stream);
        }
        for control in controls {
            self.on_control(stream, control)?;
        }
        Ok(())
    }

    fn on_control(&mut self, slot: usize, control: Control) -> Result<(), RemoteError> {
        match control {
            Control::Ack {
                received,
                limit,
                streams,
            } => self.sender.on_ack(self.now_ns, received, limit, &streams)?,
            Control::Close { code, reason } => self.closed = Some((code, reason)),
            Control::Ping(token) => {
                let back = StreamSet::only(slot);
                self.sender.push_control(Control::Pong(token), back);
                self.timers.is_asked = true;
            }
            Control::Pong(_) => self.sender.note_pong(self.now_ns, slot),
            Control::Seen(streams) => self.sender.on_seen(self.now_ns, &streams)?,
            Control::Gone(id) => {
                if let Some(slot) = self.sender.slot_of(id) {
                    self.give_up(slot);
                }
            }
            Control::Status { id, priority } => {
                if let Some(slot) = self.sender.slot_of(id) {
                    // The stream is there.
                    let _ = self.sender.set_priority(slot, priority);
                }
            }
            Control::Addresses { number, addresses } if number > self.heard_number => {
                self.heard_number = number;
                self.events.push_back(Event::Addresses(addresses));
            }
            Control::Addresses { .. } => {}
            Control::Fin { .. } | Control::Last | Control::Confirm(_) => {}
        }
        Ok(())
    }
}
