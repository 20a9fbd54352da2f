//! Copies of small frames.

use super::{Earliest, Scheduler, View};

/// The most application bytes of a frame that is copied: a message or two, nothing of a bulk transfer.
pub const COPIED_BYTES: usize = 2048;

/// Small frames go over every stream with room at once, and the first copy that arrives counts; the receiver drops the
/// others by their numbers. Larger frames go by [`Earliest`].
#[derive(Debug, Clone, Copy, Default)]
pub struct Redundant;

impl Scheduler for Redundant {
    fn choose(&mut self, view: &View<'_>) -> Option<usize> {
        if !self.is_copied(view.frame_bytes) {
            return Earliest.choose(view);
        }
        // The least delay first, so that the first copy leaves first.
        let ahead = |index: &usize| view.streams[*index].delay_ns;
        view.weighed(view.with_room).min_by_key(ahead)
    }

    fn is_copied(&self, frame_bytes: usize) -> bool {
        frame_bytes <= COPIED_BYTES
    }
}
