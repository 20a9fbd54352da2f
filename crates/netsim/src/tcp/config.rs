//! Settings of a connection, and the profiles in which stacks differ.

use serde::Deserialize;

use super::options::OptionLayout;
use crate::time::{Nanos, MILLISECOND, SECOND};

/// Whose behaviour a [`Config`] begins with.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// What the RFCs recommend.
    #[default]
    Rfc,
    /// What ns-3 3.37 does (`TcpSocketBase`, `TcpNewReno`, `TcpClassicRecovery`), with SACK on as there.
    Ns3,
    /// What Linux does.
    Linux,
    /// Subflows of the MPTCP model of ns-3 (Chihani and Collange 2011).
    Ns3Mptcp,
}

/// How the congestion window grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CongestionAlgorithm {
    /// Slow start and congestion avoidance of RFC 5681.
    Reno(RenoGrowth),
    /// RFC 9438.
    Cubic,
    /// CUBIC as Linux has it, with hybrid slow start.
    LinuxCubic {
        /// Whether data is paced.
        paced: bool,
    },
    /// CUBIC as ns-3 3.37 has it.
    Ns3Cubic,
    /// BBR v1 (draft-cardwell-iccrg-bbr-congestion-control-00).
    Bbr {
        /// Where in its cycle it begins to probe.
        seed: u64,
    },
    /// BBR as ns-3 3.37 has it.
    Ns3Bbr {
        /// Where in its cycle it begins to probe.
        seed: u64,
    },
}

/// How Reno counts what an ACK acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenoGrowth {
    /// Slow start by at most one segment an ACK, then a segment each `cwnd` acknowledged bytes (RFC 5681 3.1, RFC 3465).
    Bytes,
    /// Slow start by one segment an ACK, then `mss * mss / cwnd` an ACK (RFC 5681 equation 3; ns-3): a delayed ACK halves the growth.
    Acks,
    /// Slow start by all that is acknowledged, then a segment each `cwnd` acknowledged segments (Linux).
    Segments,
}

/// How the window shrinks while lost data is repaired.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// At once to `ssthresh` (RFC 6582, RFC 6675).
    Classic,
    /// In proportion to what is delivered, with the slow-start reduction bound (RFC 6937 PRR-SSRB).
    Prr,
    /// In proportion, with the conservative reduction bound (RFC 6937 PRR-CRB).
    PrrConservative,
    /// Not at all: a fast retransmit leaves the window as it is, and only a timeout shrinks it (PR-R; Alheid et al., ICT 2016).
    Keep,
}

/// How a reduction is found to have been without cause, and taken back.
#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum SpuriousHandling {
    /// It is not.
    Ignored,
    /// By timestamps or by reports of all that was sent again, back to the window before (Linux).
    #[serde(skip_deserializing)]
    Linux,
    /// By the timestamps that ACKs echo: Eifel (RFC 3522, RFC 4015).
    Eifel,
    /// By what the first two ACKs after a timeout acknowledge: F-RTO (RFC 5682).
    FRto,
    /// By the receiver's reports of what arrived twice: D-SACK (RFC 3708 with RFC 2883); slow start leads back.
    DSack,
    /// By segments that arrive in another order than they left: TCP-DOOR (Wang and Zhang, MobiHoc 2002).
    Door,
}

/// When a partial ACK restarts the retransmission timer (RFC 6582, 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Impatient {
    /// Each partial ACK does: "slow but steady".
    Never,
    /// Only the first one does, unless SACK is in use.
    WithoutSack,
    /// Only the first one does.
    Always,
}

/// A stream without a rate repeats what was lost on its path at this rate, as in the library.
const IDLE_RATE_BPS: u64 = 1_000_000;
/// Streams are paced so much above their rates, as in the library.
const PACING_SLACK: f64 = 1.01;

/// The rate at which new segments may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// As fast as the window allows.
    Off,
    /// This many bits of data each second.
    Rate {
        /// Bits of data (without headers) a second.
        rate_bps: u64,
    },
    /// In proportion to cwnd / srtt, as Linux does without `SO_MAX_PACING_RATE`.
    Window {
        /// Percent of cwnd / srtt while cwnd < ssthresh / 2.
        slow_start_percent: u32,
        /// Percent of cwnd / srtt afterwards.
        avoidance_percent: u32,
    },
}

impl Pacing {
    /// Pacing of a stream that is allocated this many bits of data a second.
    pub fn at(allocated_bps: f64) -> Self {
        let rate_bps = match (allocated_bps * PACING_SLACK) as u64 {
            0 => IDLE_RATE_BPS,
            rate_bps => rate_bps,
        };
        Self::Rate { rate_bps }
    }
}

