//! What is remembered of a reduction, and when it is undone.

mod dsack;
mod eifel;
mod frto;
mod linux;
mod tcp_door;

pub use dsack::DSack;
pub use eifel::Eifel;
pub use frto::FRto;
pub use linux::Linux;
pub use tcp_door::TcpDoor;

use super::super::config::{Config, Detection, Ns3MptcpMethod, SpuriousHandling};
use super::super::congestion::Window;
use super::super::ns3::{FRtoStep, Ns3DSack, Ns3Eifel, Ns3FRto};
use super::super::scoreboard::{Scoreboard, Transmission};
use super::super::segment::Segment;
use super::{AckEvent, Episode};
use crate::time::Nanos;

/// A reduction that is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Undo {
    /// The window to go back to.
    pub window: Window,
    /// Whether what was taken for lost is under way after all, and the recovery over.
    pub resume: bool,
}

/// Tells reductions for which there was no cause, and takes them back.
pub trait SpuriousResponse: std::fmt::Debug + Send {
    /// The window is about to shrink by a fast retransmit, or by the retransmission timer; the timer tells once of a segment.
    fn on_reduction(
        &mut self,
        _now: Nanos,
        _window: &Window,
        _board: &Scoreboard,
        _by_timer: bool,
    ) {
    }

    /// A segment was sent again.
    fn on_resent(&mut self, _now: Nanos, _sent: &Transmission) {}

    /// Segments have arrived in another order than they left, here or at the peer; `rto` is the retransmission timeout. What is to be
    /// undone by it.
    fn on_out_of_order(&mut self, _now: Nanos, _rto: Nanos) -> Option<Undo> {
        None
    }

    /// Whether window, threshold and timeout stay as they are for the present, whatever is lost.
    fn holds_window(&self, _now: Nanos) -> bool {
        false
    }

    /// Whether what is taken for lost is not sent again for the present, and new data in its place.
    fn withholds(&self) -> bool {
        false
    }

    /// Whether an ACK is ignored as if it had been lost.
    fn ignores_ack(&mut self, _window: &Window) -> bool {
        false
    }

    /// Take a duplicate before the detector counts it; what is to be undone by it, and then it does not count.
    fn excuses_duplicate(&mut self, _event: &AckEvent, _segment: &Segment) -> Option<Undo> {
        None
    }

    /// Whether a duplicate opens the window as an ACK of new data does.
    fn opens_on_duplicates(&self) -> bool {
        false
    }

    /// The connection that this subflow belongs to has seen that what was sent again had arrived; what is to be undone.
    fn on_needless(&mut self, _window: &Window) -> Option<Undo> {
        None
    }

    /// Take an ACK, after the recovery did; what is to be undone by it.
    fn on_ack(
        &mut self,
        _event: &AckEvent,
        _segment: &Segment,
        _episode: &Episode,
    ) -> Option<Undo> {
        None
    }
}

/// The response that a configuration asks for; none: every reduction stands.
pub fn build(config: &Config) -> Option<Box<dyn SpuriousResponse>> {
    if let Detection::Ns3Mptcp(method) = config.detection {
        return ns3_mptcp(method);
    }
    match config.spurious {
        SpuriousHandling::Ignored => None,
        SpuriousHandling::Linux => Some(Box::<Linux>::default()),
        SpuriousHandling::Eifel => Some(Box::new(Eifel::new(config))),
        SpuriousHandling::FRto => Some(Box::<FRto>::default()),
        SpuriousHandling::DSack => Some(Box::<DSack>::default()),
        SpuriousHandling::Door => Some(Box::<TcpDoor>::default()),
    }
}

fn ns3_mptcp(method: Ns3MptcpMethod) -> Option<Box<dyn SpuriousResponse>> {
    match method {
        Ns3MptcpMethod::NoPr | Ns3MptcpMethod::Door => None,
        Ns3MptcpMethod::DSack => Some(Box::<Ns3DSack>::default()),
        Ns3MptcpMethod::Eifel => Some(Box::<Ns3Eifel>::default()),
        Ns3MptcpMethod::FRto => Some(Box::new(Ns3FRto::new(0, FRtoStep::default()))),
    }
}
