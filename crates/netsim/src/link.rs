//! One direction of a link: a queue, a transmitter of some rate, and a wire of some delay.
//!
//! The time at which a packet leaves the transmitter is known as soon as it is queued, max(now, busy) + size / rate, so a
//! packet costs one event on each link: its arrival. Packets arrive in the order in which they were sent.
//!
//! A link over a shared medium hands its packets on to the medium (`wifi::medium`), which alone knows when they are sent.

use std::collections::VecDeque;

use mstcp_proto::rng::SplitMix64;

use crate::queue::Event;
use crate::random::{below, Chance};
use crate::red::Red;
use crate::time::{Nanos, SECOND};

/// What a link is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkSettings {
    /// Rate in bit/s, counting whole packets with their link header; at least 1.
    pub rate_bps: u64,
    /// Propagation delay.
    pub delay: Nanos,
    /// Bound of the packets that wait, the one in transmission not counted.
    pub queue_packets: Option<u64>,
    /// Bound of the bytes that wait, likewise.
    pub queue_bytes: Option<u64>,
    /// Probability that a packet is lost on the wire, 0 to 1.
    pub loss: f64,
    /// The wire's delay is longer by a uniform draw from [0, `jitter`]; packets never overtake each other.
    pub jitter: Nanos,
}

/// A packet on its way.
#[derive(Debug, Clone, Copy)]
pub struct InFlight {
    /// Its arrival.
    pub arrival: Event,
    /// Which packet.
    pub packet: u32,
    /// Its next step.
    pub cursor: u32,
    /// Its size on the wire.
    pub bytes: u32,
}

/// What a link did with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives at this time.
    Arrives(Nanos),
    /// It is gone.
    Dropped(Drop),
    /// The medium of the link decides.
    Shared(Place),
}

/// A link's place on a shared medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which medium.
    pub medium: u32,
    /// Which of its pairs of stations.
    pub pair: u32,
}

/// Who takes the packets of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its transmitter.
    Serial,
    /// Its medium.
    Shared(Place),
    /// Nobody.
    Down,
}

/// Why a packet is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drop {
    /// The queue was full.
    QueueFull,
    /// The wire lost it.
    Lost,
    /// The link was down.
    Down,
}

/// What a link has carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets that were taken for transmission.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that found the queue full.
    pub dropped_queue: u64,
    /// Packets that the wire lost.
    pub lost: u64,
    /// Packets that were lost because the link was down.
    pub dropped_down: u64,
    /// The longest time that a packet waited for the transmitter.
    pub max_wait: Nanos,
}

impl Counters {
    /// Packets that entered the link and will not leave it, whatever the reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_queue + self.lost + self.dropped_down
    }
}

/// A link's one direction.
///
/// Where there are many links, most of the time goes by waiting for memory: what each packet needs comes first, in three cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    state: State,
    /// Whether the queue has a bound of any kind.
    bounded: bool,
    transmitter: Transmitter,
    delay: Nanos,
    counters: Counters,
    /// Losses and jitter of the wire.
    chances: Option<Box<Chances>>,
    flight: Flight,
    /// What may still wait; kept only where the queue is bounded or the link changes.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    /// Drops before the queue is full.
    red: Option<Box<Red>>,
    /// The state when it is up.
    up: State,
    settings: LinkSettings,
}

/// A packet that waits for the transmitter.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// When its transmission begins.
    start: Nanos,
    bytes: u32,
    /// Whether the wire will lose it.
    lost: bool,
}

/// What a link becomes at some time, with the generators of losses and jitter for one that had none.
#[derive(Debug, Clone)]
pub struct LinkChange {
    /// What it is from then on.
    pub settings: LinkSettings,
    /// Draws losses.
    pub loss: SplitMix64,
    /// Draws jitter.
    pub jitter: SplitMix64,
}

/// What is on its way, in order: the first by itself, since most links hold one packet at a time.
#[derive(Debug)]
struct Flight {
    first: InFlight,
    rest: VecDeque<InFlight>,
}