/// How loss is told from delay and reordering, with the bookkeeping and the reduction that go with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detection {
    /// Duplicate ACKs and SACK blocks after RFC 5681, RFC 6582 and RFC 6675.
    DuplicateAcks,
    /// The same as ns-3 3.37 does it ([`Ns3DuplicateAcks`](super::ns3::Ns3DuplicateAcks) names the differences).
    Ns3,
    /// By time and a window for reordering: RACK, with tail loss probes (RFC 8985).
    Rack,
    /// By delay alone, whatever comes in which order: TCP-PR (Bohacek et al. 2003).
    Delay,
    /// One segment at the third duplicate ACK, as in the MPTCP model of ns-3 (Chihani and Collange 2011), or what one of its
    /// methods against reordering makes of that.
    Ns3Mptcp(Ns3MptcpMethod),
    /// By the retransmission timer alone: duplicate ACKs and SACK blocks begin no recovery.
    TimerOnly,
}

/// A method against reordering as the MPTCP model of ns-3 has it; little is left of the RFCs' (docs/simulator-tcp.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ns3MptcpMethod {
    /// None: three duplicates halve the window and send the segment again.
    NoPr,
    /// What waits for the connection is reported by a block, and counts against the subflow that has the missing segment.
    DSack,
    /// A duplicate that an older segment than the retransmission raised takes the reduction back.
    Eifel,
    /// Duplicates are ignored; now and then a window of ACKs is too.
    FRto,
    /// Duplicates are ignored.
    Door,
}

/// How the retransmission timeout follows from samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutRule {
    /// RFC 6298, 2.
    Rfc6298,
    /// The same, with the least timeout as the least of what comes on top of the round trip (Linux).
    LeastMargin,
    /// ns-3 before its 3.9: gains of 0.1 for both means, and twice the round trip unless four deviations are more
    /// (`RttMeanDeviation`).
    Ns3MeanDeviation,
}

/// What is sent again for a sign of loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetransmissionScope {
    /// All that is taken for lost, after a timeout all that is out.
    All,
    /// The first segment alone, and no inflation of the window; a timeout lowers the window like any other loss. So does the
    /// MPTCP model of ns-3 (Chihani and Collange 2011).
    First,
}

/// When the window may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowGrowth {
    /// While the window is what limits the sender (RFC 7661).
    WhenUsed,
    /// While it is, or was in the last round trip, and in slow start to twice what is out (Linux).
    WhenUsedLately,
    /// Even if the application or the receiver is what limits it (ns-3).
    Always,
}

/// When the back-off of the retransmission timer ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackoffEnd {
    /// With a new sample (RFC 6298, 5).
    Sample,
    /// With an ACK of new data (ns-3, Linux).
    Progress,
}

/// Which ACKs give samples of the round-trip time when timestamps are in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RttSampling {
    /// All that advance (RFC 7323, 4.1).
    Echoes,
    /// Not those of what was sent again; and only the segment expected next is echoed (ns-3).
    FirstSentOnly,
    /// By when the oldest acknowledged segment left that was sent once, and not the handshake's: echoes are for other purposes (the
    /// MPTCP model of ns-3).
    Departures,
}

/// When ACKs leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AckRules {
    /// An ACK that is due is sent by itself, even if data that could carry it follows at once (ns-3).
    pub separate: bool,
    /// This many segments are acknowledged at once at the beginning and, with `when_read`, after a pause or a duplicate, unless half of
    /// the window is less (Linux, `TCP_MAX_QUICKACKS`; one in ns-3).
    pub quick: u32,
    /// Once all has been read, pushed data is acknowledged at once, unless this side has just answered (Linux, `tcp_cleanup_rbuf` and
    /// its pingpong mode).
    pub when_read: bool,
}

/// The retransmission timer (RFC 6298).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RtoSettings {
    /// Timeout of the SYN; doubled at each retry (RFC 6298, 2.1: 1 s).
    pub initial: Nanos,
    /// The least timeout once a round trip is known (RFC 6298, 2.4: 1 s; Linux 200 ms).
    pub min: Nanos,
    /// Where doubling ends (RFC 6298, 2.5: at least 60 s).
    pub max: Nanos,
}

