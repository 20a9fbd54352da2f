//! One direction of a TCP connection: a send buffer, the path, a receive buffer.

use std::collections::VecDeque;
use std::sync::Arc;

use mstcp_proto::Slice;

/// Bytes that wait unsent in the sender's socket: this many seconds of the path's rate, and at least four frames.
const UNSENT_S: f64 = 0.02;
const MIN_UNSENT_BYTES: usize = 4 * 1436;
/// Bytes that wait in the receiver's socket or are on their way to it, at most.
const RECEIVE_BUFFER_BYTES: usize = 1 << 19;
/// Bytes that a relay keeps, at most.
const RELAY_BYTES: usize = 1 << 20;
/// The least that is sent at once, where there is so much.
const SEGMENT_BYTES: usize = 1436;

/// A direction of a stream.
#[derive(Debug, Default)]
pub struct Pipe {
    unsent: VecDeque<Slice>,
    unsent_bytes: usize,
    /// Kept by a relay.
    held: VecDeque<Slice>,
    held_bytes: usize,
    /// On the way, and when each arrives.
    flying: VecDeque<(u64, Slice)>,
    flying_bytes: usize,
    /// In the receiver's socket.
    arrived: VecDeque<Slice>,
    arrived_bytes: usize,
    /// The sender ends TCP's direction after what is unsent; the receiver has seen that.
    pub is_shut: bool,
    /// The end is on its way or there: when it arrives.
    pub end_at_ns: Option<u64>,
    /// When the next bytes may leave.
    pub free_at_ns: u64,
    /// TCP's time until it tries again, in nanoseconds.
    pub retry_ns: u64,
    /// Something was thrown away: nothing after it may arrive.
    pub is_torn: bool,
}

impl Pipe {
    /// How many bytes more the sender's socket takes, on a path of this rate.
    pub fn room(&self, rate_bps: f64) -> usize {
        let most = ((rate_bps / 8.0 * UNSENT_S) as usize).max(MIN_UNSENT_BYTES);
        most.saturating_sub(self.unsent_bytes)
    }

    /// Bytes in the sender's socket that have not left it.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Take bytes from the sender.
    pub fn push(&mut self, bytes: Vec<u8>) {
        self.unsent_bytes += bytes.len();
        let length = bytes.len();
        self.unsent
            .push_back(Slice::new(Arc::new(bytes), 0..length));
    }

    /// Whether something waits to leave the sender and may.
    pub fn wants_to_send(&self) -> bool {
        let ends = self.is_shut && self.end_at_ns.is_none() && !self.is_torn;
        let on_way = self.flying_bytes + self.arrived_bytes;
        (self.unsent_bytes > 0 && on_way < RECEIVE_BUFFER_BYTES)
            || (ends && self.unsent_bytes + self.held_bytes == 0)
    }

    /// Take the next bytes that leave the sender.
    pub fn take_segment(&mut self) -> Option<Slice> {
        let mut piece = self.unsent.pop_front()?;
        while piece.len() < SEGMENT_BYTES {
            match self.unsent.front() {
                Some(next) if piece.len() + next.len() <= SEGMENT_BYTES => {
                    piece.append(next);
                    self.unsent.pop_front();
                }
                _ => break,
            }
        }
        self.unsent_bytes -= piece.len();
        Some(piece)
    }

    /// Let bytes arrive at a time.
    pub fn fly(&mut self, at_ns: u64, piece: Slice) {
        self.flying_bytes += piece.len();
        self.flying.push_back((at_ns, piece));
    }

    /// Whether a relay has room for more.
    pub fn may_hold(&self) -> bool {
        self.held_bytes < RELAY_BYTES
    }

    /// Have a relay take what it has room for, at once.
    pub fn fill_relay(&mut self, relay_bytes: usize) {
        while self.held_bytes < relay_bytes {
            let Some(piece) = self.take_segment() else {
                break;
            };
            self.hold(piece);
        }
    }

    /// Have a relay keep bytes.
    pub fn hold(&mut self, piece: Slice) {
        self.held_bytes += piece.len();
        self.held.push_back(piece);
    }

    /// Take from the relay what goes first.
    pub fn release(&mut self) -> Option<Slice> {
        let piece = self.held.pop_front()?;
        self.held_bytes -= piece.len();
        Some(piece)
    }

    /// Whether the relay has something.
    pub fn has_held(&self) -> bool {
        self.held_bytes > 0
    }

    /// When the next bytes arrive.
    pub fn arrives_at_ns(&self) -> Option<u64> {
        self.flying.front().map(|(at_ns, _)| *at_ns)
    }

    /// When the end of TCP arrives, if nothing is on the way before it.
    pub fn ends_at_ns(&self) -> Option<u64> {
        self.end_at_ns.filter(|_| self.flying.is_empty())
    }

    /// Move what has arrived by now to the receiver's socket; true if something did.
    pub fn arrive(&mut self, now_ns: u64) -> bool {
        let mut came = false;
        while self.arrives_at_ns().is_some_and(|at_ns| at_ns <= now_ns) {
            if let Some((_, piece)) = self.flying.pop_front() {
                self.flying_bytes -= piece.len();
                self.arrived_bytes += piece.len();
                self.arrived.push_back(piece);
                came = true;
            }
        }
        came
    }

    /// Read from the receiver's socket.
    pub fn read(&mut self) -> Option<Slice> {
        let piece = self.arrived.pop_front()?;
        self.arrived_bytes -= piece.len();
        Some(piece)
    }

    /// Whether the receiver has read everything up to the end of TCP.
    pub fn has_ended(&self, now_ns: u64) -> bool {
        self.end_at_ns.is_some_and(|at_ns| at_ns <= now_ns)
            && self.flying.is_empty()
            && self.arrived.is_empty()
    }
}
