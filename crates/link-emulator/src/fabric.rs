//! All directions together: one total order of releases, counters, and the memory of the frames.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netsim::metrics::Histogram;

use crate::arena::{Arena, Frame, Tail};
use crate::request::Wireless;
use crate::shape::{Shape, ShapeChange};
use crate::shaper::{DropReason, Occupancy, Shaper};
use crate::wireless_media::{self, AirLoss, MediumPair, WirelessMedia};

/// Names a direction; chosen by the caller, small and never used twice.
pub type DirectionId = usize;

/// The shortest frame on a wire, in bytes, without its frame check sequence.
const MIN_FRAME_BYTES: u32 = 60;

/// What happened in one direction since it was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets put on the far interface.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue: u64,
    /// Packets lost by the random draw, or on a shared medium.
    pub dropped_loss: u64,
    /// Packets that came while the link was down, or were on it when it went down.
    pub dropped_down: u64,
    /// Packets that the far interface did not take.
    pub dropped_send: u64,
}

/// One direction's state for a report.
#[derive(Debug)]
pub struct Snapshot {
    /// The counters since the direction was added.
    pub counters: Counters,
    /// Packets that wait for the transmitter.
    pub waiting: Occupancy,
    /// Packets in service or in the pipe.
    pub in_flight: Occupancy,
    /// Lateness of the releases since the last snapshot.
    pub lateness: Histogram,
    /// Whether the direction is up.
    pub is_up: bool,
}

/// A frame whose time has come. Hand it back to [`Fabric::complete`].
#[derive(Debug)]
pub struct Departure {
    /// The direction it travelled.
    pub direction: DirectionId,
    /// When it was due, in nanoseconds.
    pub due_ns: u64,
    /// Where it is stored.
    pub frame: Frame,
}

/// What travels through a shaper: the place of the frame and its number in the order of all arrivals.
#[derive(Debug)]
struct Stored {
    frame: Frame,
    sequence: u64,
}

#[derive(Debug)]
struct Direction {
    shaper: Shaper<Stored>,
    /// Where the medium is that frames cross before they come to the shaper.
    place: Option<MediumPair>,
    tail: Tail,
    counters: Counters,
    lateness: Histogram,
    /// Number of the entry of `Fabric::agenda` that stands for this direction.
    entry: Option<u64>,
}

/// The directions of all wires.
#[derive(Debug, Default)]
pub struct Fabric {
    directions: Vec<Option<Box<Direction>>>,
    arena: Arena,
    /// (due time, sequence number of the frame, direction): one valid entry for each direction with frames.
    agenda: BinaryHeap<Reverse<(u64, u64, DirectionId)>>,
    arrivals: u64,
    air: WirelessMedia<(DirectionId, Stored)>,
}

impl Fabric {
    /// Adds a direction. `stream` names its random sequences (see [`Shaper::new`]).
    pub fn add(&mut self, id: DirectionId, shape: Shape, stream: &str) {
        if self.directions.len() <= id {
            self.directions.resize_with(id + 1, || None);
        }
        self.directions[id] = Some(Box::new(Direction {
            shaper: Shaper::new(shape, stream),
            place: None,
            tail: Tail::default(),
            counters: Counters::default(),
            lateness: Histogram::default(),
            entry: None,
        }));
    }

