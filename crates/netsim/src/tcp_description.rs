//! TCP's part of a run's description: a profile, and what departs from it.

use serde::Deserialize;

use crate::error::Error;
use crate::methods::Named;
use crate::tcp::config::{
    CongestionAlgorithm, Detection, Ns3MptcpMethod, Pacing, Reduction, RenoGrowth, SpuriousHandling,
};
use crate::tcp::{Config, Profile};
use crate::time::seconds;

/// Set the fields of a configuration that are given.
macro_rules! overwrite {
    ($config:ident, $given:ident: $($field:ident),+) => {
        $($config.$field = $given.$field.unwrap_or($config.$field);)+
    };
}

/// TCP of all hosts. Whatever is left out is the profile's.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct TcpDescription {
    /// Whose behaviour it is: `rfc`, `ns3` (ns-3 3.37, classic recovery) or `linux`.
    pub profile: Profile,
    /// Most bytes of data in a segment.
    pub mss_bytes: Option<u32>,
    /// Bytes written and not acknowledged, at most; of each stream with early binding, else of the whole connection.
    pub send_buffer_bytes: Option<u32>,
    /// Bytes received and not read, at most.
    pub receive_buffer_bytes: Option<u32>,
    /// Window after the handshake.
    pub initial_window_segments: Option<u32>,
    /// Slow-start threshold after the handshake.
    pub initial_ssthresh_bytes: Option<u64>,
    /// Full segments after which an ACK is due; 1 turns delaying off.
    pub delayed_ack_segments: Option<u32>,
    /// The longest that an ACK is delayed.
    pub delayed_ack_timeout_s: Option<f64>,
    /// Selective acknowledgements.
    pub sack: Option<bool>,
    /// Timestamps.
    pub timestamps: Option<bool>,
    /// Window scaling.
    pub window_scaling: Option<bool>,
    /// New data on the first duplicate ACKs.
    pub limited_transmit: Option<bool>,
    /// Duplicate ACKs after which data is taken for lost.
    pub duplicate_threshold: Option<u32>,
    /// Whether the window falls in pauses longer than the retransmission timeout (profile `linux`).
    pub slow_start_after_idle: Option<bool>,
    /// Hold small segments back while data is unacknowledged.
    pub nagle: Option<bool>,
    /// `reno`, `cubic`, `bbr`, or a user-defined `MODULE:NAME`.
    pub congestion_control: Option<Named<CongestionName>>,
    /// `classic`, `prr`, `prr_conservative` or `keep`.
    pub recovery: Option<Reduction>,
    /// What becomes of reductions without cause: `ignored`, `eifel` (needs timestamps), `frto`, `dsack` (needs SACK) or `door`.
    pub spurious: Option<SpuriousHandling>,
    /// The response to reordering by its name in the literature, or a user-defined `MODULE:NAME`, in place of `recovery` and `spurious`.
    pub reordering: Option<Named<ReorderingName>>,
    /// Whether duplicate ACKs begin a recovery; else the retransmission timer alone does.
    pub fast_retransmit: Option<bool>,
    /// Least retransmission timeout.
    pub rto_min_s: Option<f64>,
    /// Timeout of the SYN.
    pub rto_initial_s: Option<f64>,
    /// Greatest retransmission timeout.
    pub rto_max_s: Option<f64>,
    /// `off`, `window` (2 cwnd / srtt in slow start, 1.2 afterwards) or `allocated` (1 % above each path's rate, if it has one). Unless
    /// given: the streams of MSTCP as `allocated`, and nothing else.
    pub pacing: Option<PacingName>,
}

/// Congestion control by name.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CongestionName {
    /// RFC 5681, counted as the profile does.
    Reno,
    /// RFC 9438; with profile `ns3`, ns-3's.
    Cubic,
    /// BBR v1, its data is paced; with profile `ns3`, ns-3's.
    Bbr,
}

/// A response to reordering, by its name in the literature.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum ReorderingName {
    /// Nothing beyond the profile's TCP (NoPR).
    None,
    /// D-SACK: RFC 3708 with RFC 2883; needs SACK.
    Dsack,
    /// Eifel: RFC 3522 and RFC 4015; needs timestamps.
    Eifel,
    /// F-RTO: RFC 5682.
    Frto,
    /// TCP-DOOR: Wang and Zhang 2002.
    Door,
    /// PR-R: Alheid et al. 2016.
    PrR,
    /// TCP-PR: Bohacek et al. 2003.
    TcpPr,
    /// RACK-TLP: RFC 8985; needs SACK.
    Rack,
}

impl ReorderingName {
    /// The method of this name in the MPTCP model of ns-3, if it has one of its own.
    fn of_ns3_mptcp(self) -> Option<Ns3MptcpMethod> {
        match self {
            Self::Dsack => Some(Ns3MptcpMethod::DSack),
            Self::Eifel => Some(Ns3MptcpMethod::Eifel),
            Self::Frto => Some(Ns3MptcpMethod::FRto),
            Self::Door => Some(Ns3MptcpMethod::Door),
            Self::None | Self::PrR | Self::TcpPr | Self::Rack => None,
        }
    }

