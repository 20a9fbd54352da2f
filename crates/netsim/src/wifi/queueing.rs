//! What waits at the stations: their queues, and a queue discipline in front of them.

use std::collections::VecDeque;

use serde::Deserialize;

use super::fq_codel::FqCodel;
use super::medium::{Medium, MediumSettings, Outcome};
use super::standard::DATA_OVERHEAD_BYTES;
use super::station::Frame;
use crate::link::DropReason;
use crate::time::Nanos;

/// A queue discipline, by name.
#[derive(Debug, Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// None: what finds the station's queue full is dropped.
    #[default]
    DropTail,
    /// FQ-CoDel holds what the station's queue has no room for.
    FqCodel,
}

/// The largest frame body of a device, which a flow may send in a turn (ns-3's devices of 802.11).
const QUANTUM_BYTES: u32 = 2296;

impl Discipline {
    /// The discipline of a station that has one.
    pub(super) fn build(self) -> Option<FqCodel<Frame>> {
        match self {
            Self::DropTail => None,
            Self::FqCodel => Some(FqCodel::new(QUANTUM_BYTES)),
        }
    }
}

/// A packet that a station is to send.
#[derive(Debug, Clone, Copy)]
pub struct MacPacket {
    /// Which packet.
    pub packet: u32,
    /// Its next step.
    pub cursor: u32,
    /// Its size on wired links.
    pub bytes: u32,
    /// The connection and direction that it belongs to.
    pub flow: u32,
}

impl MediumSettings {
    /// Whether RTS and CTS go before a frame.
    pub(super) fn announces(&self, frame: &Frame) -> bool {
        self.rts_threshold_bytes
            .is_some_and(|threshold| frame.bytes >= threshold)
    }
}

impl Medium {
    /// Queue a packet, or say why not.
    pub fn enqueue(&mut self, now: Nanos, pair: u32, offer: MacPacket) -> Result<(), DropReason> {
        let header_bytes = self.settings.link_header_bytes;
        let place = &mut self.pairs[pair as usize];
        let station = &mut self.stations[place.from];
        if station.discipline.is_none() && place.queued >= self.settings.queue_packets {
            place.counters.dropped_queue += 1;
            return Err(DropReason::QueueFull);
        }
        place.queued += 1;
        place.counters.packets += 1;
        place.counters.bytes += u64::from(offer.bytes);
        let frame = Frame {
            packet: offer.packet,
            cursor: offer.cursor,
            packet_bytes: offer.bytes,
            bytes: offer.bytes.saturating_sub(header_bytes) + DATA_OVERHEAD_BYTES,
            pair,
            queued: now,
            tried: false,
            arrived: false,
        };
        let from = place.from;
        let Some(discipline) = &mut station.discipline else {
            station.enqueue(now, frame, &mut self.backoff);
            return Ok(());
        };
        let ip_bytes = offer.bytes.saturating_sub(header_bytes);
        let pushed_out = discipline.enqueue(now, offer.flow, ip_bytes, frame);
        self.drop_queued(pushed_out);
        self.refill(now, from);
        Ok(())
    }

    /// Let a station take over what its discipline holds, as far as there is room.
    pub(super) fn refill(&mut self, now: Nanos, from: usize) {
        let station = &mut self.stations[from];
        let Some(discipline) = &mut station.discipline else {
            return;
        };
        let mut dropped = Vec::new();
        let room = self.settings.queue_packets as usize;
        let mut taken = Vec::new();
        while station.queue.len() + taken.len() < room {
            let Some(frame) = discipline.dequeue(now, &mut dropped) else {
                break;
            };
            taken.push(frame);
        }
        for frame in taken {
            let queued = now;
            station.enqueue(now, Frame { queued, ..frame }, &mut self.backoff);
        }
        self.drop_queued(dropped);
    }

    fn drop_queued(&mut self, frames: impl IntoIterator<Item = Frame>) {
        for frame in frames {
            let pair = &mut self.pairs[frame.pair as usize];
            pair.queued -= 1;
            pair.counters.dropped_queue += 1;
            let dropped = Some(DropReason::QueueFull);
            self.outcomes.push(Outcome { frame, dropped });
        }
    }

    /// Drop all that waits for one direction of a link, since it goes down.
    pub fn go_down(&mut self, pair: u32) {
        let from = self.pairs[pair as usize].from;
        let station = &mut self.stations[from];
        let is_first = station
            .queue
            .front()
            .is_some_and(|frame| frame.pair == pair);
        if station.engaged && is_first {
            self.on_air.retain(|frame| frame.from != from);
            let counts_from = station.sending_until + self.difs;
            station.contend(false, counts_from, &mut self.backoff);
        }
        let waiting = std::mem::take(&mut station.queue);
        let (mut gone, kept): (VecDeque<_>, VecDeque<_>) =
            waiting.into_iter().partition(|frame| frame.pair == pair);
        station.queue = kept;
        if let Some(discipline) = &mut station.discipline {
            gone.extend(discipline.remove(|frame| frame.pair == pair));
        }
        let pair = &mut self.pairs[pair as usize];
        pair.queued = 0;
        pair.counters.dropped_down += gone.len() as u64;
        let dropped = Some(DropReason::Lost);
        let gone = gone.into_iter().filter(|frame| !frame.arrived);
        self.outcomes
            .extend(gone.map(|frame| Outcome { frame, dropped }));
    }

    /// Take the first frame of a station out, and report it lost unless it has arrived.
    pub(super) fn give_up(&mut self, now: Nanos, from: usize) {
        let station = &mut self.stations[from];
        let frame = station.queue.pop_front().expect("a frame waits");
        let pair = &mut self.pairs[frame.pair as usize];
        pair.queued -= 1;
        if !frame.arrived {
            pair.counters.lost += 1;
            let dropped = Some(DropReason::Lost);
            self.outcomes.push(Outcome { frame, dropped });
        }
        self.refill(now, from);
    }

    /// Begin to count again: the attempts at frames like this one.
    pub(super) fn forget_attempts(&mut self, station: usize, done: &Frame) {
        let station = &mut self.stations[station];
        if self.settings.announces(done) {
            station.long_attempts = 0;
        } else {
            station.attempts = 0;
        }
    }
}
