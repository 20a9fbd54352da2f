//! How much of the congestion window is used, as Linux sees it (`tcp_cwnd_validate`).

use super::super::recovery::Phase;
use super::Sender;
use crate::time::Nanos;

/// What of the window was used lately.
#[derive(Debug, Default)]
pub(super) struct WindowUsage {
    /// Until `end` is acknowledged: whether the window has been the limit, else how many segments were out at most.
    limited: bool,
    most_segments: u64,
    end: u64,
    /// Whether something has left since the last look, and when.
    has_sent: bool,
    sent_at: Nanos,
}

impl WindowUsage {
    pub(super) fn on_sent(&mut self, now: Nanos) {
        (self.has_sent, self.sent_at) = (true, now);
    }
}

impl Sender {
    /// Whether the window may grow: it limits the sender, or in slow start is less than twice what was out.
    pub(super) fn is_window_limited(&self) -> bool {
        let Some(usage) = &self.usage else {
            return self.window_limited;
        };
        let used = 2 * usage.most_segments * self.window.segment();
        usage.limited || (self.window.in_slow_start() && self.window.cwnd < used)
    }

    /// Look at what is out, once no more can leave.
    pub(super) fn note_usage(&mut self) {
        let Some(usage) = &mut self.usage else { return };
        let limited = self.board.pipe() + self.window.segment() > self.window.cwnd;
        if !std::mem::take(&mut usage.has_sent) && !limited {
            return;
        }
        let out = self.board.segments() as u64;
        let is_over = self.board.start() >= usage.end;
        if is_over || limited || (!usage.limited && out > usage.most_segments) {
            usage.limited = limited;
            usage.most_segments = out;
            usage.end = self.board.end();
        }
    }

    /// RFC 5681, 4.1: what is written after a pause begins with less; the window halves with each timeout of it.
    pub(super) fn note_pause(&mut self, now: Nanos) {
        let Some(usage) = &self.usage else { return };
        let (pause, rto) = (now - usage.sent_at, self.rtt.rto());
        if !self.restarts || pause <= rto || self.unacknowledged() > 0 {
            return;
        }
        let cwnd = self.window.cwnd;
        if self.recovery.phase() != Phase::Recovery {
            self.window.ssthresh = self.window.ssthresh.max(cwnd / 4 * 3);
        }
        let initial = self.initial_segments * self.window.segment();
        let segments = (cwnd / self.window.segment()) >> ((pause - 1) / rto).min(32);
        let halved = segments * self.window.segment();
        self.congestion
            .on_reduction(&mut self.window, halved.max(initial.min(cwnd)));
    }
}
