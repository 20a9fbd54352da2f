//! No fast retransmit.

use super::LossDetector;

/// Takes nothing for lost before the retransmission timer expires. So do, by what Alheid et al. (ICT 2016, V-B) say of it, the TCP-DOOR
/// and the F-RTO of ns-3's MPTCP.
#[derive(Debug, Clone)]
pub struct TimerOnly;

impl LossDetector for TimerOnly {}
