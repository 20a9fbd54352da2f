//! A wireless link's part of a run's description.

use serde::Deserialize;

use crate::time::seconds;
use crate::wifi::errors::{ErrorModel, Receiver};
use crate::wifi::medium::MediumSettings;
use crate::wifi::propagation::{Fading, Propagation};
use crate::wifi::queueing::Discipline;
use crate::wifi::rate_control::RateControlName;
use crate::wifi::standard::Standard;

/// A link of IEEE 802.11 between two stations, one of them the access point.
#[derive(Debug, Clone, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct WifiDescription {
    /// `802.11b` or `802.11g`.
    pub standard: Standard,
    /// Between the two stations, above 0.
    pub distance_m: f64,
    /// Rate of the physical layer; with a rate control that adapts, the first.
    pub phy_rate_bps: f64,
    /// `constant` or `aarf`.
    #[serde(default)]
    pub rate_control: RateControlName,
    /// `table`, `nist` or `yans`.
    #[serde(default)]
    pub error_model: ErrorModel,
    /// `standard` or `ns3`: what of a frame noise can spoil.
    #[serde(default)]
    pub receiver: Receiver,
    /// The loss grows by ten times this, in dB, for each tenfold distance.
    #[serde(default = "default_path_loss_exponent")]
    pub path_loss_exponent: f64,
    /// Loss at 1 m in dB.
    #[serde(default = "default_reference_loss_db")]
    pub reference_loss_db: f64,
    /// Sent power.
    #[serde(default = "default_tx_power_dbm")]
    pub tx_power_dbm: f64,
    /// Of the receivers, in dB.
    #[serde(default = "default_noise_figure_db")]
    pub noise_figure_db: f64,
    /// Nakagami's shape below `fading_far_from_m`; 1 is Rayleigh's fading, 1000 hardly any.
    #[serde(default = "default_fading_near_shape")]
    pub fading_near_shape: f64,
    /// Nakagami's shape from there on.
    #[serde(default = "default_fading_far_shape")]
    pub fading_far_shape: f64,
    /// Where the shape changes, in metres.
    #[serde(default = "default_fading_far_from_m")]
    pub fading_far_from_m: f64,
    /// Slots of 9 us instead of 20, with 802.11g.
    #[serde(default = "default_true")]
    pub short_slot: bool,
    /// Frames from this size on are announced by RTS and CTS; none: never.
    #[serde(default)]
    pub rts_threshold_bytes: Option<u32>,
    /// How often a frame is sent before it is given up.
    #[serde(default = "default_attempts")]
    pub attempts: u32,
    /// The same of frames that RTS and CTS announce.
    #[serde(default = "default_long_attempts")]
    pub long_attempts: u32,
    /// How long a frame waits before it is dropped; 0: for ever.
    #[serde(default = "default_lifetime_s")]
    pub lifetime_s: f64,
    /// Weaker frames are not noticed.
    #[serde(default = "default_detection_dbm")]
    pub detection_dbm: f64,
    /// Nor are those below this signal-to-noise ratio, in dB.
    #[serde(default = "default_detection_snr_db")]
    pub detection_snr_db: f64,
    /// From this power on a frame whose beginning was missed makes the medium busy.
    #[serde(default = "default_energy_detection_dbm")]
    pub energy_detection_dbm: f64,
    /// `drop_tail` or `fq_codel`: what holds packets in front of a station.
    #[serde(default)]
    pub queue_discipline: Discipline,
    /// Links of one channel share one medium; a link without a name has a medium of its own.
    #[serde(default)]
    pub channel: Option<String>,
}

/// Frames that a station's queue holds unless the link says otherwise.
pub const DEFAULT_QUEUE_PACKETS: u64 = 500;

