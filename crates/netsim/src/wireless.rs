//! The engine's part that lets shared media act.

use crate::error::Error;
use crate::link::{Counters, DropReason, MediumPair, SendOutcome};
use crate::queue::EventTarget;
use crate::simulation::Simulation;
use crate::time::Nanos;
use crate::wifi::medium::{Medium, Outcome, Statistics};
use crate::wifi::queueing::MacPacket;

/// A medium and the earliest event of it that is scheduled.
#[derive(Debug)]
pub struct Scheduled {
    /// The medium.
    pub medium: Medium,
    /// The time of its event; the greatest for none.
    pub timer: Nanos,
    /// The links of its pairs.
    pub links: Vec<u32>,
}

impl Simulation {
    /// Queue a packet at a station.
    pub(crate) fn offer(&mut self, medium_pair: MediumPair, packet: u32, cursor: u32, bytes: u32) {
        let offer = MacPacket {
            packet,
            cursor,
            bytes,
            flow: self.packets.get(packet).flow_key(),
        };
        let medium = &mut self.media[medium_pair.medium as usize].medium;
        if let Err(reason) = medium.enqueue(self.now, medium_pair.pair, offer) {
            self.lose(medium_pair, packet, bytes, reason);
        }
        // What the discipline has dropped for it: nothing arrives at this moment.
        let outcomes = self.media[medium_pair.medium as usize]
            .medium
            .take_outcomes();
        for Outcome { frame, dropped } in outcomes {
            let pair = frame.pair;
            let reason = dropped.unwrap_or(DropReason::QueueFull);
            self.lose(
                MediumPair {
                    pair,
                    ..medium_pair
                },
                frame.packet,
                frame.packet_bytes,
                reason,
            );
        }
        self.arm_medium(medium_pair.medium);
    }

    /// A frame begins or ends.
    pub(crate) fn on_medium(&mut self, index: u32) -> Result<(), Error> {
        let scheduled = &mut self.media[index as usize];
        if scheduled.timer != self.now {
            return Ok(());
        }
        scheduled.timer = Nanos::MAX;
        if scheduled
            .medium
            .next_event()
            .is_some_and(|time| time <= self.now)
        {
            scheduled.medium.handle(self.now);
        }
        let outcomes = self.media[index as usize].medium.take_outcomes();
        self.settle_medium(index, &outcomes)?;
        self.arm_medium(index);
        Ok(())
    }

    /// Let packets go on, or forget them.
    fn settle_medium(&mut self, medium: u32, outcomes: &[Outcome]) -> Result<(), Error> {
        for Outcome { frame, dropped } in outcomes {
            let medium_pair = MediumPair {
                medium,
                pair: frame.pair,
            };
            if let Some(reason) = *dropped {
                self.lose(medium_pair, frame.packet, frame.packet_bytes, reason);
                continue;
            }
            self.trace_medium(
                medium_pair,
                frame.packet,
                frame.packet_bytes,
                SendOutcome::Arrives(self.now),
            );
            self.forward(frame.packet, frame.cursor, frame.packet_bytes)?;
        }
        Ok(())
    }

    /// Both directions of a wireless link go down.
    pub(crate) fn drop_waiting(&mut self, medium_pair: MediumPair) -> Result<(), Error> {
        let medium = &mut self.media[medium_pair.medium as usize].medium;
        medium.go_down(medium_pair.pair);
        let outcomes = medium.take_outcomes();
        self.settle_medium(medium_pair.medium, &outcomes)?;
        self.arm_medium(medium_pair.medium);
        Ok(())
    }

    fn lose(&mut self, medium_pair: MediumPair, packet: u32, bytes: u32, reason: DropReason) {
        self.trace_medium(medium_pair, packet, bytes, SendOutcome::Dropped(reason));
        self.counters.dropped += 1;
        self.packets.remove(packet);
    }

    fn trace_medium(
        &mut self,
        medium_pair: MediumPair,
        packet: u32,
        bytes: u32,
        verdict: SendOutcome,
    ) {
        if let Some(trace) = &mut self.trace {
            let link = self.media[medium_pair.medium as usize].links[medium_pair.pair as usize];
            let content = self.packets.get(packet);
            trace.on_link(self.now, link, packet, content, bytes, verdict);
        }
    }

    /// Make sure that an event comes no later than the medium's next.
    fn arm_medium(&mut self, index: u32) {
        let scheduled = &mut self.media[index as usize];
        if let Some(time) = scheduled.medium.next_event() {
            if time < scheduled.timer {
                scheduled.timer = time.max(self.now);
                self.queue
                    .schedule(scheduled.timer, EventTarget::Medium(index));
            }
        }
    }

    /// Time that a link has been in use until now.
    pub(crate) fn link_busy(&self, index: usize) -> Nanos {
        let link = &self.links[index];
        match link.medium_pair() {
            Some(medium_pair) => self.media[medium_pair.medium as usize]
                .medium
                .air_time(medium_pair.pair),
            None => link.busy_time(self.now),
        }
    }

    /// What a link has carried.
    pub(crate) fn link_counters(&self, index: usize) -> Counters {
        let link = &self.links[index];
        let mut counters = link.counters();
        if let Some(medium_pair) = link.medium_pair() {
            let refused = counters.dropped_down;
            counters = self.media[medium_pair.medium as usize]
                .medium
                .counters(medium_pair.pair);
            counters.dropped_down += refused;
        }
        counters
    }

    /// What a wireless link has done on the air.
    pub(crate) fn air_statistics(&self, index: usize) -> Option<Statistics> {
        let medium_pair = self.links[index].medium_pair()?;
        Some(
            self.media[medium_pair.medium as usize]
                .medium
                .statistics(medium_pair.pair),
        )
    }
}
