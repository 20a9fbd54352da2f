//! What is delivered: by number, by SACK blocks, by guess.

use super::super::segment::SackBlocks;
use super::{
    Advance, Delivered, Deliveries, Scoreboard, Sent, AMBIGUOUS, LOST, RESENT, SACKED, UNTIMED,
};
use crate::time::Nanos;

impl Scoreboard {
    /// Drop what a cumulative ACK covers.
    pub fn advance(&mut self, ack: u64, now: Nanos) -> Advance {
        let mut advance = Advance::default();
        let mut only_untimed = true;
        while let Some(front) = self.sent.front() {
            if front.start >= ack {
                break;
            }
            let front = *front;
            let acknowledged = front.end().min(ack) - front.start;
            self.uncount(&front, acknowledged);
            if !front.is(SACKED) || self.booked > 0 {
                advance.delivered += acknowledged;
                if self.tracks {
                    self.note_delivered(&front);
                }
                if let Some(rate) = &mut self.rate {
                    rate.on_delivered(0, acknowledged, now);
                }
            }
            if front.end() > ack {
                let head = &mut self.sent[0];
                head.start = ack;
                head.length -= acknowledged as u32;
                break;
            }
            advance.resent |= front.flags & (RESENT | SACKED) == RESENT;
            let untimed = front.is(UNTIMED);
            if only_untimed && (!untimed || advance.timed.is_none()) {
                only_untimed = untimed;
                advance.timed = Some((front.sent_at, untimed || front.is(AMBIGUOUS)));
            }
            self.forget_front(&front);
        }
        self.end = self.end.max(ack);
        advance.head_was_booked = self.unbook_head();
        advance
    }

    pub(super) fn uncount(&mut self, sent: &Sent, bytes: u64) {
        if sent.is(SACKED) {
            self.sacked -= bytes;
        }
        if sent.is(LOST) {
            self.lost -= bytes;
        }
        if sent.is(RESENT) {
            self.resent -= bytes;
        }
    }

    pub(super) fn note_delivered(&mut self, sent: &Sent) {
        let again = sent.is(AMBIGUOUS);
        let delivered = Delivered {
            sent_at: sent.sent_at,
            end: sent.end(),
            again,
        };
        let latest = &mut self.deliveries.latest[usize::from(again)];
        let left = |one: &Delivered| (one.sent_at, one.end);
        if latest.map_or(true, |one| left(&one) < left(&delivered)) {
            *latest = Some(delivered);
        }
        self.deliveries.reordered |= !again && delivered.end < self.delivered_before;
        self.highest_delivered = self.highest_delivered.max(delivered.end);
    }

    /// What was delivered since the last time; nothing unless the rules ask for it.
    pub fn take_deliveries(&mut self) -> Deliveries {
        std::mem::take(&mut self.deliveries)
    }

    /// Segments that are SACKed and not acknowledged.
    pub fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    pub(super) fn forget_front(&mut self, front: &Sent) {
        if front.is(SACKED) {
            self.sacked_segments -= 1;
            self.booked = self.booked.saturating_sub(1);
        }
        if front.flags & (LOST | RESENT | SACKED) == LOST {
            self.pending -= 1;
        }
        self.sent.pop_front();
        if let Some(rate) = &mut self.rate {
            rate.stamps.pop_front();
        }
    }

    /// A segment at the left edge has not arrived: undo what said so (a wrong guess, or a receiver that reneged).
    pub(super) fn unbook_head(&mut self) -> bool {
        let Some(head) = self.sent.front_mut() else {
            self.booked = 0;
            return false;
        };
        if !head.is(SACKED) {
            return false;
        }
        head.flags &= !SACKED;
        self.sacked -= u64::from(head.length);
        self.sacked_segments -= 1;
        self.booked = self.booked.saturating_sub(1);
        true
    }

    /// Book a duplicate ACK, without SACK: one more segment has arrived.
    pub fn book_duplicate(&mut self) {
        let next = self.booked + 1;
        if next < self.sent.len() {
            self.set_sacked(next);
            self.booked = next;
        }
    }

    /// Forget what duplicate ACKs made us take for delivered.
    pub fn clear_booked(&mut self) {
        for index in 1..=self.booked {
            let sent = &mut self.sent[index];
            sent.flags &= !SACKED;
            self.sacked -= u64::from(sent.length);
        }
        self.sacked_segments -= self.booked as u64;
        self.booked = 0;
    }

    pub(super) fn set_sacked(&mut self, index: usize) -> u64 {
        let sent = &mut self.sent[index];
        let length = u64::from(sent.length);
        if sent.is(LOST) {
            if !sent.is(RESENT) {
                self.pending -= 1;
            }
            self.lost -= length;
            sent.flags &= !LOST;
        }
        if sent.is(RESENT) && !self.keep_resent {
            self.resent -= length;
            sent.flags &= !RESENT;
        }
        sent.flags |= SACKED;
        self.sacked += length;
        self.sacked_segments += 1;
        if self.tracks {
            let sent = *sent;
            self.note_delivered(&sent);
        }
        length
    }

    /// Enter SACK blocks above `ack` (RFC 6675, Update); give the bytes newly SACKed.
    pub fn sack(&mut self, blocks: &SackBlocks, ack: u64, now: Nanos) -> u64 {
        let mut new = 0;
        self.delivered_before = self.highest_delivered;
        for (start, end) in blocks.iter(ack).filter(|block| block.0 > ack) {
            let first = self.sent.partition_point(|sent| sent.start < start);
            for index in first..self.sent.len() {
                let sent = &self.sent[index];
                if sent.end() > end {
                    break;
                }
                if !sent.is(SACKED) {
                    let at = sent.start;
                    let length = self.set_sacked(index);
                    if let Some(rate) = &mut self.rate {
                        rate.on_delivered(index, length, now);
                    }
                    new += length;
                    self.note_highest(at);
                }
            }
        }
        if new > 0 {
            self.infer_losses();
        }
        new
    }

    pub(super) fn note_highest(&mut self, start: u64) {
        if self.threshold == 0 {
            return;
        }
        if self.highest.len() == self.threshold {
            if start <= self.highest[0] {
                return;
            }
            self.highest.remove(0);
        }
        let place = self.highest.partition_point(|&other| other < start);
        self.highest.insert(place, start);
    }
}
