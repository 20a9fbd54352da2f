//! What has been sent and not yet acknowledged, segment by segment: the scoreboard of RFC 6675, and its stand-in without SACK.
//!
//! Without SACK each duplicate ACK says that some segment has arrived; the board books it on the first segment after the left
//! edge that is not yet booked. The pipe then shrinks by a segment for each duplicate ACK, which allows exactly what the inflation
//! of the window in RFC 6582 allows: `flight - n * mss <= ssthresh` is `flight <= ssthresh + n * mss`.

mod deliveries;
mod losses;

use std::collections::VecDeque;

use super::delivery_rate::{RateSampler, SampleRule, Stamp};
use crate::prefetch::prefetch;
use crate::time::Nanos;

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// Sent again since it was taken for lost; counted in the pipe a second time.
const RESENT: u8 = 4;
/// Sent more than once: an RTT sample would be ambiguous (Karn).
const AMBIGUOUS: u8 = 8;
/// Sent before a timeout, or sent again where others are timed: not timed.
const UNTIMED: u8 = 16;
const FIN: u8 = 32;

/// A segment under way.
#[derive(Debug, Clone, Copy)]
struct Sent {
    start: u64,
    sent_at: Nanos,
    /// In sequence space: data and FIN.
    length: u32,
    flags: u8,
}

impl Sent {
    fn end(&self) -> u64 {
        self.start + u64::from(self.length)
    }

    fn is(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What to put on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transmission {
    /// First sequence number.
    pub start: u64,
    /// Bytes of data.
    pub payload_bytes: u32,
    /// Whether a FIN follows the data.
    pub fin: bool,
    /// Whether this has been sent before.
    pub again: bool,
}

/// What a cumulative ACK did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Advance {
    /// Sequence space newly delivered: acknowledged and not SACKed before.
    pub delivered: u64,
    /// When the oldest segment left that is now acknowledged, of those that are timed if there are any, and whether an echo of its
    /// timestamp alone can tell its round trip: it was sent more than once, or before a timeout.
    pub timed: Option<(Nanos, bool)>,
    /// Whether a segment that was sent again is among those acknowledged.
    pub resent: bool,
    /// Whether the new left edge had been taken for delivered.
    pub head_was_booked: bool,
}

/// A segment that has been delivered: when it left last, where it ends, and whether it was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivered {
    /// When it left, the last time.
    pub sent_at: Nanos,
    /// The sequence number after it.
    pub end: u64,
    /// Whether it was sent more than once.
    pub again: bool,
}

/// What was delivered since somebody asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deliveries {
    /// The segment that left last: of those sent once, and of those sent again.
    pub latest: [Option<Delivered>; 2],
    /// A segment that was sent once came after one beyond it.
    pub reordered: bool,
}

/// What a loss detector says of a segment in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentFate {
    /// It is lost.
    Lost,
    /// It stays as it is.
    Keep,
    /// So does it, and all beyond it.
    Stop,
}

/// How a scoreboard works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScoreboardRules {
    /// SACKed segments above that make a segment lost; none: SACK blocks make none lost.
    pub threshold: Option<u32>,
    /// Leave SACKed retransmissions in the pipe.
    pub keep_resent: bool,
    /// Remember what was delivered last.
    pub tracks_deliveries: bool,
    /// How to sample the delivery rate, if at all.
    pub samples_rate: Option<SampleRule>,
    /// Time what is acknowledged together with a retransmission, if only that was sent once.
    pub times_past_resent: bool,
}

/// What samples of the delivery rate need.
#[derive(Debug, Clone)]
struct Rate {
    sampler: RateSampler,
    /// One for each segment in flight, in order.
    stamps: VecDeque<Stamp>,
}

impl Rate {
    fn new(rule: SampleRule) -> Self {
        Self {
            sampler: RateSampler::new(rule),
            stamps: VecDeque::new(),
        }
    }

    fn on_delivered(&mut self, index: usize, bytes: u64, now: Nanos) {
        self.sampler.on_delivered(now, bytes, &self.stamps[index]);
    }
}

/// The segments under way in order of their sequence numbers.
#[derive(Debug, Clone)]
pub struct Scoreboard {
    sent: VecDeque<Sent>,
    /// The right edge: where new data begins.
    end: u64,
    sacked: u64,
    lost: u64,
    resent: u64,
    /// Segments after the head that duplicate ACKs were booked on; always the ones that follow the head.
    booked: usize,
    /// Segments that are lost and not sent again.
    pending: usize,
    /// No pending segment begins below.
    pending_from: u64,
    /// Starts of the highest SACKed segments, ascending, as many as the threshold.
    highest: Vec<u64>,
    /// Everything below that is not SACKed is lost.
    lost_below: u64,
    threshold: usize,
    keep_resent: bool,
    times_past_resent: bool,
    tracks: bool,
    rate: Option<Box<Rate>>,
    /// Bytes ever taken for lost.
    lost_ever: u64,
    deliveries: Deliveries,
    /// The end of the highest segment that was delivered.
    highest_delivered: u64,
    /// The same before the present ACK, whose number and blocks are of one time.
    delivered_before: u64,
    sacked_segments: u64,
}

