//! What is taken for lost, and what is not.

use super::{Scoreboard, SegmentFate, LOST, RESENT, SACKED, UNTIMED};
use crate::time::Nanos;

impl Scoreboard {
    pub(super) fn set_lost(&mut self, index: usize) {
        let sent = &mut self.sent[index];
        if sent.flags & (SACKED | LOST) != 0 {
            return;
        }
        sent.flags |= LOST;
        self.lost += u64::from(sent.length);
        self.lost_ever += u64::from(sent.length);
        if !sent.is(RESENT) {
            self.pending += 1;
            self.pending_from = self.pending_from.min(sent.start);
        }
    }

    /// Take the segment at the left edge for lost, even if it has been sent again.
    pub fn mark_head_lost(&mut self) {
        if !self.sent.is_empty() {
            self.set_lost_again(0);
        }
    }

    /// Take a segment for lost, even if it has been sent again.
    pub(super) fn set_lost_again(&mut self, index: usize) {
        let sent = &mut self.sent[index];
        if sent.is(RESENT) {
            sent.flags &= !RESENT;
            self.resent -= u64::from(sent.length);
            if sent.is(LOST) {
                self.pending += 1;
                self.pending_from = self.pending_from.min(sent.start);
            }
        }
        self.set_lost(index);
    }

    /// Judge each segment that is under way by when it left last, where it ends, and whether that was again; whether any is lost.
    pub fn judge(&mut self, mut judge: impl FnMut(Nanos, u64, bool) -> SegmentFate) -> bool {
        let mut any = false;
        for index in 0..self.sent.len() {
            let sent = self.sent[index];
            // What is SACKed, or taken for lost and not sent again, is not under way.
            if sent.is(SACKED) || sent.flags & (LOST | RESENT) == LOST {
                continue;
            }
            match judge(sent.sent_at, sent.end(), sent.is(RESENT)) {
                SegmentFate::Lost => {
                    self.set_lost_again(index);
                    any = true;
                }
                SegmentFate::Keep => {}
                SegmentFate::Stop => break,
            }
        }
        any
    }

    /// Take for lost what left before `expired` and is not SACKed, and the left edge (RFC 5681, 3.1; RFC 6675, 5.1; RFC 8985, 6.3);
    /// bookings of duplicate ACKs do not count.
    pub fn mark_all_lost(&mut self, expired: Nanos) {
        self.clear_booked();
        self.resent = 0;
        self.lost = 0;
        self.pending = 0;
        let edge = self.start();
        for sent in &mut self.sent {
            sent.flags |= UNTIMED;
            let length = u64::from(sent.length);
            if sent.sent_at > expired && sent.start != edge {
                self.resent += if sent.is(RESENT) { length } else { 0 };
                self.lost += if sent.is(LOST) { length } else { 0 };
                self.pending += usize::from(sent.flags & (LOST | RESENT | SACKED) == LOST);
                continue;
            }
            sent.flags &= !RESENT;
            if !sent.is(SACKED) {
                sent.flags |= LOST;
                self.lost += length;
                self.pending += 1;
            }
        }
        self.pending_from = edge;
    }

    /// Take everything for under way again that was taken for lost and not sent again, as after a reduction without cause.
    pub fn clear_lost(&mut self) {
        for sent in &mut self.sent {
            if sent.flags & (LOST | RESENT) == LOST {
                sent.flags &= !LOST;
                self.lost -= u64::from(sent.length);
                self.pending -= 1;
            }
        }
        self.pending_from = self.end;
    }

    /// RFC 6675, IsLost, with segments for its bytes: lost is what has a threshold of SACKed segments above.
    pub(super) fn infer_losses(&mut self) {
        if self.threshold == 0 {
            return;
        }
        if self.highest.len() < self.threshold || self.highest[0] <= self.lost_below {
            return;
        }
        let boundary = self.highest[0];
        let first = self
            .sent
            .partition_point(|sent| sent.start < self.lost_below);
        for index in first..self.sent.len() {
            if self.sent[index].start >= boundary {
                break;
            }
            self.set_lost(index);
        }
        self.lost_below = boundary;
    }

    /// Whether the segment at the left edge is taken for lost.
    pub fn head_is_lost(&self) -> bool {
        self.sent.front().is_some_and(|head| head.is(LOST))
    }

    /// Whether the first segment after the left edge that is lost comes before the first that is SACKed.
    pub fn second_is_lost(&self) -> bool {
        self.sent
            .iter()
            .skip(1)
            .find(|sent| sent.flags & (SACKED | LOST) != 0)
            .is_some_and(|sent| sent.is(LOST))
    }

    /// Whether any segment is lost and not sent again.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }

    /// The first segment that is lost and not sent again (RFC 6675, NextSeg rule 1).
    pub fn next_lost(&self) -> Option<usize> {
        if !self.has_pending() {
            return None;
        }
        let first = self
            .sent
            .partition_point(|sent| sent.start < self.pending_from);
        (first..self.sent.len())
            .find(|&index| self.sent[index].flags & (LOST | RESENT | SACKED) == LOST)
    }
}
