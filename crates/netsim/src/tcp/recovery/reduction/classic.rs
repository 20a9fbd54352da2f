//! At once to `ssthresh` (RFC 6582, RFC 6675).

use super::super::{AckEvent, Episode, SenderParts};
use super::{flight, WindowReduction};

/// The window is `ssthresh` from the beginning of a recovery on.
#[derive(Debug, Clone)]
pub struct Classic;

impl WindowReduction for Classic {
    fn enter(&mut self, event: &AckEvent, episode: &Episode, parts: &mut SenderParts<'_>) {
        let flight = flight(episode, parts.board);
        parts.congestion.on_loss(event.now, parts.window, flight);
        parts.set_window(parts.window.ssthresh);
    }

    /// RFC 6582, 3.2 step 3, full acknowledgement: the window becomes `ssthresh`, without a burst (option 1).
    fn leave(&mut self, parts: &mut SenderParts<'_>) {
        let segment = parts.window.segment();
        let burstless = parts.board.outstanding().max(segment) + segment;
        parts.set_window(parts.window.ssthresh.min(burstless));
    }
}
