//! A medium that stations share by the distributed coordination function (IEEE 802.11-2020, 10.3).
//!
//! Sans-IO: packets and `now` go in, [`Outcome`]s come out, and the medium says when it wants to be called next. An event is
//! the beginning or the end of a frame; what follows a frame at once (its acknowledgement) is settled at the frame's end.

use crate::random::SplitMix64;
use serde::Serialize;

use super::errors::{ErrorModel, Receiver};
use super::math::from_decibels;
use super::propagation::{happens, noise_dbm, Propagation, RadioChannel};
use super::queueing::Discipline;
use super::rate_control::RateControl;
use super::standard::{Rate, Standard, ACK_BYTES, RTS_BYTES};
use super::station::{Frame, Reception, Station};
use crate::link::{Counters, DropReason};
use crate::time::{Nanos, MICROSECOND};

/// Two frames that begin within this time both do, since neither station has sensed the other's yet (table 17-19 has less
/// than 4 us for the short slot).
const SENSING: Nanos = 4 * MICROSECOND;
/// The ratio of a frame that is heard between stations that no link joins.
const STRONG: f64 = 1e6;

/// What all stations of a medium have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MediumSettings {
    /// 802.11b or 802.11g.
    pub standard: Standard,
    /// Slots of 9 us, where the standard has them.
    pub short_slot: bool,
    /// How frames are lost to noise.
    pub error_model: ErrorModel,
    /// What of a frame noise can spoil.
    pub receiver: Receiver,
    /// How signals weaken.
    pub propagation: Propagation,
    /// Noise figure of the receivers, in dB.
    pub noise_figure_db: f64,
    /// A frame is not noticed at all below this power.
    pub detection_dbm: f64,
    /// And below this signal-to-noise ratio.
    pub detection_snr_db: f64,
    /// From this power on a frame makes the medium busy whose preamble the station has left in order to send.
    pub energy_detection_dbm: f64,
    /// How often a frame is sent in vain at most.
    pub attempts: u32,
    /// How often a frame that RTS and CTS announced is; an RTS is sent as often as it takes (ns-3).
    pub long_attempts: u32,
    /// Frames from this size on are announced by RTS and CTS; none: never.
    pub rts_threshold_bytes: Option<u32>,
    /// How long a frame may wait before it is dropped; none: for ever.
    pub lifetime: Option<Nanos>,
    /// Bound of the frames at a station for one direction of a link; with [`Discipline::FqCodel`], of those that it has taken over.
    pub queue_packets: u64,
    /// What holds packets in front of a station.
    pub discipline: Discipline,
    /// Bytes of the link header that packets have on wired links.
    pub link_header_bytes: u32,
}

/// One direction of a link over the medium.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) from: usize,
    to: usize,
    control: RateControl,
    pub(super) queued: u64,
    pub(super) counters: Counters,
    statistics: Statistics,
    air: Nanos,
}

/// What one direction of a link has done on the air.
#[derive(Debug, Clone, Copy, Default, Serialize, PartialEq, Eq)]
pub struct Statistics {
    /// Frames that were sent, again or not.
    pub attempts: u64,
    /// Frames that were not acknowledged.
    pub unanswered: u64,
    /// Frames that were sent while the receiver was sending itself.
    pub collisions: u64,
    /// Packets that were dropped after the last attempt.
    pub given_up: u64,
    /// Packets that were dropped since they had waited too long.
    pub expired: u64,
}

/// What has become of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// The packet and its place.
    pub frame: Frame,
    /// Why it is gone; none: it goes on.
    pub dropped: Option<DropReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Rts,
    Data,
}

/// A frame on the air.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct OnAir {
    pub(super) from: usize,
    to: usize,
    stage: Stage,
    rate: Rate,
    bytes: u32,
    end: Nanos,
}

/// A medium and its stations.
#[derive(Debug)]
pub struct Medium {
    pub(super) settings: MediumSettings,
    slot: Nanos,
    pub(super) difs: Nanos,
    /// The least ratio at which a frame is noticed.
    detection_snr: f64,
    /// The least ratio at which the rest of a frame is sensed whose preamble came while the station was sending.
    sensitivity_snr: f64,
    /// And whose preamble it has left in order to send.
    energy_snr: f64,
    noise_dbm: f64,
    pub(super) stations: Vec<Station>,
    ways: Vec<Vec<Option<RadioChannel>>>,
    pub(super) pairs: Vec<Pair>,
    pub(super) on_air: Vec<OnAir>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) backoff: SplitMix64,
    channel: SplitMix64,
}

