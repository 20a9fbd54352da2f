//! What the peer is told of its bytes: that they have come, and how many more may.

use super::{ack_bytes, Receiver, ACK_DELAY_NS, INITIAL_WINDOW_BYTES};
use crate::control::Control;

/// Where round trips are shorter, what waits does so for a process: a loss is repaired before much has come.
const MIN_REPAIR_NS: u64 = 1_000_000;

impl Receiver {
    /// The acknowledgement of everything, for a stream that carries nothing else.
    pub(crate) fn final_ack(&self) -> Control {
        Control::Ack {
            received: self.received_position(),
            limit: self.told_limit,
            streams: Vec::new(),
        }
    }

    /// Whether an acknowledgement should be sent; starts the clock of one that may wait.
    pub fn wants_ack(&mut self, now_ns: u64) -> bool {
        let quarter = self.window_bytes as u64 / 4;
        let much = quarter.min(ack_bytes(self.arrived_bytes));
        let far = self.arrived_bytes - self.told_arrived_bytes >= much
            || self.limit() - self.told_limit >= quarter;
        let any = self.received_position() > self.told_received
            || self.limit() > self.told_limit
            || self
                .streams
                .iter()
                .any(|stream| stream.complete > stream.told);
        if self.ack_now || far {
            return true;
        }
        if !any {
            self.ack_at_ns = None;
            return false;
        }
        now_ns >= *self.ack_at_ns.get_or_insert(now_ns + ACK_DELAY_NS)
    }

    /// Double the window, as far as may be, if the application takes more than a quarter of it in a round trip (as TCP's receivers
    /// do, for senders that double what they send in the next: Fisk and Feng, "Dynamic right-sizing in TCP", 2001), or if half of it
    /// waits for what a path has lost.
    pub(crate) fn grow(&mut self, now_ns: u64, round_trip_ns: u64) {
        let (since_ns, consumed) = self.grown;
        let elapsed_ns = now_ns.saturating_sub(since_ns);
        if round_trip_ns == 0 || elapsed_ns < round_trip_ns {
            return;
        }
        self.grown = (now_ns, self.consumed);
        let in_round_trip = u128::from(self.consumed - consumed) * u128::from(round_trip_ns);
        let is_taken = in_round_trip > u128::from(elapsed_ns) * (self.window_bytes / 4) as u128;
        let is_repairing = round_trip_ns >= MIN_REPAIR_NS
            && self.reassembly.waiting_bytes() > self.window_bytes / 2;
        if is_taken || is_repairing {
            self.window_bytes = (2 * self.window_bytes)
                .min(self.reorder_limit_bytes)
                .max(self.window_bytes);
        }
    }

    /// When [`Receiver::wants_ack`] should be asked again.
    pub fn ack_at_ns(&self) -> Option<u64> {
        self.ack_at_ns
    }

    /// Make the acknowledgement of all there is.
    pub fn make_ack(&mut self) -> Control {
        self.ack_now = false;
        self.ack_at_ns = None;
        self.told_limit = self.limit();
        self.note_promise();
        self.told_received = self.received_position();
        self.told_arrived_bytes = self.arrived_bytes;
        let mut streams = Vec::new();
        for stream in &mut self.streams {
            if stream.complete > stream.told {
                stream.told = stream.complete;
                streams.push((stream.id, stream.complete));
            }
        }
        Control::Ack {
            received: self.told_received,
            limit: self.told_limit,
            streams,
        }
    }

    /// Make sure that all streams' counts are told again: what told them may have been lost with a stream.
    pub fn tell_again(&mut self) {
        self.ack_now = true;
        for stream in self.streams.iter_mut().filter(|stream| stream.alive) {
            stream.told = 0;
            stream.acks_told = 0;
        }
    }

    fn limit(&self) -> u64 {
        let more = (self.window_bytes - INITIAL_WINDOW_BYTES) as u64;
        let more = match &self.share {
            None => more,
            // A peer that sends nothing needs no room.
            Some(_) if self.reassembly.last_end() == 0 => 0,
            Some(share) => share.most(more),
        };
        self.told_limit
            .max(self.consumed + INITIAL_WINDOW_BYTES as u64 + more)
    }

    /// Tell the budget what the peer may still send, beyond what each may from the start.
    pub(super) fn note_promise(&mut self) {
        if let Some(share) = &mut self.share {
            let free = self.consumed + INITIAL_WINDOW_BYTES as u64;
            share.set(self.told_limit.saturating_sub(free));
        }
    }

    fn received_position(&self) -> u64 {
        self.reassembly.next_offset() + u64::from(self.is_ended())
    }
}

#[cfg(test)]
mod tests {
    use super::Receiver;
    use crate::slice::Slice;

    const MIB: usize = 1 << 20;

    /// The windows of round trips in each of which the application takes this part of the window.
    fn windows(part: f64) -> Vec<usize> {
        let mut receiver = Receiver::new(1, 1000, 64 * MIB);
        let windows = (1..5).map(|round_trip| {
            receiver.on_consumed((receiver.window_bytes as f64 * part) as usize);
            receiver.grow(round_trip * 1_000_000, 1_000_000);
            receiver.window_bytes / MIB
        });
        windows.collect()
    }

    #[test]
    fn a_window_that_holds_the_peer_up_grows_as_far_as_it_may() {
        assert_eq!(windows(1.0), [32, 64, 64, 64]);
        assert_eq!(windows(0.25), [16, 16, 16, 16]);
    }

    #[test]
    fn a_window_of_which_half_waits_for_lost_bytes_grows() {
        let mut receiver = Receiver::new(1, 1000, 64 * MIB);
        let ahead = Slice::copy_of(&vec![0; 8 * MIB + 1]);
        receiver.reassembly.insert(1, ahead, &mut Vec::new());
        receiver.grow(1_000_000, 50_000);
        assert_eq!(receiver.window_bytes, 16 * MIB, "over the loopback");
        receiver.grow(2_000_000, 1_000_000);
        assert_eq!(receiver.window_bytes, 32 * MIB);
    }

    #[test]
    fn a_window_is_no_larger_than_was_asked_for() {
        let mut receiver = Receiver::new(1, 1000, MIB);
        receiver.on_consumed(MIB);
        receiver.grow(1_000_000, 1_000_000);
        assert_eq!(receiver.window_bytes, MIB);
    }
}