impl Flight {
    const NONE: InFlight = InFlight {
        arrival: Event::NEVER,
        packet: 0,
        cursor: 0,
        bytes: 0,
    };

    fn new() -> Self {
        Self {
            first: Self::NONE,
            rest: VecDeque::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.first.arrival == Event::NEVER
    }

    fn len(&self) -> usize {
        usize::from(!self.is_empty()) + self.rest.len()
    }

    /// Append a packet; whether it is the only one.
    fn push(&mut self, packet: InFlight) -> bool {
        let only = self.is_empty();
        if only {
            self.first = packet;
        } else {
            self.rest.push_back(packet);
        }
        only
    }

    /// Take the first, of which there is one, and say when the next arrives.
    fn pop(&mut self) -> (InFlight, Option<Event>) {
        let next = self.rest.pop_front();
        let first = std::mem::replace(&mut self.first, next.unwrap_or(Self::NONE));
        (first, next.map(|next| next.arrival))
    }

    fn get_mut(&mut self, index: usize) -> &mut InFlight {
        match index {
            0 => &mut self.first,
            _ => &mut self.rest[index - 1],
        }
    }

    fn take(&mut self) -> Vec<InFlight> {
        let mut all = Vec::with_capacity(self.len());
        while !self.is_empty() {
            all.push(self.pop().0);
        }
        all
    }
}

/// What the wire draws for each packet.
#[derive(Debug)]
struct Chances {
    loss: Option<(Chance, SplitMix64)>,
    jitter: Option<SplitMix64>,
    last_arrival: Nanos,
}

impl Chances {
    fn new(settings: &LinkSettings, loss: SplitMix64, jitter: SplitMix64) -> Option<Box<Self>> {
        let chances = Self::of(settings, loss, jitter);
        let any = chances.loss.is_some() || chances.jitter.is_some();
        any.then(|| Box::new(chances))
    }

    fn of(settings: &LinkSettings, loss: SplitMix64, jitter: SplitMix64) -> Self {
        Self {
            loss: (settings.loss > 0.0).then(|| (Chance::new(settings.loss), loss)),
            jitter: (settings.jitter > 0).then_some(jitter),
            last_arrival: 0,
        }
    }

    fn loses(&mut self) -> bool {
        let loss = self.loss.as_mut();
        loss.is_some_and(|(chance, rng)| chance.happens(rng))
    }

