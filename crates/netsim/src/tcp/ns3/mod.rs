//! ns-3's TCP where it differs from the RFCs and from Linux: two profiles, and the rules that their settings name.

mod bbr;
mod cubic;
mod duplicates;
mod mptcp_duplicates;
mod mptcp_reduction;
mod mptcp_responses;
mod reduction;

pub use bbr::Ns3Bbr;
pub use cubic::Ns3Cubic;
pub use duplicates::Ns3DuplicateAcks;
pub use mptcp_duplicates::Ns3MptcpDuplicateAcks;
pub use mptcp_reduction::Ns3Mptcp;
pub use mptcp_responses::{FRtoStep, Ns3DSack, Ns3Eifel, Ns3FRto};
pub use reduction::Ns3;

use super::config::{
    AckRules, BackoffEnd, Config, CongestionAlgorithm, Detection, Impatient, Ns3MptcpMethod,
    RenoGrowth, RetransmissionScope, RtoSettings, RttSampling, TimeoutRule, WindowGrowth,
};
use super::options::OptionLayout;
use crate::time::{MILLISECOND, SECOND};

impl Config {
    /// ns-3 3.37 with `TcpNewReno` and `TcpClassicRecovery` (turn [`sack`](Config::sack) off for the papers' runs).
    pub fn ns3() -> Self {
        Self {
            congestion: CongestionAlgorithm::Reno(RenoGrowth::Acks),
            impatient: Impatient::Always,
            rto: RtoSettings {
                initial: 3 * SECOND,
                ..Self::rfc().rto
            },
            data_retries: 6,
            persist_timeout: Some(6 * SECOND),
            detection: Detection::Ns3,
            growth: WindowGrowth::Always,
            backoff_end: BackoffEnd::Progress,
            sampling: RttSampling::FirstSentOnly,
            acks: AckRules {
                separate: true,
                quick: 1,
                when_read: false,
            },
            options: OptionLayout::Packed,
            ..Self::rfc()
        }
    }

    /// Subflows of the MPTCP model of ns-3: one segment is sent again for a loss, every segment is acknowledged, slow start ends
    /// at 65535 bytes at the latest (Chihani and Collange 2011); the timer is that of ns-3 at the time, without a least timeout.
    pub fn ns3_mptcp() -> Self {
        Self {
            initial_window_segments: 1,
            initial_ssthresh_bytes: 65_535,
            delayed_ack_segments: 1,
            rto: RtoSettings {
                min: MILLISECOND,
                ..Self::ns3().rto
            },
            timeout: TimeoutRule::Ns3MeanDeviation,
            data_retries: 1000,
            sack: false,
            timestamps: false,
            limited_transmit: false,
            detection: Detection::Ns3Mptcp(Ns3MptcpMethod::NoPr),
            repair: RetransmissionScope::First,
            backoff_end: BackoffEnd::Sample,
            sampling: RttSampling::Departures,
            ..Self::ns3()
        }
    }
}