    fn apply(self, config: &mut Config) {
        if self == Self::Rack && config.detection == Detection::Rack {
            return;
        }
        config.spurious = SpuriousHandling::Ignored;
        if let (Detection::Ns3Mptcp(method), Some(own)) =
            (&mut config.detection, self.of_ns3_mptcp())
        {
            *method = own;
            return;
        }
        config.detect_by_duplicates();
        match self {
            Self::None => {}
            Self::Dsack => config.spurious = SpuriousHandling::DSack,
            Self::Eifel => config.spurious = SpuriousHandling::Eifel,
            Self::Frto => config.spurious = SpuriousHandling::FRto,
            Self::Door => config.spurious = SpuriousHandling::Door,
            Self::PrR => config.reduction = Reduction::Keep,
            Self::TcpPr => config.detection = Detection::Delay,
            Self::Rack => {
                config.detection = Detection::Rack;
                config.dsack = true;
            }
        }
    }
}

/// Pacing by name.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum PacingName {
    /// None.
    Off,
    /// By cwnd / srtt.
    Window,
    /// By the rate of the path.
    Allocated,
}

impl TcpDescription {
    /// Refuse settings that contradict each other or cannot be.
    ///
    /// # Errors
    /// [`Error::Description`] names the first.
    pub fn check(&self) -> Result<(), Error> {
        Error::require(
            self.reordering.is_none() || self.spurious.is_none(),
            "tcp.reordering",
            "says what spurious says: give one of them",
        )?;
        let is_reduction = matches!(
            self.reordering.as_ref().and_then(Named::built_in),
            Some(ReorderingName::PrR)
        );
        Error::require(
            !is_reduction || matches!(self.recovery, None | Some(Reduction::Keep)),
            "tcp.reordering",
            "pr_r is a recovery itself: leave recovery out, or set it to \"keep\"",
        )?;
        self.config(None)
            .validate()
            .map_err(|reason| Error::description("tcp", reason))
    }

    /// The congestion control of a flow that names one of its own.
    pub fn congestion(&self, name: CongestionName) -> CongestionAlgorithm {
        match name {
            CongestionName::Cubic if self.profile == Profile::Ns3 => CongestionAlgorithm::Ns3Cubic,
            CongestionName::Cubic if self.profile == Profile::Linux => {
                CongestionAlgorithm::LinuxCubic {
                    paced: self.pacing.is_some_and(|name| name != PacingName::Off),
                }
            }
            CongestionName::Cubic => CongestionAlgorithm::Cubic,
            CongestionName::Bbr if self.profile == Profile::Ns3 => {
                CongestionAlgorithm::Ns3Bbr { seed: 0 }
            }
            CongestionName::Bbr => CongestionAlgorithm::Bbr { seed: 0 },
            CongestionName::Reno => CongestionAlgorithm::Reno(self.reno_growth()),
        }
    }

    /// How the profile's Reno counts.
    pub fn reno_growth(&self) -> RenoGrowth {
        match self.profile {
            Profile::Rfc => RenoGrowth::Bytes,
            Profile::Ns3 | Profile::Ns3Mptcp => RenoGrowth::Acks,
            Profile::Linux => RenoGrowth::Segments,
        }
    }

    /// The settings of a connection whose path is allocated `rate_bps` of data, if any.
    pub fn config(&self, rate_bps: Option<f64>) -> Config {
        let mut config = Config::profile(self.profile);
        overwrite!(config, self: mss_bytes, send_buffer_bytes, receive_buffer_bytes, initial_window_segments);
        overwrite!(config, self: initial_ssthresh_bytes, delayed_ack_segments, sack, timestamps, window_scaling);
        overwrite!(config, self: limited_transmit, duplicate_threshold, nagle, slow_start_after_idle);
        for (field, given_s) in [
            (&mut config.delayed_ack_timeout, self.delayed_ack_timeout_s),
            (&mut config.rto.min, self.rto_min_s),
            (&mut config.rto.initial, self.rto_initial_s),
            (&mut config.rto.max, self.rto_max_s),
        ] {
            *field = given_s.map_or(*field, seconds);
        }
        if let Some(&name) = self.congestion_control.as_ref().and_then(Named::built_in) {
            config.congestion = self.congestion(name);
        }
        if !config.sack && self.reordering.is_none() {
            config.detect_by_duplicates();
        }
        config.reduction = self.recovery.unwrap_or(config.reduction);
        config.spurious = self.spurious.unwrap_or(config.spurious);
        if let Some(name) = self.reordering.as_ref().and_then(Named::built_in) {
            name.apply(&mut config);
        }
        config.dsack |= config.spurious == SpuriousHandling::DSack;
        if self.fast_retransmit == Some(false) {
            config.detection = Detection::TimerOnly;
        }
        config.pacing = match (self.pacing, rate_bps) {
            (Some(PacingName::Off), _) | (None | Some(PacingName::Allocated), None) => Pacing::Off,
            (Some(PacingName::Window), _) => Pacing::Window {
                slow_start_percent: 200,
                avoidance_percent: 120,
            },
            (None | Some(PacingName::Allocated), Some(rate)) => Pacing::at(rate),
        };
        if let CongestionAlgorithm::LinuxCubic { paced } = &mut config.congestion {
            *paced = config.pacing != Pacing::Off;
        }
        config
    }
}