    /// The arrival that jitter, at most so much, makes of one without; no earlier than the last one.
    fn delayed(&mut self, arrival: Nanos, most: Nanos) -> Nanos {
        let jitter = self.jitter.as_mut().map_or(0, |rng| below(rng, most + 1));
        self.last_arrival = (arrival + jitter).max(self.last_arrival);
        self.last_arrival
    }
}

impl Link {
    /// An idle link; `loss` and `jitter` draw from these generators.
    pub fn new(settings: LinkSettings, loss: SplitMix64, jitter: SplitMix64) -> Self {
        Self {
            state: State::Serial,
            bounded: (settings.queue_packets, settings.queue_bytes) != (None, None),
            transmitter: Transmitter::new(settings.rate_bps),
            delay: settings.delay,
            counters: Counters::default(),
            chances: Chances::new(&settings, loss, jitter),
            flight: Flight::new(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            red: None,
            up: State::Serial,
            settings,
        }
    }

    /// A link whose packets are for a shared medium.
    pub fn shared(settings: LinkSettings, place: Place) -> Self {
        let unused = SplitMix64::new(0);
        let up = State::Shared(place);
        Self {
            state: up,
            up,
            ..Self::new(settings, unused.clone(), unused)
        }
    }

    /// Let the queue drop early.
    pub fn drop_early(&mut self, red: Red) {
        self.red = Some(Box::new(red));
        self.bounded = true;
    }

    /// Keep what waits, for a change to come.
    pub fn expect_changes(&mut self) {
        self.bounded = true;
    }

    /// Become another link: what waits leaves at the new rate and has the new delay, what is on the wire arrives as before, and
    /// nothing is overtaken. `reserve` makes an arrival at a time; returned is one that must be scheduled now.
    pub fn change(
        &mut self,
        now: Nanos,
        change: &LinkChange,
        mut reserve: impl FnMut(Nanos) -> Event,
    ) -> Option<Event> {
        let LinkChange { settings, .. } = change;
        let first = self.waiting.partition_point(|packet| packet.start <= now);
        let moved = self
            .waiting
            .iter()
            .skip(first)
            .filter(|packet| !packet.lost);
        let on_wire = self.flight.len() - moved.count();
        let last_arrival = match on_wire {
            0 => 0,
            count => self.flight.get_mut(count - 1).arrival.time(),
        };
        self.change_wire(change, last_arrival);
        let begin = self
            .waiting
            .get(first)
            .map_or(self.transmitter.busy_until, |packet| packet.start);
        self.transmitter.change(begin, settings.rate_bps);
        let mut index = on_wire;
        for packet in self.waiting.range_mut(first..) {
            packet.start = self.transmitter.busy_until;
            let departure = self.transmitter.send(packet.start, packet.bytes);
            if packet.lost {
                continue;
            }
            let mut arrival = departure + settings.delay;
            if let Some(chances) = &mut self.chances {
                arrival = chances.delayed(arrival, settings.jitter);
            }
            self.flight.get_mut(index).arrival = reserve(arrival);
            index += 1;
        }
        (on_wire == 0 && index > 0).then_some(self.flight.first.arrival)
    }

    /// Take the new settings of the wire, on which the last packet arrives at a time.
    fn change_wire(&mut self, change: &LinkChange, last_arrival: Nanos) {
        let settings = change.settings;
        let (loss, jitter) = match self.chances.take() {
            Some(chances) => {
                let Chances { loss, jitter, .. } = *chances;
                (loss.map(|(_, rng)| rng), jitter)
            }
            None => (None, None),
        };
        let loss = loss.unwrap_or_else(|| change.loss.clone());
        let jitter = jitter.unwrap_or_else(|| change.jitter.clone());
        self.chances = Some(Box::new(Chances {
            last_arrival,
            ..Chances::of(&settings, loss, jitter)
        }));
        self.delay = settings.delay;
        self.settings = settings;
    }

    /// Its place on a shared medium, if it is on one.
    pub fn place(&self) -> Option<Place> {
        match self.up {
            State::Shared(place) => Some(place),
            _ => None,
        }
    }

    /// Queue a packet of `bytes`. If it arrives, the caller follows with [`Link::launch`].
    #[inline]
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> Verdict {
        match self.state {
            State::Serial => {}
            State::Shared(place) => return Verdict::Shared(place),
            State::Down => {
                self.counters.dropped_down += 1;
                return Verdict::Dropped(Drop::Down);
            }
        }
        let start = now.max(self.transmitter.busy_until);
        if self.bounded && !self.has_room(now, start, bytes) {
            self.counters.dropped_queue += 1;
            return Verdict::Dropped(Drop::QueueFull);
        }
        let departure = self.transmitter.send(now, bytes);
        self.counters.packets += 1;
        self.counters.bytes += u64::from(bytes);
        self.counters.max_wait = self.counters.max_wait.max(start - now);
        let mut arrival = departure + self.delay;
        if let Some(chances) = &mut self.chances {
            if chances.loses() {
                self.counters.lost += 1;
                if let Some(packet) = self.waiting.back_mut().filter(|_| start > now) {
                    packet.lost = true;
                }
                return Verdict::Dropped(Drop::Lost);
            }
            arrival = chances.delayed(arrival, self.settings.jitter);
        }
        Verdict::Arrives(arrival)
    }

    /// Put a transmitted packet on its way; whether it is the only one, so that its arrival must be scheduled.
    pub fn launch(&mut self, packet: InFlight) -> bool {
        self.flight.push(packet)
    }

    /// Take the packet that arrives by `event`, and the arrival of the next; none if the link went down meanwhile.
    pub fn arrive(&mut self, event: Event) -> Option<(InFlight, Option<Event>)> {
        (self.flight.first.arrival == event).then(|| self.flight.pop())
    }

    /// Go down: what waits or is on the wire is lost, and handed back.
    pub fn go_down(&mut self, now: Nanos) -> Vec<InFlight> {
        self.state = State::Down;
        self.transmitter.stop(now);
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.counters.dropped_down += self.flight.len() as u64;
        self.flight.take()
    }

    /// Come up again.
    pub fn come_up(&mut self) {
        self.state = self.up;
    }

    /// Whether the link is down.
    pub fn is_down(&self) -> bool {
        self.state == State::Down
    }

    /// What the link is.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// What the link has carried.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Packets queued, in transmission or on the wire.
    pub fn in_flight(&self) -> usize {
        self.flight.len()
    }

    /// Time that the transmitter has been busy until `now`, which is no earlier than any packet so far.
    pub fn busy_time(&self, now: Nanos) -> Nanos {
        self.transmitter.busy - self.transmitter.busy_until.saturating_sub(now)
    }

    /// Whether a packet that would start at `start` may wait.
    ///
    /// What arrives at the nanosecond at which a place becomes free comes before it does, as in ns-3, where the arrival was scheduled
    /// first. Such ties are common where links of one rate follow each other.
    fn has_room(&mut self, now: Nanos, start: Nanos, bytes: u32) -> bool {
        while let Some(packet) = self.waiting.front() {
            if packet.start >= now {
                break;
            }
            self.waiting_bytes -= u64::from(packet.bytes);
            self.waiting.pop_front();
        }
        if let Some(red) = &mut self.red {
            let idle = now.saturating_sub(self.transmitter.busy_until);
            let idle_packets =
                idle as f64 * self.settings.rate_bps as f64 / (f64::from(bytes) * 8e9);
            if red.drops(self.waiting.len(), idle_packets) {
                return false;
            }
        }
        if start <= now {
            return true;
        }
        let packets = self.waiting.len() as u64 + 1;
        let total = self.waiting_bytes + u64::from(bytes);
        let fits = self
            .settings
            .queue_packets
            .map_or(true, |limit| packets <= limit)
            && self
                .settings
                .queue_bytes
                .map_or(true, |limit| total <= limit);
        if fits {
            self.waiting.push_back(Waiting {
                start,
                bytes,
                lost: false,
            });
            self.waiting_bytes = total;
        }
        fits
    }
}

/// Serialises packets one after the other, exactly: what is less than a nanosecond is carried over to the next packet.
#[derive(Debug)]
#[repr(C)]
struct Transmitter {
    rate_bps: u64,
    busy_until: Nanos,
    /// Of a nanosecond, in units of 1 / `rate_bps`.
    carry: u64,
    /// The last size with its quotient and remainder: most packets of a link are of one size.
    known: (u32, Nanos, u64),
    busy: Nanos,
}

impl Transmitter {
    fn new(rate_bps: u64) -> Self {
        Self {
            rate_bps,
            busy_until: 0,
            busy: 0,
            carry: 0,
            known: (0, 0, 0),
        }
    }