impl Scoreboard {
    /// An empty board.
    pub fn new(rules: ScoreboardRules) -> Self {
        let threshold = rules.threshold.map_or(0, |segments| segments as usize);
        Self {
            sent: VecDeque::new(),
            end: 1,
            sacked: 0,
            lost: 0,
            resent: 0,
            booked: 0,
            pending: 0,
            pending_from: 0,
            highest: Vec::with_capacity(threshold),
            lost_below: 0,
            threshold,
            keep_resent: rules.keep_resent,
            times_past_resent: rules.times_past_resent,
            tracks: rules.tracks_deliveries,
            rate: rules.samples_rate.map(|rule| Box::new(Rate::new(rule))),
            lost_ever: 0,
            deliveries: Deliveries::default(),
            highest_delivered: 0,
            delivered_before: 0,
            sacked_segments: 0,
        }
    }

    /// Fetch both ends of what is under way.
    pub fn prefetch(&self) {
        let ends = self.sent.front().into_iter().chain(self.sent.back());
        ends.for_each(prefetch);
    }

    /// Where new data begins: the highest sequence number sent, plus one.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The left edge: the oldest unacknowledged sequence number.
    pub fn start(&self) -> u64 {
        self.sent.front().map_or(self.end, |sent| sent.start)
    }

    /// Sequence space sent and not acknowledged.
    pub fn outstanding(&self) -> u64 {
        self.end - self.start()
    }

    /// Segments sent and not acknowledged.
    pub fn segments(&self) -> usize {
        self.sent.len()
    }

    /// Whether nothing is outstanding.
    pub fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// The estimate of what is in the network (RFC 6675, SetPipe).
    pub fn pipe(&self) -> u64 {
        self.outstanding() + self.resent - self.sacked - self.lost
    }

    /// Bytes that are taken for lost, sent again or not.
    pub fn lost_bytes(&self) -> u64 {
        self.lost
    }

    /// Whether as much was sent again as is taken for lost.
    pub fn has_resent_lost(&self) -> bool {
        self.lost <= self.resent
    }

    /// Bytes that are lost and not sent again, up to the size of a last segment.
    pub fn pending_bytes(&self) -> u64 {
        let segment = self.sent.front().map_or(0, |sent| u64::from(sent.length));
        self.pending as u64 * segment
    }

    /// Enter new data that leaves now.
    pub fn push(&mut self, payload_bytes: u32, fin: bool, now: Nanos) -> Transmission {
        let idle = self.pipe() == 0;
        if let Some(rate) = &mut self.rate {
            let stamp = rate.sampler.stamp(now, idle);
            rate.stamps.push_back(stamp);
        }
        let start = self.end;
        let length = payload_bytes + u32::from(fin);
        self.sent.push_back(Sent {
            start,
            sent_at: now,
            length,
            flags: if fin { FIN } else { 0 },
        });
        self.end += u64::from(length);
        Transmission {
            start,
            payload_bytes,
            fin,
            again: false,
        }
    }

    /// Enter that the segment at `index` leaves again.
    pub fn resend(&mut self, index: usize, now: Nanos) -> Transmission {
        let idle = self.pipe() == 0;
        if let Some(rate) = &mut self.rate {
            rate.stamps[index] = rate.sampler.stamp(now, idle);
        }
        let sent = &mut self.sent[index];
        if sent.flags & (LOST | RESENT | SACKED) == LOST {
            self.pending -= 1;
            self.pending_from = self.pending_from.max(sent.end());
        }
        if !sent.is(RESENT) {
            self.resent += u64::from(sent.length);
        }
        sent.flags |= RESENT | AMBIGUOUS;
        if self.times_past_resent {
            sent.flags |= UNTIMED;
        }
        sent.sent_at = now;
        let fin = sent.is(FIN);
        Transmission {
            start: sent.start,
            payload_bytes: sent.length - u32::from(fin),
            fin,
            again: true,
        }
    }

    /// The sampler of the delivery rate, if there is one.
    pub fn sampler(&mut self) -> Option<&mut RateSampler> {
        self.rate.as_mut().map(|rate| &mut rate.sampler)
    }

    /// Bytes taken for lost in all.
    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }

    /// Whether the segment at the left edge has been sent again.
    pub fn head_is_resent(&self) -> bool {
        self.sent.front().is_some_and(|head| head.is(RESENT))
    }

    /// The first segment that is neither SACKed nor sent again (NextSeg rule 3), below the highest SACKed byte unless `beyond`.
    pub fn next_unsacked(&self, beyond: bool) -> Option<usize> {
        let limit = if beyond {
            self.end
        } else {
            self.highest.last().copied().unwrap_or(0)
        };
        let index = self
            .sent
            .iter()
            .position(|sent| sent.flags & (SACKED | RESENT | LOST) == 0)?;
        (self.sent[index].start < limit).then_some(index)
    }

    /// The highest segment that is not SACKed (NextSeg rule 4).
    pub fn last_unsacked(&self) -> Option<usize> {
        self.sent.iter().rposition(|sent| !sent.is(SACKED))
    }

    /// Sequence number of the segment at `index`.
    pub fn start_of(&self, index: usize) -> u64 {
        self.sent[index].start
    }

    /// Recount everything, for tests.
    pub fn check(&self) {
        let sum = |flag: u8| {
            self.sent
                .iter()
                .filter(|s| s.is(flag))
                .map(|s| u64::from(s.length))
                .sum::<u64>()
        };
        assert_eq!(
            (self.sacked, self.lost, self.resent),
            (sum(SACKED), sum(LOST), sum(RESENT))
        );
        let pending = self
            .sent
            .iter()
            .filter(|s| s.flags & (LOST | RESENT | SACKED) == LOST)
            .count();
        assert_eq!(self.pending, pending);
        assert!(self
            .sent
            .iter()
            .zip(self.sent.iter().skip(1))
            .all(|(a, b)| a.end() == b.start));
        assert!(self.sent.back().map_or(true, |last| last.end() == self.end));
    }
}
