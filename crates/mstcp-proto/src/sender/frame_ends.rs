//! Where the bytes that the peer has not acknowledged were cut into frames: into this many pieces may what it lacks divide what it has.

use std::collections::{BTreeSet, VecDeque};

/// The ends of frames, each once.
#[derive(Debug, Default)]
pub(super) struct FrameEnds {
    /// Ends of first transmissions, by rising offset.
    first: VecDeque<u64>,
    /// Ends of smaller frames in which bytes were sent again.
    again: BTreeSet<u64>,
}

impl FrameEnds {
    /// Note a frame of bytes that were never sent before.
    pub(super) fn note_first(&mut self, end: u64) {
        self.first.push_back(end);
    }

    /// Note a frame of bytes that are sent once more.
    pub(super) fn note_again(&mut self, end: u64) {
        if self.first.binary_search(&end).is_err() {
            self.again.insert(end);
        }
    }

    /// Forget those before an offset: the peer has all up to there.
    pub(super) fn release(&mut self, acknowledged: u64) {
        while self.first.front().is_some_and(|end| *end <= acknowledged) {
            self.first.pop_front();
        }
        while self.again.first().is_some_and(|end| *end <= acknowledged) {
            self.again.pop_first();
        }
    }

    pub(super) fn count(&self) -> u64 {
        (self.first.len() + self.again.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::FrameEnds;

    #[test]
    fn each_cut_counts_once_until_it_is_acknowledged() {
        let mut cuts = FrameEnds::default();
        for end in [10, 20, 30] {
            cuts.note_first(end);
        }
        for end in [15, 20, 15] {
            cuts.note_again(end);
        }
        assert_eq!(cuts.count(), 4);
        cuts.release(15);
        assert_eq!(cuts.count(), 2);
        cuts.release(30);
        assert_eq!(cuts.count(), 0);
    }
}
