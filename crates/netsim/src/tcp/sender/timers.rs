//! The timers: retransmission, persist, loss by time, tail loss probe, pacing.

use super::super::receiver::OFF;
use super::super::statistics::Statistics;
use super::Sender;
use crate::time::Nanos;

impl Sender {
    pub(super) fn arm_probe(&mut self, now: Nanos) {
        if self.recovery.probes() {
            let srtt = self.rtt.srtt();
            self.recovery
                .arm_probe(now, srtt, self.retransmit_at, &self.board);
        }
    }

    /// RFC 9293, 3.8.6.1: watch a window that keeps data back while nothing is under way.
    pub(super) fn watch_window(&mut self, now: Nanos) {
        let stuck = self.board.is_empty()
            && self.unsent() > 0
            && self.peer_window < self.unsent().min(self.window.segment());
        if !stuck {
            self.persist_at = OFF;
        } else if self.persist_at == OFF {
            self.persist_wait = self.persist_first.unwrap_or_else(|| self.rtt.rto());
            self.persist_at = now + self.persist_wait;
        }
    }

    /// The next time at which something is to be done; [`OFF`] if none.
    pub fn timer(&self) -> Nanos {
        let pacing = if self.paced { self.pacer.next() } else { OFF };
        let detection = self.recovery.timer();
        self.retransmit_at
            .min(self.persist_at)
            .min(pacing)
            .min(detection)
    }

    /// Do what is due; false if the peer has to be given up.
    pub fn on_timer(&mut self, now: Nanos, statistics: &mut Statistics) -> bool {
        if now >= self.persist_at {
            self.probe = true;
            self.persist_wait = (2 * self.persist_wait).min(60 * crate::time::SECOND);
            self.persist_at = now + self.persist_wait;
        }
        if now >= self.recovery.timer() {
            self.detect(now, statistics);
            if self.tail_probe {
                // RFC 8985, 7.2: a probe that is due with the timeout leaves in its place, and the timeout begins again.
                return true;
            }
        }
        if now < self.retransmit_at {
            return true;
        }
        self.retransmit_at = OFF;
        if self.board.is_empty() {
            return true;
        }
        self.timeouts_in_row += 1;
        if self.timeouts_in_row > self.data_retries {
            return false;
        }
        statistics.timeouts += 1;
        self.events.timed_out = true;
        if !self.recovery.holds_window(now) {
            self.rtt.back_off();
        }
        self.pacer.reset();
        self.forced = false;
        let (recovery, mut parts) = self.split();
        recovery.on_timeout(now, &mut parts);
        self.forced = self.recovery.forces_after_timeout();
        true
    }

    /// Let the loss detector act on the time.
    pub(super) fn detect(&mut self, now: Nanos, statistics: &mut Statistics) {
        let srtt = self.rtt.srtt();
        let (recovery, mut parts) = self.split();
        let verdict = recovery.on_timer(now, srtt, &mut parts);
        statistics.fast_retransmits += u64::from(verdict.entered);
        self.forced |= verdict.retransmit || verdict.probe;
        self.tail_probe = verdict.probe;
    }

    /// Look after the window's use and the persist timer once no more can be sent.
    pub fn settle(&mut self, now: Nanos) {
        self.note_usage();
        self.watch_window(now);
    }
}
