//! Duplicate ACKs and SACK blocks (RFC 5681, RFC 6582, RFC 6675, RFC 3042).

use super::super::super::scoreboard::Scoreboard;
use super::super::{AckEvent, Episode, Phase};
use super::LossDetector;

/// This many duplicate ACKs, or SACK blocks that tell as much.
#[derive(Debug, Clone)]
pub struct DuplicateAcks {
    duplicates: u32,
    threshold: u32,
    limited_transmit: bool,
    /// `RescueRxt` of RFC 6675: rule 4 may send once the left edge is beyond.
    rescue_beyond: u64,
}

impl DuplicateAcks {
    /// Loss after `threshold` duplicates; `limited_transmit`: each earlier one lets new data out.
    pub fn new(threshold: u32, limited_transmit: bool) -> Self {
        Self {
            duplicates: 0,
            threshold,
            limited_transmit,
            rescue_beyond: 0,
        }
    }

    /// RFC 6582, 3.2 step 2; RFC 6675, 5.1.
    fn may_enter(episode: &Episode, left_edge: u64) -> bool {
        if episode.sack {
            left_edge >= episode.recover
        } else {
            left_edge > episode.recover
        }
    }
}

impl LossDetector for DuplicateAcks {
    fn on_duplicate(
        &mut self,
        event: &AckEvent,
        episode: &Episode,
        board: &mut Scoreboard,
    ) -> bool {
        self.duplicates += 1;
        let enough = self.duplicates >= self.threshold
            && Self::may_enter(episode, event.ack.max(event.before));
        // RFC 6675, 5 step 2: IsLost of the left edge.
        let sacks_tell =
            episode.sack && board.head_is_lost() && Self::may_enter(episode, board.start());
        if enough || sacks_tell {
            return true;
        }
        if !episode.sack && self.limited_transmit {
            // RFC 3042: each of the first duplicates lets a new segment out.
            board.book_duplicate();
        }
        false
    }

    fn on_progress(&mut self, episode: &Episode, board: &mut Scoreboard) {
        self.duplicates = 0;
        if !episode.sack && episode.phase != Phase::Recovery {
            board.clear_booked();
        }
    }

    fn on_enter(&mut self, episode: &Episode, board: &mut Scoreboard) {
        if episode.sack {
            if !board.head_is_lost() {
                board.mark_head_lost();
            }
            return;
        }
        let booked = if self.limited_transmit {
            1
        } else {
            self.threshold
        };
        (0..booked).for_each(|_| board.book_duplicate());
        board.mark_head_lost();
    }

    fn on_leave(&mut self, episode: &Episode, board: &mut Scoreboard) {
        self.duplicates = 0;
        if !episode.sack {
            board.clear_booked();
        }
    }

    fn on_timeout(&mut self) {
        self.duplicates = 0;
    }

    fn holds_new_data(&self) -> bool {
        !self.limited_transmit
    }

    /// RFC 6675, NextSeg rules 3 and 4.
    fn speculative(&mut self, episode: &Episode, board: &Scoreboard) -> Option<usize> {
        let unsacked = board.next_unsacked(false);
        if unsacked.is_some() || board.start() <= self.rescue_beyond {
            return unsacked;
        }
        self.rescue_beyond = episode.recover;
        board.last_unsacked()
    }
}
