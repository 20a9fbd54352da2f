//! What a client sends before a hello is answered: the hello, on stream 0 with the first bytes, then data frames.

use super::Sender;
use crate::control::Control;
use crate::frame::encode_control;
use crate::scheduler::StreamSet;

/// How far a client is that opens a connection on stream 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    /// Nothing is sent.
    Silent,
    /// The hello was said: data frames may follow it, and nothing else.
    Greeting,
    /// The hello was answered.
    #[default]
    Open,
}

impl Sender {
    /// Send nothing before [`Sender::say`].
    pub(crate) fn hold(&mut self) {
        self.phase = Phase::Silent;
    }

    /// Take the first bytes that were written, `most` at most, to go with a hello; those that went with one before at least.
    pub(crate) fn take_early(&mut self, most: usize) -> Vec<u8> {
        let length = self.buffer.end().min(most as u64).max(self.early_bytes);
        let mut early = Vec::with_capacity(length as usize);
        (self.buffer).pieces(0, length as usize, |piece| early.extend_from_slice(piece));
        self.early_bytes = length;
        self.next_offset = self.next_offset.max(length);
        early
    }

    /// Send a hello on stream 0.
    pub(crate) fn say(&mut self, hello: &[u8]) {
        let out = &mut self.streams[0].out;
        out.clear();
        out.header.extend_from_slice(hello);
        self.phase = Phase::Greeting;
    }

    /// Send whatever there is from now on, but on stream 0 this CONFIRM and acknowledgement first: the answer says that what went
    /// with the hello has come.
    pub(crate) fn release(&mut self, mut confirm: Vec<u8>, ack: &Control) {
        encode_control(&mut confirm, ack);
        self.ack = None;
        self.streams[0].note_ack_sent(self.views_ns);
        self.phase = Phase::Open;
        self.confirm(0, confirm);
        self.acknowledged = self.acknowledged.max(self.early_bytes);
        self.buffer.release(self.acknowledged);
    }

    /// Send a hello on a stream that joins, and data frames behind it, nothing else before [`Sender::confirm`].
    pub(crate) fn greet(&mut self, slot: usize, hello: &[u8]) {
        self.streams[slot].out.header.extend_from_slice(hello);
        self.greeting.insert(slot);
        self.set_unconfirmed(slot, true);
    }

    /// Send this CONFIRM on a stream whose hello was answered.
    pub(crate) fn confirm(&mut self, slot: usize, confirm: Vec<u8>) {
        self.greeting.remove(slot);
        self.set_unconfirmed(slot, false);
        self.streams[slot].confirm = confirm;
        self.confirming.insert(slot);
    }

    /// The streams whose hellos are not answered: they carry data frames alone.
    pub(crate) fn greeting(&self) -> StreamSet {
        self.greeting
    }

    /// Draw the next frame; behind CONFIRM, in the same segment, where that has not gone.
    pub(super) fn draw_next(&mut self, now_ns: u64) -> Option<usize> {
        if self.phase == Phase::Silent {
            return None;
        }
        for slot in self.confirming.and(self.with_room).iter() {
            let stream = &mut self.streams[slot];
            stream.out.clear();
            stream.out.header.extend_from_slice(&stream.confirm);
        }
        self.draw(now_ns).or_else(|| self.begun_frame())
    }
}