impl Medium {
    /// A medium without stations; `backoff` and `channel` are the generators of its draws.
    pub fn new(settings: MediumSettings, backoff: SplitMix64, channel: SplitMix64) -> Self {
        let standard = settings.standard;
        let slot = standard.slot(settings.short_slot);
        let noise_dbm = noise_dbm(standard.bandwidth_hz(), settings.noise_figure_db);
        let detection_db = settings
            .detection_snr_db
            .max(settings.detection_dbm - noise_dbm);
        Self {
            slot,
            difs: standard.sifs() + 2 * slot,
            detection_snr: from_decibels(detection_db),
            sensitivity_snr: from_decibels(
                settings.detection_dbm.min(settings.energy_detection_dbm) - noise_dbm,
            ),
            energy_snr: from_decibels(settings.energy_detection_dbm - noise_dbm),
            noise_dbm,
            stations: Vec::new(),
            ways: Vec::new(),
            pairs: Vec::new(),
            on_air: Vec::new(),
            outcomes: Vec::new(),
            backoff,
            channel,
            settings,
        }
    }

    /// What its stations have in common.
    pub fn settings(&self) -> &MediumSettings {
        &self.settings
    }

    /// Add a station; returns its number.
    pub fn add_station(&mut self) -> usize {
        let window = self.settings.standard.contention_window();
        let discipline = self.settings.discipline.build();
        self.stations
            .push(Station::new(window, self.slot, discipline));
        self.ways.iter_mut().for_each(|row| row.push(None));
        self.ways.push(vec![None; self.stations.len()]);
        self.stations.len() - 1
    }

    /// Join two stations; returns the number of the pair for each direction.
    pub fn join(&mut self, ends: [usize; 2], distance_m: f64, control: &RateControl) -> [u32; 2] {
        let way = RadioChannel::new(&self.settings.propagation, distance_m, self.noise_dbm);
        [ends, [ends[1], ends[0]]].map(|[from, to]| {
            self.ways[from][to] = Some(way);
            self.pairs.push(Pair {
                from,
                to,
                control: control.clone(),
                queued: 0,
                counters: Counters::default(),
                statistics: Statistics::default(),
                air: 0,
            });
            self.pairs.len() as u32 - 1
        })
    }

    /// When [`Medium::handle`] is to be called next.
    pub fn next_event(&self) -> Option<Nanos> {
        let ends = self.on_air.iter().map(|frame| frame.end);
        ends.chain(self.stations.iter().filter_map(Station::access))
            .min()
    }

    /// Let happen what is due at `now`; take the outcomes afterwards.
    pub fn handle(&mut self, now: Nanos) {
        while let Some(at) = self.on_air.iter().position(|frame| frame.end <= now) {
            let frame = self.on_air.swap_remove(at);
            self.on_end(&frame);
        }
        for station in 0..self.stations.len() {
            if self.stations[station]
                .access()
                .is_some_and(|time| time <= now)
            {
                self.on_access(now, station);
            }
        }
    }

    /// Take what has become of packets since the last time.
    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// What one direction of a link has carried.
    pub fn counters(&self, pair: u32) -> Counters {
        self.pairs[pair as usize].counters
    }

    /// What it has done on the air.
    pub fn statistics(&self, pair: u32) -> Statistics {
        self.pairs[pair as usize].statistics
    }

    /// How long its frames and their answers have been on the air.
    pub fn air_time(&self, pair: u32) -> Nanos {
        self.pairs[pair as usize].air
    }

    fn on_access(&mut self, now: Nanos, from: usize) {
        self.drop_expired(now, from);
        let Some(frame) = self.stations[from].queue.front_mut() else {
            return;
        };
        let pair = &mut self.pairs[frame.pair as usize];
        if !std::mem::replace(&mut frame.tried, true) {
            pair.counters.max_wait = pair.counters.max_wait.max(now - frame.queued);
        }
        let (stage, rate, bytes) = if self.settings.announces(frame) {
            (Stage::Rts, self.settings.standard.rates()[0], RTS_BYTES)
        } else {
            (Stage::Data, pair.control.rate(), frame.bytes)
        };
        let to = pair.to;
        self.begin(
            now,
            OnAir {
                from,
                to,
                stage,
                rate,
                bytes,
                end: 0,
            },
        );
    }

