//! Proportional rate reduction (RFC 6937).

use super::super::{AckEvent, Episode, SenderParts};
use super::{flight, WindowReduction};

/// Sends so that the window is `ssthresh` at the end of the recovery, in step with what is delivered.
#[derive(Debug, Clone)]
pub struct Prr {
    conservative: bool,
    grows_on_exit: bool,
    count: Count,
    /// Booked as delivered by duplicate ACKs: the cumulative ACK counts less by it.
    booked: u64,
}

/// prr_delivered, prr_out and RecoverFS of RFC 6937, 3.1.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct Count {
    pub delivered: u64,
    pub out: u64,
    pub flight: u64,
    /// The product of delivered bytes and `ssthresh` keeps its last 32 bits alone (ns-3).
    pub wraps: bool,
}

impl Count {
    pub fn begin(flight: u64) -> Self {
        Self {
            delivered: 0,
            out: 0,
            flight: flight.max(1),
            wraps: false,
        }
    }

    /// What may have been sent: the part of `ssthresh` that is delivered of the flight.
    fn proportion(&self, ssthresh: u64) -> i64 {
        let mut product = u128::from(self.delivered) * u128::from(ssthresh);
        if self.wraps {
            product = u128::from(product as u32);
        }
        product.div_ceil(u128::from(self.flight)) as i64
    }

    /// RFC 6937, 3.1: sndcnt, and cwnd = pipe + sndcnt. `limit` is the bound of the part below `ssthresh`, from the bytes
    /// delivered and not yet sent for.
    pub fn update(
        &mut self,
        delivered: u64,
        pipe: u64,
        parts: &mut SenderParts<'_>,
        limit: impl FnOnce(i64, i64) -> i64,
    ) {
        self.delivered += delivered;
        let ssthresh = parts.window.ssthresh;
        let segment = parts.window.segment() as i64;
        let count = if pipe > ssthresh {
            self.proportion(ssthresh) - self.out as i64
        } else {
            let unspent = self.delivered as i64 - self.out as i64;
            limit(unspent, segment).min((ssthresh - pipe) as i64)
        };
        // The fast retransmit itself goes out in any case.
        let least = if self.out > 0 { 0 } else { segment };
        parts.set_window(pipe + count.max(least) as u64);
    }
}

impl Prr {
    /// With the slow-start reduction bound, or the conservative one; whether the ACK that ends the recovery opens the window too.
    pub fn new(conservative: bool, grows_on_exit: bool) -> Self {
        Self {
            conservative,
            grows_on_exit,
            count: Count::begin(0),
            booked: 0,
        }
    }

    fn update(&mut self, delivered: u64, pipe: u64, parts: &mut SenderParts<'_>) {
        let conservative = self.conservative;
        self.count
            .update(delivered, pipe, parts, |unspent, segment| {
                if conservative {
                    unspent
                } else {
                    unspent.max(delivered as i64) + segment
                }
            });
    }
}

impl WindowReduction for Prr {
    fn enter(&mut self, event: &AckEvent, episode: &Episode, parts: &mut SenderParts<'_>) {
        let flight = flight(episode, parts.board);
        let pipe = parts.board.pipe();
        parts.congestion.on_loss(event.now, parts.window, flight);
        self.booked = 0;
        self.count = Count::begin(parts.board.outstanding());
        self.update(event.delivered, pipe, parts);
    }

    fn on_duplicate(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) {
        let mut delivered = event.delivered;
        if delivered == 0 {
            delivered = parts.window.segment();
            self.booked += delivered;
        }
        let pipe = parts.board.pipe();
        self.update(delivered, pipe, parts);
    }

    fn on_partial(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) {
        let counted = event.delivered.min(self.booked);
        self.booked -= counted;
        let pipe = parts.board.pipe();
        self.update(event.delivered - counted, pipe, parts);
    }

    fn on_sent(&mut self, bytes: u64) {
        self.count.out += bytes;
    }

    fn leave(&mut self, parts: &mut SenderParts<'_>) {
        parts.set_window(parts.window.ssthresh);
    }

    /// In Linux a recovery is over before the window grows by what the same ACK delivers.
    fn credit_on_exit(&self, event: &AckEvent) -> u64 {
        if self.grows_on_exit {
            event.delivered
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Count;

    #[test]
    fn large_windows_send_in_proportion_and_in_ns3_nothing() {
        let half_delivered = |wraps| Count {
            delivered: 1_000_000,
            wraps,
            ..Count::begin(2_000_000)
        };
        assert_eq!(half_delivered(false).proportion(900_000), 450_000);
        // 2^32 over the flight at most.
        assert!(half_delivered(true).proportion(900_000) < 2_148);
    }
}
