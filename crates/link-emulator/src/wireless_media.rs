//! Wi-Fi: media that directions share, by the simulator's model of IEEE 802.11 (`netsim::wifi`).
//!
//! Frames and their times of arrival go in; what has become of them comes out, at the times that the model has. As with a
//! shaper, none of it depends on when the caller looks.

use std::collections::{BTreeMap, BTreeSet};

use netsim::link::DropReason;
pub use netsim::link::MediumPair;
use netsim::wifi::media::Media;
use netsim::wifi::queueing::MacPacket;

use crate::request::Wireless;
use crate::shaper::Occupancy;

/// Bytes of an Ethernet header, which a frame on the air does not have.
const LINK_HEADER_BYTES: u32 = 14;

/// Where a frame was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AirLoss {
    /// Its queue was full, or the queue discipline has dropped it.
    Queue,
    /// The medium lost it.
    Medium,
}

/// A frame that waits for the medium or is being sent.
#[derive(Debug)]
struct PendingFrame<T> {
    place: MediumPair,
    size_bytes: u32,
    flow: u32,
    payload: T,
}

/// The media of all wireless wires, with payloads of type `T`.
#[derive(Debug)]
pub struct WirelessMedia<T> {
    media: Media<String>,
    /// The latest time up to which the media have acted.
    clock_ns: u64,
    /// Arrivals that the media have not been told of, by time and number.
    arrivals: BTreeSet<(u64, u32)>,
    held: BTreeMap<u32, PendingFrame<T>>,
    next_number: u32,
}

impl<T> Default for WirelessMedia<T> {
    fn default() -> Self {
        Self {
            media: Media::default(),
            clock_ns: 0,
            arrivals: BTreeSet::new(),
            held: BTreeMap::new(),
            next_number: 0,
        }
    }
}

