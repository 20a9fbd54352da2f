//! What the sender knows of one stream.

use std::collections::VecDeque;
use std::ops::Range;

use super::flight::FlightLimit;
use super::Sent;
use crate::state::StreamState;

/// A range of the connection's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ByteRange {
    pub(super) offset: u64,
    pub(super) length: usize,
}

impl ByteRange {
    pub(super) fn end(self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A data frame that a stream took and the peer has not reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) span: ByteRange,
    /// When the stream took it.
    pub(super) taken_ns: u64,
    /// How many bytes the stream has taken with it.
    pub(super) through: u64,
    /// Another stream carries its bytes as well.
    pub(super) is_elsewhere: bool,
    /// Its bytes were queued for the others: who carries them next answers for them.
    pub(super) is_queued: bool,
    /// When it leaves the host, as far as is known.
    pub(super) left_ns: u64,
}

/// A frame that is being sent.
#[derive(Debug, Default, Clone)]
pub(super) struct OutgoingFrame {
    pub(super) header: Vec<u8>,
    pub(super) span: Option<ByteRange>,
    pub(super) taken: usize,
    pub(super) ends_stream: bool,
}

impl OutgoingFrame {
    pub(super) fn rest(&self) -> usize {
        self.header.len() + self.span.map_or(0, |span| span.length) - self.taken
    }

    /// Be ready for the next frame; the header's memory is kept.
    pub(super) fn clear(&mut self) {
        self.header.clear();
        self.span = None;
        self.taken = 0;
        self.ends_stream = false;
    }
}

/// A stream and what is on its way over it.
#[derive(Debug, Default)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) state: StreamState,
    /// It is to be taken out, also when it stalls meanwhile.
    pub(super) retires: bool,
    /// Streams of the lowest value that work are used.
    pub(super) priority: u32,
    pub(super) out: OutgoingFrame,
    /// The CONFIRM that is to go before the next frame.
    pub(super) confirm: Vec<u8>,
    /// Data frames sent on it that the peer has not reported, in their order, and how many it has.
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) reported: u64,
    /// Bytes in all data frames sent on it.
    pub(super) taken_bytes: u64,
    /// How many frames, counted from the stream's first, are known to have left the host, and when that was looked at last.
    left: u64,
    looked_ns: u64,
    /// The numbers of frames, counted from the stream's first: those before the one, and those from the other on, need not be
    /// looked at again: the peer has them, or another stream carries them.
    pub(super) settled_before: u64,
    pub(super) settled_from: u64,
    pub(super) flight: FlightLimit,
    /// Since when one of these frames waits, and when anything of the stream was reported last.
    pub(super) progress_ns: u64,
    pub(super) told_ns: u64,
    /// ACK frames sent on it, those that the peer has seen, and since when one that it has not waits.
    pub(super) acks_sent: u64,
    pub(super) acks_seen: u64,
    pub(super) acks_unseen_ns: Option<u64>,
    /// Since when a PING waits for its PONG.
    pub(super) pinged_ns: Option<u64>,
    /// When it took a data frame first since it was found stalled, for want of others.
    pub(super) taken_stalled_ns: Option<u64>,
    /// When it was found stalled, and how often it had only been slow: each time doubles what it is given.
    pub(super) stalled_ns: u64,
    pub(super) slowness: u32,
    pub(super) fin_begun: bool,
    pub(super) sent: Sent,
}

impl Stream {
    /// Note a data frame that it took.
    pub(super) fn push_frame(
        &mut self,
        span: ByteRange,
        taken_ns: u64,
        left_ns: u64,
        is_elsewhere: bool,
    ) {
        self.taken_bytes += span.length as u64;
        self.in_flight.push_back(InFlight {
            span,
            taken_ns,
            through: self.taken_bytes,
            is_elsewhere,
            is_queued: false,
            left_ns,
        });
        if !is_elsewhere {
            self.settled_from = self.reported + self.in_flight.len() as u64;
        }
    }

    /// Note that this many bytes are still in the host, so that what was sent before them left it since the last look: TCP's window
    /// may open once in a round trip, whatever the rate.
    pub(super) fn note_unsent(&mut self, now_ns: u64, unsent_bytes: usize) {
        let left_bytes = self.taken_bytes.saturating_sub(unsent_bytes as u64);
        let mut at = self.left.saturating_sub(self.reported) as usize;
        while let Some(frame) = (self.in_flight.get_mut(at)).filter(|it| it.through <= left_bytes) {
            let since_ns = self.looked_ns.max(frame.taken_ns);
            frame.left_ns = frame.left_ns.clamp(since_ns, now_ns.max(since_ns));
            at += 1;
        }
        self.left = self.reported + at as u64;
        self.looked_ns = now_ns;
    }

    /// When TCP's window opens next, where its peer has not acknowledged the last `unacknowledged_bytes`: what it sent at once is
    /// acknowledged at once, a round trip later.
    pub(super) fn window_opens_ns(&self, unacknowledged_bytes: f64, delay_ns: u64) -> u64 {
        let through = self.taken_bytes.saturating_sub(unacknowledged_bytes as u64);
        let at = self
            .in_flight
            .partition_point(|frame| frame.through <= through);
        let oldest = self.in_flight.get(at);
        oldest.map_or(0, |frame| frame.left_ns + 2 * delay_ns)
    }

    /// Where the frames of `in_flight` are that may be unsettled, and bring that up to date: each frame is passed once.
    pub(super) fn unsettled(&mut self, is_settled: impl Fn(&InFlight) -> bool) -> Range<usize> {
        let end = (self.settled_from.saturating_sub(self.reported)) as usize;
        let start = (self.settled_before.saturating_sub(self.reported)) as usize;
        let (mut start, mut end) = (start.min(end), end);
        while start < end && is_settled(&self.in_flight[end - 1]) {
            end -= 1;
        }
        while start < end && is_settled(&self.in_flight[start]) {
            start += 1;
        }
        self.settled_before = self.reported + start as u64;
        self.settled_from = self.reported + end as u64;
        start..end
    }

    /// The last frame that was unsettled when that was looked at last.
    pub(super) fn last_unsettled(&self) -> Option<&InFlight> {
        let last = self.settled_from.max(self.reported).checked_sub(1)?;
        let is_unsettled = last >= self.settled_before.max(self.reported);
        is_unsettled.then(|| &self.in_flight[(last - self.reported) as usize])
    }

    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }

    /// Note that an ACK goes out on it.
    pub(super) fn note_ack_sent(&mut self, now_ns: u64) {
        self.acks_sent += 1;
        self.acks_unseen_ns.get_or_insert(now_ns);
    }
}
