//! Proportional rate reduction (RFC 6937).

use super::{AckEvent, Parts};

/// Sends so that the window is `ssthresh` at the end of the recovery, in step with what is delivered.
#[derive(Debug, Clone)]
pub(super) struct Prr {
    conservative: bool,
    /// Take a duplicate ACK without SACK for no delivery, and use the pipe of before it.
    bytes_only: bool,
    /// prr_delivered, prr_out and RecoverFS of RFC 6937, 3.1.
    delivered: u64,
    out: u64,
    flight: u64,
    /// Booked as delivered by duplicate ACKs: the cumulative ACK counts less by it.
    booked: u64,
}

impl Prr {
    pub fn new(conservative: bool, bytes_only: bool) -> Self {
        Self {
            conservative,
            bytes_only,
            delivered: 0,
            out: 0,
            flight: 1,
            booked: 0,
        }
    }

    pub fn enter(&mut self, event: &AckEvent, parts: &mut Parts<'_>, pipe: u64) {
        self.delivered = 0;
        self.out = 0;
        self.booked = 0;
        self.flight = parts.board.outstanding().max(1);
        self.update(event.delivered, pipe, event.advance.resent, parts);
    }

    pub fn on_duplicate(&mut self, event: &AckEvent, parts: &mut Parts<'_>) {
        if self.bytes_only {
            self.update(event.delivered, event.pipe, event.advance.resent, parts);
            return;
        }
        let mut delivered = event.delivered;
        if delivered == 0 {
            delivered = parts.window.segment();
            self.booked += delivered;
        }
        let pipe = parts.board.pipe();
        self.update(delivered, pipe, event.advance.resent, parts);
    }

    pub fn on_partial(&mut self, event: &AckEvent, parts: &mut Parts<'_>) {
        if self.bytes_only {
            self.update(event.delivered, event.pipe, event.advance.resent, parts);
            return;
        }
        let counted = event.delivered.min(self.booked);
        self.booked -= counted;
        let pipe = parts.board.pipe();
        self.update(event.delivered - counted, pipe, event.advance.resent, parts);
    }

    pub fn on_sent(&mut self, bytes: u64) {
        self.out += bytes;
    }

    /// RFC 6937, 3.1: sndcnt, and cwnd = pipe + sndcnt.
    fn update(&mut self, delivered: u64, pipe: u64, progress: bool, parts: &mut Parts<'_>) {
        self.delivered += delivered;
        let ssthresh = parts.window.ssthresh;
        let segment = parts.window.segment() as i64;
        let unspent = self.delivered as i64 - self.out as i64;
        let count = if pipe > ssthresh {
            let proportional = (u128::from(self.delivered) * u128::from(ssthresh))
                .div_ceil(u128::from(self.flight));
            proportional as i64 - self.out as i64
        } else {
            let limit = if self.conservative {
                unspent
            } else if self.bytes_only {
                Self::bounded(unspent, delivered as i64, progress, segment)
            } else {
                unspent.max(delivered as i64) + segment
            };
            limit.min((ssthresh - pipe) as i64)
        };
        // The fast retransmit itself goes out in any case.
        let least = if self.out > 0 { 0 } else { segment };
        parts.window.cwnd = pipe + count.max(least) as u64;
    }

    /// ns-3's bound: slow start only on ACKs of what was sent again; its unsigned difference makes a deficit the larger.
    fn bounded(unspent: i64, delivered: i64, progress: bool, segment: i64) -> i64 {
        match (progress, unspent < 0) {
            (false, _) => delivered,
            (true, true) => unspent + segment,
            (true, false) => unspent.max(delivered) + segment,
        }
    }
}