impl<T> WirelessMedia<T> {
    /// Puts a wire on its medium; the places of its two directions.
    ///
    /// # Errors
    /// Wires of one channel whose media differ, as a sentence's end.
    pub fn join(&mut self, wire: &Wireless) -> Result<[MediumPair; 2], &'static str> {
        let (seed, stations) = (wire.seed, wire.stations.clone());
        let (link, queue_packets) = (&wire.link, wire.queue_packets);
        self.media
            .join(seed, link, queue_packets, LINK_HEADER_BYTES, stations)
    }

    /// Accepts a frame of `size_bytes` that arrived at `now_ns`; `flow` is of its connection and direction.
    pub fn offer(
        &mut self,
        now_ns: u64,
        place: MediumPair,
        size_bytes: u32,
        flow: u32,
        payload: T,
    ) {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        let time_ns = now_ns.max(self.clock_ns);
        self.arrivals.insert((time_ns, number));
        self.held.insert(
            number,
            PendingFrame {
                place,
                size_bytes,
                flow,
                payload,
            },
        );
    }

    /// When something happens next, in nanoseconds.
    pub fn next_event_ns(&mut self) -> Option<u64> {
        let arrival = self.arrivals.first().map(|&(time_ns, _)| time_ns);
        let media = self.media.all().iter();
        media
            .filter_map(|medium| medium.next_event())
            .chain(arrival)
            .min()
    }

    /// Has the media act up to `until_ns`; `settle` is told of each frame when, and what has become of it.
    pub fn run(&mut self, until_ns: u64, mut settle: impl FnMut(u64, u32, T, Option<AirLoss>)) {
        while let Some(time_ns) = self.next_event_ns().filter(|&time_ns| time_ns <= until_ns) {
            let time_ns = time_ns.max(self.clock_ns);
            self.clock_ns = time_ns;
            while self
                .arrivals
                .first()
                .is_some_and(|first| first.0 <= time_ns)
            {
                let (_, number) = self.arrivals.pop_first().expect("the first");
                self.enqueue(time_ns, number, &mut settle);
            }
            for index in 0..self.media.all().len() {
                let medium = &mut self.media.all()[index];
                if medium.next_event().is_some_and(|next| next <= time_ns) {
                    medium.handle(time_ns);
                    self.settle(time_ns, index as u32, &mut settle);
                }
            }
        }
        self.clock_ns = self.clock_ns.max(until_ns);
    }

    /// Returns the payloads of one direction's frames, which are lost since it goes down.
    pub fn go_down(&mut self, place: MediumPair) -> Vec<T> {
        let medium = &mut self.media.all()[place.medium as usize];
        medium.go_down(place.pair);
        medium.take_outcomes();
        let lost = |held: &PendingFrame<T>| held.place == place;
        self.arrivals
            .retain(|(_, number)| !lost(&self.held[number]));
        let numbers: Vec<u32> = self
            .held
            .iter()
            .filter(|(_, held)| lost(held))
            .map(|(&number, _)| number)
            .collect();
        let gone = numbers.iter().filter_map(|number| self.held.remove(number));
        gone.map(|held| held.payload).collect()
    }

    /// Frames of one direction that wait or are on the air.
    pub fn waiting(&self, place: MediumPair) -> Occupancy {
        let mut waiting = Occupancy::default();
        for held in self.held.values().filter(|held| held.place == place) {
            waiting.packets += 1;
            waiting.bytes += u64::from(held.size_bytes);
        }
        waiting
    }

    fn enqueue(
        &mut self,
        now_ns: u64,
        number: u32,
        settle: &mut impl FnMut(u64, u32, T, Option<AirLoss>),
    ) {
        let PendingFrame {
            place,
            size_bytes,
            flow,
            ..
        } = self.held[&number];
        let offer = MacPacket {
            packet: number,
            cursor: 0,
            bytes: size_bytes,
            flow,
        };
        let medium = &mut self.media.all()[place.medium as usize];
        if medium.enqueue(now_ns, place.pair, offer).is_err() {
            self.end(now_ns, number, Some(AirLoss::Queue), settle);
        }
        self.settle(now_ns, place.medium, settle);
    }

    fn settle(
        &mut self,
        now_ns: u64,
        medium: u32,
        settle: &mut impl FnMut(u64, u32, T, Option<AirLoss>),
    ) {
        for outcome in self.media.all()[medium as usize].take_outcomes() {
            let loss = outcome.dropped.map(|reason| match reason {
                DropReason::QueueFull => AirLoss::Queue,
                DropReason::Lost | DropReason::Down => AirLoss::Medium,
            });
            self.end(now_ns, outcome.frame.packet, loss, settle);
        }
    }

    fn end(
        &mut self,
        now_ns: u64,
        number: u32,
        loss: Option<AirLoss>,
        settle: &mut impl FnMut(u64, u32, T, Option<AirLoss>),
    ) {
        let held = self.held.remove(&number).expect("it is on the medium");
        settle(now_ns, held.size_bytes, held.payload, loss);
    }
}

