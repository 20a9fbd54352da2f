//! Duplicate ACKs as ns-3 3.37 counts them (`TcpSocketBase`, `TcpTxBuffer`).

use super::super::recovery::detector::LossDetector;
use super::super::recovery::{AckEvent, Episode};
use super::super::scoreboard::Scoreboard;
use super::super::segment::Segment;

/// This many duplicate ACKs, with ns-3's bookkeeping, which differs from the RFCs where a method here says so.
#[derive(Debug, Clone)]
pub struct Ns3DuplicateAcks {
    duplicates: u32,
    threshold: u32,
    limited_transmit: bool,
}

impl Ns3DuplicateAcks {
    /// Loss after `threshold` duplicates; `limited_transmit`: each earlier one lets new data out.
    pub fn new(threshold: u32, limited_transmit: bool) -> Self {
        Self {
            duplicates: 0,
            threshold,
            limited_transmit,
        }
    }

    /// `recover` bars a new fast retransmit only between a timeout and the ACK of all that was out at it. RFC 6582 step 2 bars it
    /// until more than `recover` is acknowledged.
    fn may_enter(episode: &Episode, left_edge: u64) -> bool {
        left_edge >= episode.recover || !episode.recover_ahead
    }
}

impl LossDetector for Ns3DuplicateAcks {
    /// An ACK that carries data or changes the window counts too. RFC 5681, 2 excludes both.
    fn is_duplicate(&self, _segment: &Segment, _old_window: u64) -> bool {
        true
    }

    /// SACK blocks below the threshold begin a recovery only if the second segment is lost. RFC 6675 begins it when the first is.
    fn on_duplicate(
        &mut self,
        event: &AckEvent,
        episode: &Episode,
        board: &mut Scoreboard,
    ) -> bool {
        self.duplicates += 1;
        let enough = self.duplicates >= self.threshold
            && Self::may_enter(episode, event.ack.max(event.before));
        if enough || (episode.sack && board.second_is_lost()) {
            return true;
        }
        if !episode.sack && self.limited_transmit {
            board.book_duplicate();
        }
        false
    }

    /// What duplicate ACKs made us take for delivered stays so when the window moves on, inside recovery or outside. RFC 6582 begins
    /// again at each cumulative ACK outside recovery.
    fn on_progress(&mut self, _episode: &Episode, _board: &mut Scoreboard) {
        self.duplicates = 0;
    }

    fn on_enter(&mut self, episode: &Episode, board: &mut Scoreboard) {
        if episode.sack {
            if !board.head_is_lost() {
                board.mark_head_lost();
            }
            return;
        }
        board.book_duplicate();
        board.mark_head_lost();
    }

    fn on_leave(&mut self, _episode: &Episode, _board: &mut Scoreboard) {
        self.duplicates = 0;
    }

    fn on_timeout(&mut self) {
        self.duplicates = 0;
    }

    /// NextSeg rule 3 goes beyond the highest SACKed byte, and there is no rule 4.
    fn speculative(&mut self, _episode: &Episode, board: &Scoreboard) -> Option<usize> {
        board.next_unsacked(true)
    }

    /// A left edge that was taken for delivered is taken for lost and sent again, even with no recovery under way.
    fn corrects_head(&self, _episode: &Episode) -> bool {
        true
    }

    /// What is taken for lost is sent again with no recovery under way too. RFC 6675 sends again in recovery only.
    fn may_resend(&self, _episode: &Episode) -> bool {
        true
    }

    fn forces_partial(&self, board: &Scoreboard) -> bool {
        !board.head_is_resent()
    }

    fn prefers_new_data(&self) -> bool {
        true
    }

    fn disorder_restarts_timer(&self) -> bool {
        false
    }
}