/// Settings of one side of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Config {
    /// The most bytes of data in a segment (SMSS); the peer's SYN may lower it.
    pub mss_bytes: u32,
    /// Bytes written and not yet acknowledged that are kept.
    pub send_buffer_bytes: u32,
    /// Bytes received and not yet read that are kept; the largest window advertised.
    pub receive_buffer_bytes: u32,
    /// The window after the handshake, in segments (RFC 6928: 10).
    pub initial_window_segments: u32,
    /// The slow-start threshold at the beginning, in bytes (RFC 5681, 3.1: arbitrarily high).
    pub initial_ssthresh_bytes: u64,
    /// Full segments after which an ACK is due (RFC 5681, 4.2: 2; 1 turns delaying off).
    pub delayed_ack_segments: u32,
    /// The longest that an ACK is delayed (RFC 1122, 4.2.3.2: below 500 ms).
    pub delayed_ack_timeout: Nanos,
    /// Offer and use selective acknowledgements (RFC 2018, RFC 6675).
    pub sack: bool,
    /// Offer and use timestamps (RFC 7323).
    pub timestamps: bool,
    /// Offer and use window scaling (RFC 7323, 2).
    pub window_scaling: bool,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Duplicate ACKs after which data is taken for lost (RFC 5681, 3.2: 3).
    pub duplicate_threshold: u32,
    /// Hold small segments back while data is unacknowledged (RFC 896).
    pub nagle: bool,
    /// How the window grows.
    pub congestion: CongestionAlgorithm,
    /// How the window shrinks during recovery.
    pub reduction: Reduction,
    /// Whether the ACK that ends a proportional reduction opens the window too (Linux).
    pub grows_on_exit: bool,
    /// What becomes of reductions without cause.
    pub spurious: SpuriousHandling,
    /// Report data that arrives twice in SACK blocks (RFC 2883).
    pub dsack: bool,
    /// With SACK too, ACKs count as duplicates that carry no new block (RFC 6675, 2 counts those with one alone).
    pub bare_duplicates: bool,
    /// When partial ACKs restart the timer.
    pub impatient: Impatient,
    /// The retransmission timer.
    pub rto: RtoSettings,
    /// How its timeout follows from samples.
    pub timeout: TimeoutRule,
    /// Retries of a SYN before the connection is given up.
    pub syn_retries: u32,
    /// Timeouts in a row before the connection is given up (RFC 9293, 3.8.3 R2).
    pub data_retries: u32,
    /// The first wait before a probe of a closed window; `None`: the retransmission timeout (RFC 9293, 3.8.6.1).
    pub persist_timeout: Option<Nanos>,
    /// How long the side that closed first remembers the connection (2 MSL; RFC 9293, 3.4.2).
    pub time_wait: Nanos,
    /// The sending rate.
    pub pacing: Pacing,
    /// How loss is told.
    pub detection: Detection,
    /// What is sent again for it.
    pub repair: RetransmissionScope,
    /// When the window may grow.
    pub growth: WindowGrowth,
    /// Whether the window falls in pauses (RFC 5681, 4.1), where its use is followed.
    pub slow_start_after_idle: bool,
    /// When the timer's back-off ends.
    pub backoff_end: BackoffEnd,
    /// Where samples of the round-trip time come from.
    pub sampling: RttSampling,
    /// When ACKs leave.
    pub acks: AckRules,
    /// How options are laid out.
    pub options: OptionLayout,
}

impl Default for Config {
    fn default() -> Self {
        Self::rfc()
    }
}

impl Config {
    /// The settings of `profile`.
    pub fn profile(profile: Profile) -> Self {
        match profile {
            Profile::Rfc => Self::rfc(),
            Profile::Ns3 => Self::ns3(),
            Profile::Linux => Self::linux(),
            Profile::Ns3Mptcp => Self::ns3_mptcp(),
        }
    }

    /// What the RFCs recommend: SACK, timestamps, Reno, RTO of at least a second.
    pub fn rfc() -> Self {
        Self {
            mss_bytes: 536,
            send_buffer_bytes: 131_072,
            receive_buffer_bytes: 131_072,
            initial_window_segments: 10,
            initial_ssthresh_bytes: u64::MAX,
            delayed_ack_segments: 2,
            delayed_ack_timeout: 200 * MILLISECOND,
            sack: true,
            timestamps: true,
            window_scaling: true,
            limited_transmit: true,
            duplicate_threshold: 3,
            nagle: false,
            congestion: CongestionAlgorithm::Reno(RenoGrowth::Bytes),
            reduction: Reduction::Classic,
            grows_on_exit: false,
            spurious: SpuriousHandling::Ignored,
            dsack: false,
            bare_duplicates: false,
            impatient: Impatient::WithoutSack,
            rto: RtoSettings {
                initial: SECOND,
                min: SECOND,
                max: 60 * SECOND,
            },
            timeout: TimeoutRule::Rfc6298,
            syn_retries: 6,
            data_retries: 15,
            persist_timeout: None,
            time_wait: 240 * SECOND,
            pacing: Pacing::Off,
            repair: RetransmissionScope::All,
            detection: Detection::DuplicateAcks,
            growth: WindowGrowth::WhenUsed,
            slow_start_after_idle: true,
            backoff_end: BackoffEnd::Sample,
            sampling: RttSampling::Echoes,
            acks: AckRules {
                separate: false,
                quick: 0,
                when_read: false,
            },
            options: OptionLayout::Aligned,
        }
    }

