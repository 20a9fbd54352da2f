//! The window in ns-3's recovery (`TcpClassicRecovery`, `TcpPrrRecovery` of 3.37).

use super::super::config::Reduction;
use super::super::delivery_rate::SampleRule;
use super::super::recovery::reduction::prr::Count;
use super::super::recovery::reduction::WindowReduction;
use super::super::recovery::{AckEvent, Episode, SenderParts};

/// ns-3's reduction, classic or in proportion: `ssthresh` is half of the estimated pipe, guesses subtracted, not half of all
/// unacknowledged data (RFC 5681 equation 4).
#[derive(Debug, Clone)]
pub struct Ns3 {
    reduction: Reduction,
    count: Count,
}

impl Ns3 {
    /// By the rule of `reduction`.
    pub fn new(reduction: Reduction) -> Self {
        Self {
            reduction,
            count: Count::begin(0),
        }
    }

    /// PRR takes a duplicate ACK without SACK for no delivery, and lags one ACK behind with its pipe. It multiplies in 32 bits: of large
    /// windows nothing is sent until what is under way is down to `ssthresh`.
    fn update(&mut self, event: &AckEvent, pipe: u64, parts: &mut SenderParts<'_>) {
        if parts.congestion.samples() == Some(SampleRule::Ns3) {
            return;
        }
        let delivered = event.delivered;
        let conservative = self.reduction == Reduction::PrrConservative;
        let progress = event.advance.resent;
        self.count
            .update(delivered, pipe, parts, |unspent, segment| {
                if conservative {
                    unspent
                } else {
                    bounded(unspent, delivered as i64, progress, segment)
                }
            });
    }
}

/// ns-3's bound: slow start only on ACKs of what was sent again; its unsigned difference makes a deficit the larger.
fn bounded(unspent: i64, delivered: i64, progress: bool, segment: i64) -> i64 {
    match (progress, unspent < 0) {
        (false, _) => delivered,
        (true, true) => unspent + segment,
        (true, false) => unspent.max(delivered) + segment,
    }
}

impl WindowReduction for Ns3 {
    fn enter(&mut self, event: &AckEvent, episode: &Episode, parts: &mut SenderParts<'_>) {
        parts
            .congestion
            .on_recovery(parts.window, event.pipe, event.delivered);
        let pipe = parts.board.pipe();
        let guess = if episode.sack {
            0
        } else {
            parts.window.segment()
        };
        parts
            .congestion
            .on_loss(event.now, parts.window, pipe + guess);
        if self.reduction == Reduction::Classic {
            if parts.congestion.samples() != Some(SampleRule::Ns3) {
                parts.set_window(parts.window.ssthresh);
            }
            return;
        }
        self.count = Count {
            wraps: true,
            ..Count::begin(parts.board.outstanding())
        };
        self.update(event, pipe, parts);
    }

    fn on_duplicate(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) {
        if self.reduction != Reduction::Classic {
            self.update(event, event.pipe, parts);
        }
    }

    fn on_partial(&mut self, event: &AckEvent, parts: &mut SenderParts<'_>) {
        self.on_duplicate(event, parts);
    }

    fn on_sent(&mut self, bytes: u64) {
        self.count.out += bytes;
    }

    fn leave(&mut self, parts: &mut SenderParts<'_>) {
        parts.set_window(parts.window.ssthresh);
    }

    fn lowers_at_each_timeout(&self) -> bool {
        true
    }

    fn credit_on_exit(&self, event: &AckEvent) -> u64 {
        event.ack - event.before
    }
}
