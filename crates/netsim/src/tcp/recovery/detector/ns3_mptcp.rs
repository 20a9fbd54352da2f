//! Duplicate ACKs as the MPTCP model of ns-3 counts them.

use super::super::super::scoreboard::Scoreboard;
use super::super::super::segment::Segment;
use super::super::{AckEvent, Episode};
use super::LossDetector;

/// The third duplicate, and no later one, is taken for the loss of one segment (Chihani and Collange, "A Multipath TCP model for
/// ns-3 simulator", 2011; algorithm 1 of Alheid et al., ICT 2016). Nothing follows from partial ACKs.
#[derive(Debug, Clone)]
pub struct Ns3MptcpDuplicateAcks {
    duplicates: u32,
    threshold: u32,
}

impl Ns3MptcpDuplicateAcks {
    /// Loss at this duplicate.
    pub fn new(threshold: u32) -> Self {
        Self {
            duplicates: 0,
            threshold,
        }
    }
}

impl LossDetector for Ns3MptcpDuplicateAcks {
    /// An ACK that changes the window counts too: with a window that all subflows share it always does.
    fn is_duplicate(&self, _segment: &Segment, _old_window: u64) -> bool {
        true
    }

    fn on_duplicate(&mut self, _: &AckEvent, _: &Episode, _: &mut Scoreboard) -> bool {
        self.duplicates += 1;
        self.duplicates == self.threshold
    }

    fn on_progress(&mut self, _: &Episode, _: &mut Scoreboard) {
        self.duplicates = 0;
    }

    fn on_enter(&mut self, _: &Episode, board: &mut Scoreboard) {
        board.mark_head_lost();
    }

    fn on_leave(&mut self, _: &Episode, _: &mut Scoreboard) {
        self.duplicates = 0;
    }

    fn on_timeout(&mut self) {
        self.duplicates = 0;
    }

    fn speculative(&mut self, _: &Episode, _: &Scoreboard) -> Option<usize> {
        None
    }

    fn corrects_head(&self, _: &Episode) -> bool {
        false
    }
}
