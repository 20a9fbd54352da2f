//! How the window shrinks while lost data is sent again.

mod classic;
mod keep;
pub(in crate::tcp) mod prr;

pub use classic::Classic;
pub use keep::KeepWindow;
pub use prr::Prr;

use super::super::config::{Config, Detection, Reduction};
use super::super::ns3::{Ns3, Ns3Mptcp};
use super::super::scoreboard::Scoreboard;
use super::{AckEvent, Episode, SenderParts};

/// Shrinks the window in a recovery. What is left to its default is as the RFCs have it.
pub trait WindowReduction: std::fmt::Debug + Send {
    /// A recovery begins: ask the congestion control for `ssthresh`, and set the window.
    fn enter(&mut self, event: &AckEvent, episode: &Episode, parts: &mut SenderParts<'_>);

    /// A duplicate ACK has arrived in a recovery.
    fn on_duplicate(&mut self, _event: &AckEvent, _parts: &mut SenderParts<'_>) {}

    /// A partial ACK of a segment at least has arrived.
    fn on_partial(&mut self, _event: &AckEvent, _parts: &mut SenderParts<'_>) {}

    /// `bytes` left in a recovery.
    fn on_sent(&mut self, _bytes: u64) {}

    /// The recovery has ended: set the window.
    fn leave(&mut self, parts: &mut SenderParts<'_>);

    /// Whether each timeout of the same segment lowers `ssthresh`. RFC 5681, 3.1 holds it.
    fn lowers_at_each_timeout(&self) -> bool {
        false
    }

    /// Whether the retransmission timeout doubles when a recovery begins.
    fn doubles_timeout(&self) -> bool {
        false
    }

    /// The bytes by which the ACK that ends a recovery opens the window too.
    fn credit_on_exit(&self, _event: &AckEvent) -> u64 {
        0
    }
}

/// RFC 5681 equation 4: all unacknowledged data, less what duplicate ACKs let out.
fn flight(episode: &Episode, board: &Scoreboard) -> u64 {
    board.outstanding().saturating_sub(episode.limited_bytes)
}

/// The reduction that a configuration asks for.
pub fn build(config: &Config) -> Box<dyn WindowReduction> {
    match (config.reduction, config.detection) {
        (Reduction::Keep, _) => Box::new(KeepWindow),
        (_, Detection::Ns3Mptcp(_)) => Box::new(Ns3Mptcp),
        (reduction, Detection::Ns3) => Box::new(Ns3::new(reduction)),
        (Reduction::Classic, _) => Box::new(Classic),
        (Reduction::Prr, _) => Box::new(Prr::new(false, config.grows_on_exit)),
        (Reduction::PrrConservative, _) => Box::new(Prr::new(true, config.grows_on_exit)),
    }
}