    fn drop_expired(&mut self, now: Nanos, from: usize) {
        let Some(lifetime) = self.settings.lifetime else {
            return;
        };
        while let Some(frame) = self.stations[from].queue.front() {
            if now <= frame.queued + lifetime {
                return;
            }
            self.pairs[frame.pair as usize].statistics.expired += 1;
            self.give_up(now, from);
        }
    }

    /// Put a frame on the air at `start`; its end follows from its length.
    fn begin(&mut self, start: Nanos, mut frame: OnAir) {
        frame.end = start + self.settings.standard.airtime(frame.rate, frame.bytes);
        for other in 0..self.stations.len() {
            if other == frame.from {
                continue;
            }
            let snr = match &self.ways[frame.from][other] {
                Some(way) => way.draw_snr(&mut self.channel),
                None => STRONG,
            };
            let station = &mut self.stations[other];
            let access = station.access();
            let is_sending =
                station.sending_until > start || access.is_some_and(|time| time <= start);
            if is_sending || access.is_some_and(|time| time <= start + SENSING) {
                let sensed_from = if is_sending {
                    self.sensitivity_snr
                } else {
                    self.energy_snr
                };
                if snr >= sensed_from {
                    station.overlapped_until = station.overlapped_until.max(frame.end);
                }
                if other == frame.to {
                    let pair = self.stations[frame.from].queue[0].pair;
                    self.pairs[pair as usize].statistics.collisions += 1;
                }
            } else if let Some(reception) = &mut station.receiving {
                reception.spoiled = true;
            } else if snr >= self.detection_snr {
                station.defer(start, frame.end, frame.end + self.difs);
                let (from, spoiled) = (frame.from, false);
                station.receiving = Some(Reception { from, snr, spoiled });
            }
        }
        let sender = &mut self.stations[frame.from];
        sender.engaged = true;
        sender.sending_until = frame.end;
        sender.extend([start, frame.end], frame.end);
        self.on_air.push(frame);
    }

    /// A frame's last bit has been sent: let those who heard it act on it.
    fn on_end(&mut self, frame: &OnAir) {
        let mut understood = false;
        for other in 0..self.stations.len() {
            let Some(reception) = self.stations[other].receiving else {
                continue;
            };
            if reception.from != frame.from {
                continue;
            }
            self.stations[other].receiving = None;
            if reception.spoiled || !self.survives(frame.rate, frame.bytes, reception.snr) {
                let counts_from = frame.end + self.settings.standard.extended_wait() + self.difs;
                self.stations[other].extend([frame.end; 2], counts_from);
            } else if other == frame.to {
                understood = true;
            } else {
                // The duration field of the frame reserves the medium until its answers have come (10.3.2.4).
                let until = frame.end + self.answers(frame);
                self.stations[other].extend([frame.end, until], until + self.difs);
            }
        }
        match frame.stage {
            Stage::Rts => self.on_rts(frame, understood),
            Stage::Data => self.on_data(frame, understood),
        }
    }

    /// Whether preamble, header and all bytes of a frame survive the noise.
    fn survives(&mut self, rate: Rate, bytes: u32, snr: f64) -> bool {
        let MediumSettings {
            error_model: model,
            receiver,
            standard,
            ..
        } = self.settings;
        let (header_rate, header_bytes) = rate.header();
        let header = model.success(receiver, header_rate, header_bytes, snr);
        let exposed = match receiver {
            Receiver::Standard => bytes,
            Receiver::Ns3 => standard.bytes_on_air(rate, bytes),
        };
        let body = model.success(receiver, rate, exposed, snr);
        happens(&mut self.channel, header * body)
    }

    /// How long the answers of a frame take, from its end on.
    fn answers(&self, frame: &OnAir) -> Nanos {
        let standard = self.settings.standard;
        let sifs = standard.sifs();
        let answer = |rate| sifs + standard.airtime(standard.answer_rate(rate), ACK_BYTES);
        match frame.stage {
            Stage::Data => answer(frame.rate),
            Stage::Rts => {
                let waiting = self.stations[frame.from].queue[0];
                let rate = self.pairs[waiting.pair as usize].control.rate();
                let data = sifs + standard.airtime(rate, waiting.bytes);
                answer(frame.rate) + data + answer(rate)
            }
        }
    }