    /// Send after all that was sent before; when the last bit leaves.
    fn send(&mut self, now: Nanos, bytes: u32) -> Nanos {
        if self.known.0 != bytes {
            let work = u128::from(bytes) * 8 * u128::from(SECOND);
            let rate = u128::from(self.rate_bps);
            self.known = (bytes, (work / rate) as Nanos, (work % rate) as u64);
        }
        let (_, mut time, remainder) = self.known;
        if now >= self.busy_until {
            self.busy_until = now;
            self.carry = 0;
        }
        self.carry += remainder;
        if self.carry >= self.rate_bps {
            self.carry -= self.rate_bps;
            time += 1;
        }
        self.busy_until += time;
        self.busy += time;
        self.busy_until
    }

    /// Have another rate from `begin` on, and nothing to send after that.
    fn change(&mut self, begin: Nanos, rate_bps: u64) {
        self.stop(begin);
        self.rate_bps = rate_bps;
        self.carry = 0;
        self.known = (0, 0, 0);
    }

    fn stop(&mut self, now: Nanos) {
        self.busy -= self.busy_until.saturating_sub(now);
        self.busy_until = self.busy_until.min(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{EventQueue, Target};
    use crate::time::MILLISECOND;

    const SETTINGS: LinkSettings = LinkSettings {
        rate_bps: 10_000_000,
        delay: MILLISECOND,
        queue_packets: None,
        queue_bytes: None,
        loss: 0.0,
        jitter: 0,
    };

    fn link(settings: LinkSettings) -> Link {
        Link::new(settings, SplitMix64::new(1), SplitMix64::new(2))
    }

    #[test]
    fn serialises_then_delays() {
        let mut link = link(SETTINGS);
        let arrival = |time| Verdict::Arrives(time + MILLISECOND);
        assert_eq!(link.transmit(0, 590), arrival(472_000));
        assert_eq!(link.transmit(0, 590), arrival(944_000));
        assert_eq!(link.busy_time(472_000), 472_000);
        assert_eq!(link.transmit(2_000_000, 54), arrival(2_043_200));
        assert_eq!(link.busy_time(2_000_000), 944_000);
        assert_eq!(link.busy_time(3_000_000), 987_200);
    }

    #[test]
    fn fractions_of_a_nanosecond_are_not_lost() {
        let mut link = link(LinkSettings {
            rate_bps: 3_000_000_000,
            delay: 0,
            ..SETTINGS
        });
        let last = (0..3_000).map(|_| link.transmit(0, 590)).last();
        assert_eq!(last, Some(Verdict::Arrives(590 * 8 * 1_000)));
    }

    #[test]
    fn a_full_queue_drops_and_drains() {
        let mut link = link(LinkSettings {
            queue_packets: Some(2),
            ..SETTINGS
        });
        let verdicts: Vec<bool> = (0..4)
            .map(|_| matches!(link.transmit(0, 590), Verdict::Arrives(_)))
            .collect();
        assert_eq!(verdicts, [true, true, true, false]);
        let full = Verdict::Dropped(Drop::QueueFull);
        assert_eq!(link.transmit(472_000, 590), full);
        assert!(matches!(link.transmit(472_001, 590), Verdict::Arrives(_)));
        assert_eq!(link.transmit(472_001, 590), full);
        assert_eq!(link.counters().dropped_queue, 3);
    }

    #[test]
    fn a_queue_can_be_bounded_in_bytes() {
        let mut link = link(LinkSettings {
            queue_bytes: Some(1_000),
            ..SETTINGS
        });
        assert!(matches!(link.transmit(0, 590), Verdict::Arrives(_)));
        assert!(matches!(link.transmit(0, 590), Verdict::Arrives(_)));
        assert_eq!(link.transmit(0, 590), Verdict::Dropped(Drop::QueueFull));
        assert!(matches!(link.transmit(0, 410), Verdict::Arrives(_)));
    }

    #[test]
    fn jitter_delays_and_never_reorders() {
        let mut link = link(LinkSettings {
            jitter: 5 * MILLISECOND,
            ..SETTINGS
        });
        let mut last = 0;
        for k in 1..1_000u64 {
            let Verdict::Arrives(arrival) = link.transmit(0, 590) else {
                panic!("dropped")
            };
            let earliest = k * 472_000 + MILLISECOND;
            assert!(arrival >= earliest.max(last) && arrival <= earliest + 5 * MILLISECOND);
            last = arrival;
        }
    }

    #[test]
    fn loss_has_its_probability() {
        let mut link = link(LinkSettings {
            loss: 0.1,
            ..SETTINGS
        });
        let lost = (0..100_000)
            .filter(|_| link.transmit(0, 590) == Verdict::Dropped(Drop::Lost))
            .count();
        assert!((9_700..10_300).contains(&lost), "{lost}");
    }

    /// Queue packets of 590 bytes at time 0; the arrivals that the link has for them.
    fn queue_packets(link: &mut Link, queue: &mut EventQueue, count: u32) -> Vec<Nanos> {
        let mut arrivals = Vec::new();
        for packet in 0..count {
            if let Verdict::Arrives(time) = link.transmit(0, 590) {
                let arrival = queue.reserve(time, Target::Link(0));
                arrivals.push(time);
                link.launch(InFlight {
                    arrival,
                    packet,
                    cursor: 0,
                    bytes: 590,
                });
            }
        }
        arrivals
    }

    fn arrivals(link: &mut Link) -> Vec<Nanos> {
        (0..link.flight.len())
            .map(|index| link.flight.get_mut(index).arrival.time())
            .collect()
    }

    fn becomes(settings: LinkSettings) -> LinkChange {
        LinkChange {
            settings,
            loss: SplitMix64::new(3),
            jitter: SplitMix64::new(4),
        }
    }

    #[test]
    fn what_waits_leaves_at_the_new_rate() {
        let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
        link.expect_changes();
        assert_eq!(
            queue_packets(&mut link, &mut queue, 4)[3],
            4 * 472_000 + MILLISECOND
        );
        let slower = becomes(LinkSettings {
            rate_bps: 5_000_000,
            ..SETTINGS
        });
        // The second is under way; two wait, and take twice as long each.
        let due = link.change(500_000, &slower, |time| {
            queue.reserve(time, Target::Link(0))
        });
        assert_eq!(due, None);
        let expected = [472_000, 944_000, 1_888_000, 2_832_000].map(|time| time + MILLISECOND);
        assert_eq!(arrivals(&mut link), expected);
        assert_eq!(link.busy_time(3_000_000), 2_832_000);
        assert_eq!(
            link.transmit(600_000, 590),
            Verdict::Arrives(3_776_000 + MILLISECOND)
        );
    }

    #[test]
    fn nothing_is_overtaken_when_the_delay_falls() {
        let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
        link.expect_changes();
        queue_packets(&mut link, &mut queue, 2);
        let nearer = becomes(LinkSettings {
            delay: 0,
            ..SETTINGS
        });
        link.change(950_000, &nearer, |time| {
            queue.reserve(time, Target::Link(0))
        });
        let last = 944_000 + MILLISECOND;
        assert_eq!(arrivals(&mut link)[1], last);
        assert_eq!(link.transmit(1_000_000, 590), Verdict::Arrives(last));
        assert_eq!(link.transmit(3_000_000, 590), Verdict::Arrives(3_472_000));
    }

    #[test]
    fn packets_that_the_wire_loses_keep_their_place_in_the_queue() {
        let (mut link, mut queue) = (
            link(LinkSettings {
                loss: 0.5,
                ..SETTINGS
            }),
            EventQueue::default(),
        );
        link.expect_changes();
        let before = queue_packets(&mut link, &mut queue, 40);
        assert!((5..35).contains(&before.len()));
        let same = becomes(LinkSettings {
            loss: 0.5,
            ..SETTINGS
        });
        link.change(1, &same, |time| queue.reserve(time, Target::Link(0)));
        assert_eq!(arrivals(&mut link), before);
        assert_eq!(link.busy_time(u64::MAX), 40 * 472_000);
    }

    #[test]
    fn a_link_that_goes_down_loses_what_it_holds() {
        let (mut link, mut queue) = (link(SETTINGS), EventQueue::default());
        let mut arrivals = Vec::new();
        for packet in 0..3 {
            let Verdict::Arrives(time) = link.transmit(0, 590) else {
                panic!("dropped")
            };
            let arrival = queue.reserve(time, Target::Link(0));
            arrivals.push(arrival);
            link.launch(InFlight {
                arrival,
                packet,
                cursor: 0,
                bytes: 590,
            });
        }
        let (first, next) = link.arrive(arrivals[0]).unwrap();
        assert_eq!((first.packet, next), (0, Some(arrivals[1])));
        assert_eq!(link.go_down(500_000).len(), 2);
        assert!(link.arrive(arrivals[1]).is_none());
        assert_eq!(link.transmit(600_000, 590), Verdict::Dropped(Drop::Down));
        link.come_up();
        assert_eq!(
            link.transmit(700_000, 590),
            Verdict::Arrives(700_000 + 472_000 + MILLISECOND)
        );
        assert_eq!(link.counters().dropped_down, 3);
    }
}