    /// Linux: CUBIC with hybrid slow start, RACK-TLP, PRR, RTO of at least 200 ms, ACKs delayed by 40 ms.
    pub fn linux() -> Self {
        Self {
            mss_bytes: 1448,
            send_buffer_bytes: 4 << 20,
            receive_buffer_bytes: 6 << 20,
            delayed_ack_timeout: 40 * MILLISECOND,
            congestion: CongestionAlgorithm::LinuxCubic { paced: false },
            reduction: Reduction::Prr,
            grows_on_exit: true,
            detection: Detection::Rack,
            growth: WindowGrowth::WhenUsedLately,
            spurious: SpuriousHandling::Linux,
            dsack: true,
            impatient: Impatient::Never,
            rto: RtoSettings {
                min: 200 * MILLISECOND,
                max: 120 * SECOND,
                ..Self::rfc().rto
            },
            timeout: TimeoutRule::LeastMargin,
            time_wait: 60 * SECOND,
            backoff_end: BackoffEnd::Progress,
            acks: AckRules {
                separate: false,
                quick: 16,
                when_read: true,
            },
            ..Self::rfc()
        }
    }

    /// Go by duplicate ACKs where RACK is the profile's way: without SACK, and beneath a method against reordering.
    pub fn detect_by_duplicates(&mut self) {
        if self.detection == Detection::Rack {
            self.detection = Detection::DuplicateAcks;
            self.dsack = false;
        }
    }

    fn compares_timestamps(&self) -> bool {
        self.spurious == SpuriousHandling::Eifel
            || self.detection == Detection::Ns3Mptcp(Ns3MptcpMethod::Eifel)
    }

    /// Check that a connection can work with these settings.
    ///
    /// # Errors
    /// A sentence that names the first field that is out of its range.
    pub fn validate(&self) -> Result<(), String> {
        let rules: [(bool, &str, &str); 13] = [
            (
                self.sack || self.detection != Detection::Rack,
                "sack",
                "on, since RACK works by its blocks (RFC 8985, 3.1)",
            ),
            (
                self.timestamps || !self.compares_timestamps(),
                "timestamps",
                "on, since Eifel compares them (RFC 3522)",
            ),
            (
                self.sack || !self.dsack,
                "sack",
                "on, since D-SACK reports duplicates in its blocks (RFC 2883)",
            ),
            (self.mss_bytes > 0, "mss_bytes", "at least 1"),
            (
                self.send_buffer_bytes >= self.mss_bytes,
                "send_buffer_bytes",
                "at least one segment",
            ),
            (
                self.receive_buffer_bytes >= self.mss_bytes,
                "receive_buffer_bytes",
                "at least one segment",
            ),
            (
                self.receive_buffer_bytes <= 1 << 30,
                "receive_buffer_bytes",
                "at most 2^30 (RFC 7323, 2.3)",
            ),
            (
                self.initial_window_segments > 0,
                "initial_window_segments",
                "at least 1",
            ),
            (
                self.delayed_ack_segments > 0,
                "delayed_ack_segments",
                "at least 1",
            ),
            (
                self.duplicate_threshold > 0,
                "duplicate_threshold",
                "at least 1",
            ),
            (self.rto.initial > 0 && self.rto.min > 0, "rto", "positive"),
            (self.rto.max >= self.rto.min, "rto.max", "at least rto.min"),
            (
                self.pacing != Pacing::Rate { rate_bps: 0 },
                "pacing",
                "a rate above 0 bit/s",
            ),
        ];
        match rules.iter().find(|rule| !rule.0) {
            Some((_, field, requirement)) => {
                Err(format!("TCP setting {field} must be {requirement}"))
            }
            None => Ok(()),
        }
    }
}
