//! What leaves next, if anything may.

use super::super::receiver::OFF;
use super::super::scoreboard::Transmission;
use super::Sender;
use crate::time::Nanos;

impl Sender {
    /// Whether a retransmission is due that does not wait for the window.
    pub fn is_forced(&self) -> bool {
        self.forced
    }

    /// The next segment to send, if one may leave.
    pub fn poll(&mut self, now: Nanos) -> Option<Transmission> {
        let transmission = if self.forced {
            self.forced = false;
            self.force(now)
        } else {
            self.paced = false;
            let idle = self.measured && self.board.pipe() == 0;
            let chosen = self.choose(now)?;
            if idle {
                self.congestion.on_restart(now, &mut self.window);
            }
            chosen
        };
        self.fin_sent |= transmission.fin;
        self.recovery.on_sent(now, &transmission);
        self.pace(now, transmission.payload_bytes);
        self.end_packet();
        if let Some(usage) = &mut self.usage {
            usage.on_sent(now);
        }
        let edge_again =
            self.times_edge && transmission.again && transmission.start == self.board.start();
        if (self.retransmit_at == OFF || edge_again) && !self.board.is_empty() {
            self.retransmit_at = now + self.rtt.rto();
        }
        if !transmission.again {
            self.arm_probe(now);
        }
        Some(transmission)
    }

    /// Set when the next segment may leave after this one.
    pub(super) fn pace(&mut self, now: Nanos, bytes: u32) {
        if self.as_ns3 && !self.starts_gap(now) {
            return;
        }
        let srtt = self.rtt.srtt();
        let set = self
            .measured
            .then(|| self.congestion.pacing_rate(&self.window, srtt));
        if let Some(rate) = set.flatten() {
            self.pacer.sent_at_rate(now, bytes, rate);
            return;
        }
        self.pacer
            .sent(now, bytes, &self.window, srtt, self.nearest);
    }

    /// Whether a gap follows in ns-3: none in the initial window, none for what leaves in a gap whatever the rate.
    fn starts_gap(&self, now: Nanos) -> bool {
        let initial = self.initial_segments * self.window.segment();
        self.board.end() > initial && self.pacer.ready(now)
    }

    /// The fast retransmit, and the retransmission after a partial ACK: the first lost segment, else the head.
    pub(super) fn force(&mut self, now: Nanos) -> Transmission {
        if std::mem::take(&mut self.tail_probe) {
            return self.probe_tail(now);
        }
        if let Some(index) = self.board.next_lost() {
            return self.board.resend(index, now);
        }
        let new = self.new_data_bytes(u64::MAX);
        if self.recovery.prefers_new_data() && new > 0 {
            return self.push_new(new, now);
        }
        self.board.resend(0, now)
    }

    /// RFC 8985, 7.3: new data if there is any, else the last segment again; the retransmission timer restarts.
    pub(super) fn probe_tail(&mut self, now: Nanos) -> Transmission {
        let new = self.new_data_bytes(u64::MAX);
        let probe = if new > 0 {
            self.push_new(new, now)
        } else {
            let last = self.board.last_unsacked().unwrap_or(0);
            self.board.resend(last, now)
        };
        self.recovery.on_probe_sent(self.board.end(), probe.again);
        self.retransmit_at = now + self.rtt.rto();
        probe
    }

    /// RFC 6675, 5 (C) and NextSeg: what is lost, then new data, then what may be lost.
    pub(super) fn choose(&mut self, now: Nanos) -> Option<Transmission> {
        if std::mem::take(&mut self.probe) && self.unsent() > 0 && self.board.is_empty() {
            return Some(self.probe_window(now));
        }
        let allowed = self.peer_window.min(self.window.cwnd);
        let pipe = if self.recovery.holds_new_data() {
            self.board.outstanding()
        } else {
            self.board.pipe()
        };
        let lost = if self.board.has_pending() && self.recovery.may_resend() {
            self.board.next_lost()
        } else {
            None
        };
        if pipe >= allowed {
            self.window_limited = self.window.cwnd <= self.peer_window;
            return self.finish(now, lost.is_none());
        }
        let room = allowed - pipe;
        if let Some(index) = lost {
            return self.again(index, room, now);
        }
        if self.unsent() > 0 {
            return self.new_data(room, now);
        }
        if let (false, Some(sampler)) = (self.as_ns3, self.board.sampler()) {
            sampler.limit_by_application(pipe);
        }
        // A subflow is given no more than its window has room for: it is the limit once no further segment fits.
        self.window_limited = self.outside_window && room < self.window.segment();
        if let Some(index) = self.recovery.speculative(&self.board) {
            return self.again(index, room, now);
        }
        self.finish(now, true)
    }

    /// A bare FIN, which needs no window.
    pub(super) fn finish(&mut self, now: Nanos, nothing_lost: bool) -> Option<Transmission> {
        let ready = nothing_lost && self.closing && !self.fin_sent && self.unsent() == 0;
        ready.then(|| self.board.push(0, true, now))
    }

    pub(super) fn again(&mut self, index: usize, room: u64, now: Nanos) -> Option<Transmission> {
        let rest = self.written.saturating_sub(self.board.start_of(index));
        if self.is_held_back(room, rest) || self.is_paced(now) {
            return None;
        }
        Some(self.board.resend(index, now))
    }

    /// RFC 9293, 3.8.6.2.1: no small segments because of a small window.
    pub(super) fn is_held_back(&mut self, room: u64, data: u64) -> bool {
        let small = room < self.window.segment() && data > room;
        self.window_limited |= small && self.window.cwnd <= self.peer_window;
        small
    }

    pub(super) fn is_paced(&mut self, now: Nanos) -> bool {
        self.paced = !self.pacer.ready(now);
        self.paced
    }

    /// How much new data the next segment carries, at most `room`.
    pub(super) fn new_data_bytes(&self, room: u64) -> u64 {
        let peer_room = self.peer_window.saturating_sub(self.board.outstanding());
        let end = self.ends.front().copied().unwrap_or(u64::MAX);
        self.unsent()
            .min(self.window.segment())
            .min(room)
            .min(peer_room)
            .min(end.saturating_sub(self.board.end()))
    }

    pub(super) fn new_data(&mut self, room: u64, now: Nanos) -> Option<Transmission> {
        let unsent = self.unsent();
        let bytes = self.new_data_bytes(room);
        if bytes == 0 || self.is_held_back(room, unsent) {
            return None;
        }
        // RFC 896: small segments wait for the acknowledgement of what is out.
        let small = unsent < self.window.segment() && !self.closing;
        if (self.nagle && small && !self.board.is_empty()) || self.is_paced(now) {
            return None;
        }
        self.window_limited = false;
        Some(self.push_new(bytes, now))
    }

    pub(super) fn push_new(&mut self, bytes: u64, now: Nanos) -> Transmission {
        let fin = self.closing && !self.fin_sent && bytes == self.unsent();
        self.board.push(bytes as u32, fin, now)
    }

    /// Forget the end of what has left whole.
    fn end_packet(&mut self) {
        let sent = self.board.end();
        if self.ends.front().is_some_and(|&end| end <= sent) {
            self.ends.pop_front();
            self.pacer.end_burst();
        }
    }

    /// What the window lets through, or one byte of new data beyond it.
    pub(super) fn probe_window(&mut self, now: Nanos) -> Transmission {
        let bytes = self.new_data_bytes(u64::MAX);
        if bytes > 0 {
            return self.push_new(bytes, now);
        }
        self.probed = self.board.end() + 1;
        Transmission {
            start: self.board.end(),
            payload_bytes: 1,
            fin: false,
            again: false,
        }
    }
}