/// A number for all frames of one connection and direction: of addresses, protocol and ports, where there are such.
pub fn flow(frame: &[u8]) -> u32 {
    let part = |range: std::ops::Range<usize>| frame.get(range).unwrap_or_default();
    let parts = match part(12..14) {
        [0x08, 0x00] => [part(23..24), part(26..38)],
        [0x86, 0xdd] => [part(20..21), part(22..58)],
        _ => [part(0..6), part(6..12)],
    };
    // FNV-1a.
    parts.concat().iter().fold(0x811c_9dc5, |hash: u32, &byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// (gap to the frame before in ns, direction, size in bytes)
    type Arrival = (u64, usize, u32);
    /// When, which frame, what became of it.
    type Settled = (u64, usize, Option<AirLoss>);

    fn wire(distance_m: f64, queue_packets: u64, more: &str) -> Wireless {
        let link = format!(
            r#"{{"standard":"802.11g","distance_m":{distance_m},"phy_rate_bps":54e6{more}}}"#
        );
        Wireless {
            stations: ["AP".into(), "STA".into()],
            seed: 7,
            queue_packets: Some(queue_packets),
            link: serde_json::from_str(&link).unwrap(),
        }
    }

    /// Offers frames, and looks every `look_every` ns, or at the end alone.
    fn run(wifi: &Wireless, arrivals: &[Arrival], look_every: Option<u64>) -> Vec<Settled> {
        let mut air = WirelessMedia::default();
        let places = air.join(wifi).unwrap();
        let (mut now, mut looked, mut settled) = (0, 0, Vec::new());
        let mut look = |air: &mut WirelessMedia<usize>, until| {
            air.run(until, |time, _, number, loss| {
                settled.push((time, number, loss));
            });
        };
        for (number, &(gap, direction, size_bytes)) in arrivals.iter().enumerate() {
            now += gap;
            while let Some(step) = look_every.filter(|step| looked + step < now) {
                looked += step;
                look(&mut air, looked);
            }
            air.offer(now, places[direction], size_bytes, 0, number);
        }
        look(&mut air, u64::MAX);
        assert_eq!(air.next_event_ns(), None);
        assert_eq!(places.map(|place| air.waiting(place).packets), [0, 0]);
        settled
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn frames_are_settled_once_in_order_whenever_the_caller_looks(
            distance_m in 1.0..90f64, queue_packets in 1u64..40, has_discipline: bool, step in 10_000u64..900_000,
            arrivals in prop::collection::vec((0u64..400_000, 0usize..2, 60u32..1515), 1..150),
        ) {
            let discipline = if has_discipline { r#","queue_discipline":"fq_codel""# } else { "" };
            let wifi = wire(distance_m, queue_packets, discipline);
            let settled = run(&wifi, &arrivals, None);
            prop_assert_eq!(&settled, &run(&wifi, &arrivals, Some(step)));
            prop_assert!(settled.windows(2).all(|pair| pair[0].0 <= pair[1].0));
            let mut numbers: Vec<usize> = settled.iter().map(|each| each.1).collect();
            numbers.sort_unstable();
            prop_assert_eq!(numbers, (0..arrivals.len()).collect::<Vec<_>>());
            for direction in 0..2 {
                let arrived = settled.iter().filter(|each| each.2.is_none() && arrivals[each.1].1 == direction);
                let arrived: Vec<usize> = arrived.map(|each| each.1).collect();
                prop_assert!(arrived.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn data_and_answers_share_the_medium() {
        let alone: Vec<Arrival> = vec![(0, 0, 1514); 400];
        let both: Vec<Arrival> = (0..800).map(|number| (0, number % 2, 1514)).collect();
        let wifi = wire(5.0, 400, "");
        let last = |arrivals: &[Arrival]| {
            let settled = run(&wifi, arrivals, None);
            assert!(
                settled.iter().filter(|each| each.2.is_none()).count() > arrivals.len() * 9 / 10
            );
            settled.last().unwrap().0 as f64
        };
        let ratio = last(&both) / last(&alone);
        assert!((1.7..2.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_direction_that_goes_down_loses_its_frames_alone() {
        let mut air = WirelessMedia::default();
        let [there, back] = air.join(&wire(5.0, 10, "")).unwrap();
        (0..6).for_each(|number| air.offer(0, [there, back][number % 2], 1000, 0, number));
        air.run(400_000, |_, _, number, _| assert!(number < 2));
        air.offer(500_000, there, 1000, 0, 6);
        let waiting = air.waiting(there).packets;
        let gone = air.go_down(there);
        assert_eq!(gone.len() as u64, waiting);
        assert!(gone.contains(&6) && gone.iter().all(|number| number % 2 == 0));
        air.run(u64::MAX, |_, _, number, _| assert!(number % 2 == 1));
        assert_eq!(air.next_event_ns(), None);
    }

    #[test]
    fn wires_of_one_channel_are_on_one_medium() {
        let mut air = WirelessMedia::<()>::default();
        let named = r#","channel":"home""#;
        let first = air.join(&wire(5.0, 10, named)).unwrap()[0].medium;
        assert_eq!(air.join(&wire(9.0, 10, named)).unwrap()[0].medium, first);
        assert_ne!(air.join(&wire(5.0, 10, "")).unwrap()[0].medium, first);
        let differs = air.join(&wire(5.0, 11, named)).unwrap_err();
        assert!(differs.starts_with("links of one channel have the same settings"));
    }

    #[test]
    fn connections_and_directions_are_flows() {
        let mut frame = [0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[34..36].copy_from_slice(&5001u16.to_be_bytes());
        let other = |at: usize| {
            let mut other = frame;
            other[at] ^= 1;
            flow(&other) != flow(&frame)
        };
        assert!(other(23) && other(26) && other(35) && other(37));
        assert!(!other(15) && !other(40));
        flow(&[]);
    }
}