    /// Has the frames of two directions cross a medium, which they may share with others, before all else.
    ///
    /// # Errors
    /// Wires of one channel whose media differ, as a sentence's end.
    pub fn share(&mut self, ids: [DirectionId; 2], wifi: &Wireless) -> Result<(), &'static str> {
        let places = self.air.join(wifi)?;
        for (id, place) in ids.into_iter().zip(places) {
            if let Some(direction) = lookup(&mut self.directions, id) {
                direction.place = Some(place);
            }
        }
        Ok(())
    }

    /// Removes a direction and the frames on it.
    pub fn remove(&mut self, id: DirectionId) {
        self.set_up(id, false);
        if let Some(mut direction) = self.directions.get_mut(id).and_then(Option::take) {
            self.arena.close(&mut direction.tail);
        }
    }

    /// Changes a direction's properties at `now_ns` (see [`Shaper::change`]).
    pub fn change(&mut self, id: DirectionId, now_ns: u64, change: &ShapeChange) {
        if let Some(direction) = lookup(&mut self.directions, id) {
            direction.shaper.change(now_ns, change);
        }
    }

    /// Takes a direction up or down; going down loses the frames on it.
    pub fn set_up(&mut self, id: DirectionId, up: bool) {
        let Some(direction) = lookup(&mut self.directions, id) else {
            return;
        };
        let place = direction.place.filter(|_| !up);
        let on_air = place.map_or_else(Vec::new, |place| self.air.go_down(place));
        let on_air = on_air.into_iter().map(|(_, stored)| stored);
        for stored in direction.shaper.set_up(up).chain(on_air) {
            direction.counters.dropped_down += 1;
            self.arena.free(stored.frame);
        }
        if !up {
            direction.entry = None;
        }
    }

    /// Takes a frame of `size_bytes` that arrived at `now_ns`; `fill` writes it into its place if it is accepted.
    pub fn arrive(
        &mut self,
        id: DirectionId,
        now_ns: u64,
        size_bytes: u32,
        fill: impl FnOnce(&mut [u8]),
    ) {
        let Some(direction) = lookup(&mut self.directions, id) else {
            return;
        };
        let Direction {
            shaper,
            tail,
            counters,
            place,
            ..
        } = direction;
        let (arena, sequence) = (&mut self.arena, self.arrivals);
        self.arrivals += 1;
        if let Some(place) = place.filter(|_| shaper.is_up()) {
            let (frame, room) = arena.allocate(tail, size_bytes as usize);
            fill(room);
            let (flow, stored) = (wireless_media::flow(room), Stored { frame, sequence });
            return self
                .air
                .offer(now_ns, place, size_bytes, flow, (id, stored));
        }
        let offered = shaper.offer(now_ns, size_bytes, || {
            let (frame, room) = arena.allocate(tail, size_bytes as usize);
            fill(room);
            Stored { frame, sequence }
        });
        match offered {
            Ok(()) if direction.entry.is_none() => enter(&mut self.agenda, id, direction),
            Ok(()) => {}
            Err(DropReason::Down) => counters.dropped_down += 1,
            Err(DropReason::Loss) => counters.dropped_loss += 1,
            Err(DropReason::Queue) => counters.dropped_queue += 1,
        }
    }

    /// When the next frame is due, or a medium acts, in nanoseconds.
    pub fn next_event_ns(&mut self) -> Option<u64> {
        let on_air = self.air.next_event_ns();
        self.next_release_ns().into_iter().chain(on_air).min()
    }

    fn next_release_ns(&mut self) -> Option<u64> {
        // Entries are not taken out when frames are lost with their link: drop those that stand for nothing.
        while let Some(&Reverse((due_ns, sequence, id))) = self.agenda.peek() {
            if lookup(&mut self.directions, id)
                .is_some_and(|direction| direction.entry == Some(sequence))
            {
                return Some(due_ns);
            }
            self.agenda.pop();
        }
        None
    }

    /// Takes the next frame that is due by `now_ns`: in order of due times, and of arrival where these are equal.
    pub fn pop(&mut self, now_ns: u64) -> Option<Departure> {
        self.cross_media(now_ns);
        self.next_release_ns().filter(|&due_ns| due_ns <= now_ns)?;
        let Reverse((_, _, id)) = self.agenda.pop()?;
        let direction = lookup(&mut self.directions, id)?;
        let release = direction.shaper.pop(now_ns)?;
        enter(&mut self.agenda, id, direction);
        Some(Departure {
            direction: id,
            due_ns: release.due_ns,
            frame: release.payload.frame,
        })
    }

    /// Passes frames that have crossed a medium by `now_ns` on to their shapers.
    fn cross_media(&mut self, now_ns: u64) {
        let (directions, arena, agenda) = (&mut self.directions, &mut self.arena, &mut self.agenda);
        self.air
            .run(now_ns, |time_ns, size_bytes, (id, stored), loss| {
                let direction = lookup(directions, id).expect("its frames go with it");
                match loss {
                    None => {
                        let passed = direction.shaper.offer(time_ns, size_bytes, || stored);
                        passed.expect("a perfect link");
                        if direction.entry.is_none() {
                            enter(agenda, id, direction);
                        }
                        return;
                    }
                    Some(AirLoss::Queue) => direction.counters.dropped_queue += 1,
                    Some(AirLoss::Medium) => direction.counters.dropped_loss += 1,
                }
                arena.free(stored.frame);
            });
    }

    /// The bytes of a departing frame.
    pub fn bytes(&self, departure: &Departure) -> &[u8] {
        self.arena.bytes(&departure.frame)
    }

    /// Ends a departure: the frame left at `left_ns`, or could not (`None`).
    pub fn complete(&mut self, departure: Departure, left_ns: Option<u64>) {
        if let Some(Direction {
            counters, lateness, ..
        }) = lookup(&mut self.directions, departure.direction)
        {
            match left_ns {
                Some(left_ns) => {
                    counters.packets += 1;
                    counters.bytes += u64::from(departure.frame.size_bytes());
                    lateness.record(left_ns.saturating_sub(departure.due_ns), 1);
                }
                None => counters.dropped_send += 1,
            }
        }
        self.arena.free(departure.frame);
    }

    /// Reports on a direction as of `now_ns` and starts its lateness afresh.
    pub fn snapshot(&mut self, id: DirectionId, now_ns: u64) -> Option<Snapshot> {
        let direction = lookup(&mut self.directions, id)?;
        direction.shaper.advance(now_ns);
        let waiting = direction.shaper.waiting();
        let on_air = |place| self.air.waiting(place);
        Some(Snapshot {
            counters: direction.counters,
            waiting: direction.place.map_or(waiting, on_air),
            in_flight: direction.shaper.in_flight(),
            lateness: std::mem::take(&mut direction.lateness),
            is_up: direction.shaper.is_up(),
        })
    }

    /// The shortest time, in nanoseconds, that any frame spends on any link that is up; `None` without such links.
    pub fn shortest_transit_ns(&self) -> Option<u64> {
        let directions = self
            .directions
            .iter()
            .flatten()
            .filter(|direction| direction.shaper.is_up());
        directions
            .map(|direction| {
                let shape = direction.shaper.shape();
                shape.delay_ns + shape.service_ns(MIN_FRAME_BYTES)
            })
            .min()
    }

    /// Bytes of memory held for frames.
    pub fn held_bytes(&self) -> usize {
        self.arena.held_bytes()
    }
}