    fn on_rts(&mut self, frame: &OnAir, understood: bool) {
        let answer = self.settings.standard.answer_rate(frame.rate);
        if !understood {
            return self.fail(frame, None);
        }
        let until = self.answer(frame, answer);
        match self.hears_answer(frame, answer) {
            Some(true) => {
                let pair = &mut self.pairs[self.stations[frame.from].queue[0].pair as usize];
                pair.air += until - frame.end;
                let rate = pair.control.rate();
                let bytes = self.stations[frame.from].queue[0].bytes;
                let start = until + self.settings.standard.sifs();
                self.stations[frame.to].sending_until = start;
                self.begin(
                    start,
                    OnAir {
                        stage: Stage::Data,
                        rate,
                        bytes,
                        ..*frame
                    },
                );
            }
            Some(false) => self.fail(frame, Some(until)),
            None => self.fail(frame, None),
        }
    }

    fn on_data(&mut self, frame: &OnAir, understood: bool) {
        if !understood {
            return self.fail(frame, None);
        }
        let answer = self.settings.standard.answer_rate(frame.rate);
        let until = self.answer(frame, answer);
        let first = &mut self.stations[frame.from].queue[0];
        if !first.arrived {
            first.arrived = true;
            let frame = *first;
            self.outcomes.push(Outcome {
                frame,
                dropped: None,
            });
        }
        match self.hears_answer(frame, answer) {
            Some(true) => self.succeed(frame, until),
            Some(false) => self.fail(frame, Some(until)),
            None => self.fail(frame, None),
        }
    }

    /// Let the receiver answer with an ACK or a CTS; when the answer ends.
    fn answer(&mut self, frame: &OnAir, rate: Rate) -> Nanos {
        let standard = self.settings.standard;
        let start = frame.end + standard.sifs();
        let until = start + standard.airtime(rate, ACK_BYTES);
        let receiver = &mut self.stations[frame.to];
        receiver.sending_until = until;
        receiver.extend([start, until], until + self.difs);
        until
    }

    /// Whether the sender of `frame` understands its answer; none if it does not even notice it.
    fn hears_answer(&mut self, frame: &OnAir, rate: Rate) -> Option<bool> {
        let snr = match &self.ways[frame.to][frame.from] {
            Some(way) => way.draw_snr(&mut self.channel),
            None => STRONG,
        };
        let noticed = snr >= self.detection_snr;
        noticed.then(|| self.survives(rate, ACK_BYTES, snr))
    }

    fn succeed(&mut self, frame: &OnAir, until: Nanos) {
        let sender = &mut self.stations[frame.from];
        sender.extend([frame.end + self.settings.standard.sifs(), until], until);
        sender.contend(false, until + self.difs, &mut self.backoff);
        let done = sender.queue.pop_front().expect("it has been sent");
        let pair = &mut self.pairs[done.pair as usize];
        pair.queued -= 1;
        pair.control.on_outcome(true);
        pair.statistics.attempts += 1;
        pair.air += until - frame.end + self.settings.standard.airtime(frame.rate, frame.bytes);
        self.forget_attempts(frame.from, &done);
        self.refill(until, frame.from);
    }

    /// No answer has come, or, until `garbled`, one that was not understood.
    fn fail(&mut self, frame: &OnAir, garbled: Option<Nanos>) {
        let standard = self.settings.standard;
        let counts_from = match garbled {
            Some(until) => until + standard.extended_wait() + self.difs,
            // The timeout of an acknowledgement (10.3.2.9).
            None => frame.end + standard.sifs() + self.slot + standard.preamble() + self.difs,
        };
        let sender = &mut self.stations[frame.from];
        // A frame that began with its own may be the longer one: the medium is busy until that ends.
        let counts_from = counts_from.max(sender.overlapped_until + self.difs);
        let first = sender.queue[0];
        let is_last = if self.settings.announces(&first) {
            sender.long_attempts += u32::from(frame.stage == Stage::Data);
            sender.long_attempts >= self.settings.long_attempts
        } else {
            sender.attempts += 1;
            sender.attempts >= self.settings.attempts
        };
        let pair = &mut self.pairs[first.pair as usize];
        pair.control.on_outcome(false);
        pair.statistics.attempts += 1;
        pair.statistics.unanswered += 1;
        pair.air += standard.airtime(frame.rate, frame.bytes);
        sender.contend(!is_last, counts_from, &mut self.backoff);
        if is_last {
            pair.statistics.given_up += 1;
            self.forget_attempts(frame.from, &first);
            self.give_up(frame.end, frame.from);
        }
    }
}
