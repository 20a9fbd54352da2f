//! What the sender knows of one stream.

use std::collections::VecDeque;

use super::flight::Flight;
use super::Sent;
use crate::state::StreamState;

/// Some bytes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) length: usize,
}

impl Span {
    pub(super) fn end(self) -> u64 {
        self.offset + self.length as u64
    }
}

/// A data frame that a stream took and the peer has not reported.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub(super) span: Span,
    pub(super) sent_ns: u64,
    /// Another stream carries its bytes as well.
    pub(super) is_elsewhere: bool,
    /// Its bytes were queued for the others: who carries them next answers for them.
    pub(super) is_queued: bool,
}

/// A frame that is being sent.
#[derive(Debug, Default, Clone)]
pub(super) struct Outgoing {
    pub(super) header: Vec<u8>,
    pub(super) span: Option<Span>,
    pub(super) taken: usize,
    pub(super) ends_stream: bool,
}

impl Outgoing {
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
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) state: StreamState,
    /// It is to be taken out, also when it stalls meanwhile.
    pub(super) retires: bool,
    /// Streams of the lowest value that work are used.
    pub(super) priority: u32,
    /// Its weight is what its path was found to carry; else a rate that it should keep.
    pub(super) is_measured: bool,
    pub(super) out: Outgoing,
    /// Data frames sent on it that the peer has not reported, in their order, and how many it has.
    pub(super) in_flight: VecDeque<InFlight>,
    pub(super) reported: u64,
    pub(super) flight: Flight,
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
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            state: StreamState::Open,
            retires: false,
            priority: 0,
            is_measured: false,
            out: Outgoing::default(),
            in_flight: VecDeque::new(),
            reported: 0,
            flight: Flight::default(),
            progress_ns: 0,
            told_ns: 0,
            acks_sent: 0,
            acks_seen: 0,
            acks_unseen_ns: None,
            pinged_ns: None,
            taken_stalled_ns: None,
            stalled_ns: 0,
            slowness: 0,
            fin_begun: false,
            sent: Sent::default(),
        }
    }

    /// Note that an ACK goes out on it.
    pub(super) fn note_ack_sent(&mut self, now_ns: u64) {
        self.acks_sent += 1;
        self.acks_unseen_ns.get_or_insert(now_ns);
    }
}
