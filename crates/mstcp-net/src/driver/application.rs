//! What the application wants of a connection: to write, to read, and to end it.

use std::sync::Arc;

use mstcp_proto::{code, SharedBytes, Slice};

use super::{Action, Driver};
use crate::error::Error;
use crate::inbox::ReadTarget;

impl Driver {
    /// Send bytes; how many were taken: none while the send buffer is full, until [`Action::ResumeWriting`].
    ///
    /// # Errors
    /// Why the connection is over; [`Error::Closed`] after [`Driver::end`] or [`Driver::close`].
    pub fn write(&mut self, now_ns: u64, data: &[u8]) -> Result<usize, Error> {
        self.check_writing()?;
        let queued = self.endpoint.core.queued_bytes();
        let count = self
            .send_buffer_bytes
            .saturating_sub(queued)
            .min(data.len());
        if count > 0 {
            self.endpoint.core.write(&data[..count])?;
            self.settle(now_ns);
        }
        if count < data.len() {
            self.pause();
        }
        Ok(count)
    }

    /// As [`Driver::write`], all of it and without a copy; false: the send buffer is full.
    ///
    /// # Errors
    /// As above.
    pub fn write_shared(&mut self, now_ns: u64, data: &SharedBytes) -> Result<bool, Error> {
        self.check_writing()?;
        let queued = self.endpoint.core.queued_bytes();
        let length = (**data).as_ref().len();
        // The core takes what is larger than its queue where that is empty.
        let is_large = length > self.send_buffer_bytes;
        let has_room = queued == 0 || !is_large && queued < self.send_buffer_bytes;
        if has_room {
            self.endpoint.core.write_shared(Arc::clone(data))?;
            self.settle(now_ns);
        } else {
            self.awaits_empty |= is_large;
            self.pause();
        }
        Ok(has_room)
    }

    fn check_writing(&self) -> Result<(), Error> {
        match &self.over {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(())) => Err(Error::Closed),
            None if self.has_ended_writing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    /// Have who writes wait for room.
    fn pause(&mut self) {
        let is_full = self.endpoint.core.queued_bytes() > 0 && self.over.is_none();
        if is_full && !self.is_paused {
            self.is_paused = true;
            self.actions.push_back(Action::PauseWriting);
            self.resume();
        }
    }

    /// Send the end after what was written; receiving goes on.
    pub fn end(&mut self, now_ns: u64) {
        if !self.has_ended_writing {
            self.has_ended_writing = true;
            self.endpoint.core.end();
            self.settle(now_ns);
        }
    }

    /// Send what was written and the end, then close: [`Action::Ended`] tells when the peer has everything. Nothing more is
    /// received.
    pub fn close(&mut self, now_ns: u64) {
        if self.is_closed || self.over.is_some() {
            return;
        }
        self.is_closed = true;
        if !self.is_open {
            self.finish(Err(Error::Closed));
        } else {
            self.end(now_ns);
            self.begin_to_linger(now_ns);
        }
        self.settle(now_ns);
    }

    /// Close at once; the peer is told why, and sees a broken connection.
    pub fn abort(&mut self, now_ns: u64, reason: &str) {
        self.abort_by(now_ns, code::ABORTED, reason);
    }

    /// As [`Driver::abort`], by another [`code`].
    pub fn abort_by(&mut self, now_ns: u64, code: u16, reason: &str) {
        if self.over.is_none() {
            if self.is_open {
                self.endpoint.core.close(code, reason);
                // What cannot be said is not.
                let _ = self.endpoint.transmit(now_ns);
            }
            self.finish(Err(Error::Closed));
            self.settle(now_ns);
        }
    }

    /// Copy bytes that are in order to where they are wanted; how many: 0 if there are none now, or no more at all (see
    /// [`Driver::is_ended`]).
    pub fn read(&mut self, now_ns: u64, buffer: &mut [u8]) -> usize {
        let mut target = ReadTarget::of_bytes(buffer);
        self.endpoint.take_into(&mut target);
        let count = target.filled();
        self.note_taken(now_ns);
        count
    }

    /// Take a piece of what is in order as it was read, without a copy; none: see [`Driver::read`].
    pub fn take(&mut self, now_ns: u64) -> Option<Slice> {
        self.endpoint.reclaim();
        let slice = self.endpoint.take_one();
        self.note_taken(now_ns);
        slice
    }

    /// Whether the send buffer is full: see [`Action::PauseWriting`].
    pub fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Bytes that [`Driver::read`] would return.
    pub fn ready_bytes(&self) -> usize {
        self.endpoint.ready_bytes()
    }

    /// Whether all of the peer's bytes were read.
    pub fn is_ended(&self) -> bool {
        self.endpoint.is_ended()
    }

    /// How the connection ended, once it has.
    pub fn result(&self) -> Option<&Result<(), Error>> {
        self.over.as_ref()
    }

    fn note_taken(&mut self, now_ns: u64) {
        self.has_told_bytes = self.endpoint.ready_bytes() > 0;
        self.settle(now_ns);
    }
}
