//! Duplicate ACKs as the MPTCP model of ns-3 counts them.

use super::super::config::Ns3MptcpMethod;
use super::super::recovery::detector::LossDetector;
use super::super::recovery::{AckEvent, Episode};
use super::super::scoreboard::Scoreboard;
use super::super::segment::Segment;

/// The third duplicate of a segment, and no later one, is taken for its loss (Chihani and Collange, "A Multipath TCP model for
/// ns-3 simulator", 2011; algorithm 1 of Alheid et al., ICT 2016). Nothing follows from partial ACKs, and a timeout does not end the
/// count. TCP-DOOR and F-RTO ignore duplicates.
#[derive(Debug, Clone)]
pub struct Ns3MptcpDuplicateAcks {
    duplicates: u32,
    threshold: u32,
    counts: bool,
}

impl Ns3MptcpDuplicateAcks {
    /// Loss at this duplicate, if the method looks at duplicates.
    pub fn new(threshold: u32, method: Ns3MptcpMethod) -> Self {
        Self {
            duplicates: 0,
            threshold,
            counts: !matches!(method, Ns3MptcpMethod::FRto | Ns3MptcpMethod::Door),
        }
    }
}

impl LossDetector for Ns3MptcpDuplicateAcks {
    /// An ACK that changes the window counts too: with a window that all subflows share it always does. One that reports a block does
    /// not: it counts for the connection, which says against which subflow.
    fn is_duplicate(&self, segment: &Segment, _old_window: u64) -> bool {
        segment.sack.is_empty()
    }

    fn on_duplicate(&mut self, _: &AckEvent, _: &Episode, _: &mut Scoreboard) -> bool {
        self.duplicates += 1;
        self.counts && self.duplicates == self.threshold
    }

    fn counts_after_timeout(&self) -> bool {
        true
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

    fn corrects_head(&self, _: &Episode) -> bool {
        false
    }
}
