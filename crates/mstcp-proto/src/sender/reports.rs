//! What the peer reports: frames that have come, bytes that need not be kept any more.

use super::stream::OutgoingFrame;
use super::Sender;
use crate::error::RemoteError;

impl Sender {
    /// Take an acknowledgement.
    pub fn on_ack(
        &mut self,
        now_ns: u64,
        received: u64,
        limit: u64,
        streams: &[(u32, u64)],
    ) -> Result<(), RemoteError> {
        if received > self.next_offset + u64::from(self.fin_sent) {
            return Err(RemoteError::BadAck);
        }
        self.acknowledged = self.acknowledged.max(received);
        self.limit = self.limit.max(limit);
        self.cuts.release(self.acknowledged);
        while (self.overtaken.first_key_value()).is_some_and(|(end, _)| *end <= self.acknowledged) {
            self.overtaken.pop_first();
        }
        self.release_acknowledged();
        for &(id, frames) in streams {
            let Some(slot) = self.slot_of(id) else {
                continue;
            };
            let stream = &mut self.streams[slot];
            let new = frames.saturating_sub(stream.reported);
            if new > stream.in_flight.len() as u64 {
                return Err(RemoteError::BadAck);
            }
            if new > 0 {
                let newest_ns = stream.in_flight[new as usize - 1].left_ns;
                let drained = stream.in_flight.drain(..new as usize);
                let bytes = drained.map(|frame| frame.span.length as u64).sum();
                stream.flight.on_reported(bytes, newest_ns);
                self.has_reports = true;
                stream.reported = frames;
                self.note_progress(slot, now_ns);
            }
        }
        Ok(())
    }

    /// Forget what the peer has. A frame that another stream has overtaken still must leave whole: its rest is copied.
    fn release_acknowledged(&mut self) {
        let mut end = self.acknowledged.min(self.next_offset);
        let drafted = self.draft.map(|(slot, _)| slot);
        if let Some(span) = drafted.and_then(|slot| self.streams[slot].out.span) {
            end = end.min(span.offset);
        }
        for slot in (0..self.streams.len()).filter(|slot| Some(*slot) != drafted) {
            let out = &self.streams[slot].out;
            let taken = out.taken.saturating_sub(out.header.len()) as u64;
            if out.span.is_some_and(|span| span.offset + taken < end) {
                let mut header = Vec::with_capacity(out.rest());
                self.rest(slot, |piece| header.extend_from_slice(piece));
                self.streams[slot].out = OutgoingFrame {
                    header,
                    ..OutgoingFrame::default()
                };
            }
        }
        self.buffer.release(end);
    }

    pub(super) fn release_taken(&mut self) {
        let begun = self.streams.iter().filter(|stream| stream.out.rest() > 0);
        let begun = begun.filter_map(|stream| stream.out.span.map(|span| span.offset));
        self.acknowledged = begun.min().unwrap_or(self.next_offset);
        self.buffer.release(self.acknowledged);
        for stream in &mut self.streams {
            stream.in_flight.clear();
        }
        if self.streams.iter().all(|stream| stream.fin_begun) {
            self.acknowledged = self.next_offset + 1;
        }
    }
}