fn lookup(directions: &mut [Option<Box<Direction>>], id: DirectionId) -> Option<&mut Direction> {
    directions.get_mut(id)?.as_deref_mut()
}

/// Puts a direction's first frame, if it has one, on the agenda.
fn enter(
    agenda: &mut BinaryHeap<Reverse<(u64, u64, DirectionId)>>,
    id: DirectionId,
    direction: &mut Direction,
) {
    direction.entry = direction.shaper.peek().map(|(due_ns, stored)| {
        agenda.push(Reverse((due_ns, stored.sequence, id)));
        stored.sequence
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIRECTIONS: usize = 4;

    #[derive(Clone, Debug)]
    enum Step {
        Arrive {
            direction: usize,
            gap_ns: u64,
            size_bytes: u32,
        },
        Change {
            direction: usize,
            change: ShapeChange,
        },
        SetUp {
            direction: usize,
            up: bool,
        },
        Look,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let change =
            (0u64..2_000_000, prop::option::of(1e6..1e8f64)).prop_map(|(delay_ns, rate)| {
                ShapeChange {
                    delay_ns: Some(delay_ns),
                    rate_bps: Some(rate),
                    ..ShapeChange::default()
                }
            });
        let step = prop_oneof![
            10 => (0..DIRECTIONS, 0u64..200_000, 60u32..1515)
                .prop_map(|(direction, gap_ns, size_bytes)| Step::Arrive { direction, gap_ns, size_bytes }),
            1 => (0..DIRECTIONS, change).prop_map(|(direction, change)| Step::Change { direction, change }),
            1 => (0..DIRECTIONS, any::<bool>()).prop_map(|(direction, up)| Step::SetUp { direction, up }),
            3 => Just(Step::Look),
        ];
        prop::collection::vec(step, 1..200)
    }

    /// Takes all frames due by `now_ns`: (due time, direction, number of the frame).
    fn take(fabric: &mut Fabric, now_ns: u64, taken: &mut Vec<(u64, usize, u32)>) {
        while let Some(departure) = fabric.pop(now_ns) {
            let bytes = fabric.bytes(&departure);
            let number = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            assert!(
                bytes[4..].iter().all(|&byte| byte == number as u8),
                "a frame was overwritten"
            );
            taken.push((departure.due_ns, departure.direction, number));
            let left_ns = Some(now_ns.max(departure.due_ns));
            fabric.complete(departure, left_ns);
        }
    }

    fn fabric() -> Fabric {
        let mut fabric = Fabric::default();
        for id in 0..DIRECTIONS {
            let shape = Shape {
                rate_bps: Some(1e7),
                delay_ns: 500_000,
                queue_packets: Some(5),
                loss: 0.1,
                ..Shape::default()
            };
            fabric.add(id, shape, &id.to_string());
        }
        fabric
    }

    fn arrive(fabric: &mut Fabric, direction: usize, now_ns: u64, size_bytes: u32, number: u32) {
        fabric.arrive(direction, now_ns, size_bytes, |room| {
            room.fill(number as u8);
            room[..4].copy_from_slice(&number.to_be_bytes());
        });
    }

    proptest! {
        #[test]
        fn conserves_packets_and_keeps_one_order(steps in steps()) {
            let mut fabric = fabric();
            let mut arrived = [0u64; DIRECTIONS];
            let (mut now, mut taken) = (0, Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Arrive { direction, gap_ns, size_bytes } => {
                        now += gap_ns;
                        arrived[direction] += 1;
                        arrive(&mut fabric, direction, now, size_bytes, number as u32);
                    }
                    Step::Change { direction, change } => fabric.change(direction, now, &change),
                    Step::SetUp { direction, up } => fabric.set_up(direction, up),
                    Step::Look => {
                        let before = taken.len();
                        take(&mut fabric, now, &mut taken);
                        prop_assert!(taken[before..].windows(2).all(|pair| pair[0].0 <= pair[1].0));
                    }
                }
                for (id, &arrived) in arrived.iter().enumerate() {
                    let Snapshot { counters: c, waiting, in_flight, .. } = fabric.snapshot(id, now).unwrap();
                    let dropped = c.dropped_queue + c.dropped_loss + c.dropped_down + c.dropped_send;
                    prop_assert_eq!(arrived, c.packets + dropped + waiting.packets + in_flight.packets);
                }
            }
            take(&mut fabric, u64::MAX, &mut taken);
            prop_assert_eq!(fabric.next_event_ns(), None);
            for id in 0..DIRECTIONS {
                // Frames are numbered as they arrive, so each direction's numbers rise: first in, first out.
                let numbers: Vec<u32> = taken.iter().filter(|t| t.1 == id).map(|t| t.2).collect();
                prop_assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn frames_due_together_leave_in_order_of_arrival() {
        let mut fabric = Fabric::default();
        (0..3).for_each(|id| {
            fabric.add(
                id,
                Shape {
                    delay_ns: 10,
                    ..Shape::default()
                },
                "",
            )
        });
        for (number, direction) in [2, 0, 1, 0, 2].into_iter().enumerate() {
            arrive(&mut fabric, direction, 5, 60, number as u32);
        }
        let mut taken = Vec::new();
        take(&mut fabric, 15, &mut taken);
        assert_eq!(
            taken,
            [(15, 2, 0), (15, 0, 1), (15, 1, 2), (15, 0, 3), (15, 2, 4)]
        );
    }

    #[test]
    fn a_removed_direction_leaves_nothing_behind() {
        let mut fabric = fabric();
        arrive(&mut fabric, 1, 5, 60, 0);
        let departure = fabric.pop(u64::MAX);
        arrive(&mut fabric, 1, 6, 60, 1);
        fabric.remove(1);
        fabric.complete(departure.unwrap(), Some(7));
        assert_eq!(fabric.next_event_ns(), None);
        assert!(fabric.snapshot(1, 8).is_none());
        arrive(&mut fabric, 1, 8, 60, 2);
        assert_eq!(fabric.next_event_ns(), None);
    }

    #[test]
    fn the_shortest_transit_counts_links_that_are_up() {
        let mut fabric = Fabric::default();
        assert_eq!(fabric.shortest_transit_ns(), None);
        fabric.add(
            0,
            Shape {
                delay_ns: 7,
                ..Shape::default()
            },
            "",
        );
        fabric.add(
            1,
            Shape {
                rate_bps: Some(480e9),
                delay_ns: 8,
                ..Shape::default()
            },
            "",
        );
        assert_eq!(fabric.shortest_transit_ns(), Some(7));
        fabric.set_up(0, false);
        assert_eq!(fabric.shortest_transit_ns(), Some(9));
    }
}