impl WifiDescription {
    /// What the stations of the link's medium have in common.
    pub fn medium(&self, queue_packets: Option<u64>, link_header_bytes: u32) -> MediumSettings {
        MediumSettings {
            standard: self.standard,
            short_slot: self.short_slot,
            error_model: self.error_model,
            receiver: self.receiver,
            propagation: Propagation {
                tx_power_dbm: self.tx_power_dbm,
                reference_loss_db: self.reference_loss_db,
                path_loss_exponent: self.path_loss_exponent,
                fading: Fading {
                    near_shape: self.fading_near_shape,
                    far_shape: self.fading_far_shape,
                    far_from_m: self.fading_far_from_m,
                },
            },
            noise_figure_db: self.noise_figure_db,
            detection_dbm: self.detection_dbm,
            detection_snr_db: self.detection_snr_db,
            energy_detection_dbm: self.energy_detection_dbm,
            attempts: self.attempts,
            long_attempts: self.long_attempts,
            rts_threshold_bytes: self.rts_threshold_bytes,
            lifetime: (self.lifetime_s > 0.0).then(|| seconds(self.lifetime_s)),
            queue_packets: queue_packets.unwrap_or(DEFAULT_QUEUE_PACKETS),
            discipline: self.queue_discipline,
            link_header_bytes,
        }
    }

    /// The first value that cannot be: its key, and why.
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let ranges = [
            ("distance_m", self.distance_m, 1e-3, 1e5),
            ("path_loss_exponent", self.path_loss_exponent, 0.0, 10.0),
            ("reference_loss_db", self.reference_loss_db, -200.0, 200.0),
            ("tx_power_dbm", self.tx_power_dbm, -100.0, 100.0),
            ("noise_figure_db", self.noise_figure_db, 0.0, 100.0),
            ("fading_near_shape", self.fading_near_shape, 0.5, 1e9),
            ("fading_far_shape", self.fading_far_shape, 0.5, 1e9),
            ("fading_far_from_m", self.fading_far_from_m, 0.0, 1e6),
            ("attempts", f64::from(self.attempts), 1.0, 255.0),
            ("long_attempts", f64::from(self.long_attempts), 1.0, 255.0),
            ("lifetime_s", self.lifetime_s, 0.0, 3600.0),
            ("detection_dbm", self.detection_dbm, -200.0, 100.0),
            ("detection_snr_db", self.detection_snr_db, -100.0, 100.0),
            (
                "energy_detection_dbm",
                self.energy_detection_dbm,
                -200.0,
                100.0,
            ),
        ];
        for (key, value, least, most) in ranges {
            if !(least..=most).contains(&value) {
                return Some((key, format!("{value} is not between {least} and {most}")));
            }
        }
        if self.standard.rate(self.phy_rate_bps).is_none() {
            let known = self.standard.rates().iter();
            let known: Vec<String> = known
                .map(|rate| (rate.bps as f64 / 1e6).to_string())
                .collect();
            let reason = format!(
                "{} has no rate of {} Mbit/s; it has {}",
                self.standard.name(),
                self.phy_rate_bps / 1e6,
                known.join(", ")
            );
            return Some(("phy_rate_bps", reason));
        }
        None
    }
}

/// Functions that give the defaults of fields.
macro_rules! defaults {
    ($($(#[$doc:meta])* $name:ident: $kind:ty = $value:expr;)+) => {
        $($(#[$doc])* fn $name() -> $kind { $value })+
    };
}

defaults! {
    default_path_loss_exponent: f64 = 2.5;
    default_reference_loss_db: f64 = 46.67;
    default_tx_power_dbm: f64 = 16.02;
    default_noise_figure_db: f64 = 7.0;
    default_fading_near_shape: f64 = 1.5;
    default_fading_far_shape: f64 = 0.75;
    default_fading_far_from_m: f64 = 80.0;
    default_true: bool = true;
    default_attempts: u32 = 7;
    /// IEEE 802.11-2020, annex C: dot11LongRetryLimit.
    default_long_attempts: u32 = 4;
    default_lifetime_s: f64 = 0.5;
    default_detection_dbm: f64 = -82.0;
    /// IEEE 802.11-2020, 17.3.10.6, for channels of 20 MHz.
    default_energy_detection_dbm: f64 = -62.0;
    default_detection_snr_db: f64 = 4.0;
}
