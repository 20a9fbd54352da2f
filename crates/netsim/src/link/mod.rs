//! One direction of a link: a queue, a transmitter of some rate, and a wire of some delay.
//!
//! The time at which a packet leaves the transmitter is known as soon as it is queued, max(now, busy) + size / rate, so a
//! packet costs one event on each link: its arrival. Packets arrive in the order in which they were sent.
//!
//! A link over a shared medium hands its packets on to the medium (`wifi::medium`), which alone knows when they are sent.

mod flight;
mod impairments;
mod transmitter;

use std::collections::VecDeque;

use crate::prefetch::prefetch_part;
use crate::queue::Event;
use crate::random::{SeedableRng, SplitMix64};
use crate::time::Nanos;

use flight::Flight;
pub use flight::InFlight;
use impairments::Impairments;
use transmitter::Transmitter;

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

/// What a link did with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendOutcome {
    /// It arrives at this time.
    Arrives(Nanos),
    /// It is gone.
    Dropped(DropReason),
    /// The medium of the link decides.
    Shared(MediumPair),
}

/// The stations on a shared medium that a link connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediumPair {
    /// Which medium.
    pub medium: u32,
    /// Which of its pairs of stations.
    pub pair: u32,
}

/// What becomes of the packets of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum State {
    /// All are sent, one after the other, and arrive.
    Lossless,
    /// They are sent one after the other; its queue or chance may lose them.
    Lossy,
    /// Its medium takes them.
    Shared,
    /// They are lost.
    Down,
}

/// Why a packet is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
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
/// Where there are many links, most of the time goes by waiting for memory: an arrival needs the first cache line, a transmission the
/// first two.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    flight: Flight,
    delay: Nanos,
    packets: u64,
    state: State,
    transmitter: Transmitter,
    bytes: u64,
    /// Without packets and bytes, which stand above.
    counters: Counters,
    /// Whether the queue has a bound of any kind.
    bounded: bool,
    /// Losses and jitter of the wire.
    impairments: Option<Box<Impairments>>,
    /// What may still wait; kept only where the queue is bounded or the link changes.
    waiting: VecDeque<Waiting>,
    waiting_bytes: u64,
    medium_pair: Option<MediumPair>,
    settings: LinkSettings,
}

/// What of a link an arrival needs, and what a transmission.
const ARRIVAL_BYTES: usize = 64;
const TRANSMISSION_BYTES: usize = 128;

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

impl Link {
    /// An idle link; `loss` and `jitter` draw from these generators.
    pub fn new(settings: LinkSettings, loss: SplitMix64, jitter: SplitMix64) -> Self {
        let mut link = Self {
            flight: Flight::new(),
            delay: settings.delay,
            packets: 0,
            state: State::Lossless,
            transmitter: Transmitter::new(settings.rate_bps),
            bytes: 0,
            counters: Counters::default(),
            bounded: (settings.queue_packets, settings.queue_bytes) != (None, None),
            impairments: Impairments::new(&settings, loss, jitter),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            medium_pair: None,
            settings,
        };
        link.come_up();
        link
    }

    /// A link whose packets are for a shared medium.
    pub fn shared(settings: LinkSettings, medium_pair: MediumPair) -> Self {
        let unused = SplitMix64::seed_from_u64(0);
        Self {
            state: State::Shared,
            medium_pair: Some(medium_pair),
            ..Self::new(settings, unused.clone(), unused)
        }
    }

    /// Keep what waits, for a change to come.
    pub fn expect_changes(&mut self) {
        self.bounded = true;
        self.come_up();
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
            count => self.flight.arrival_mut(count - 1).time(),
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
            if let Some(impairments) = &mut self.impairments {
                arrival = impairments.delayed(arrival, settings.jitter);
            }
            *self.flight.arrival_mut(index) = reserve(arrival);
            index += 1;
        }
        (on_wire == 0 && index > 0).then_some(self.flight.first().arrival)
    }

    /// Take the new settings of the wire, on which the last packet arrives at a time.
    fn change_wire(&mut self, change: &LinkChange, last_arrival: Nanos) {
        let settings = change.settings;
        let (loss, jitter) = match self.impairments.take() {
            Some(impairments) => {
                let Impairments { loss, jitter, .. } = *impairments;
                (loss.map(|(_, rng)| rng), jitter)
            }
            None => (None, None),
        };
        let loss = loss.unwrap_or_else(|| change.loss.clone());
        let jitter = jitter.unwrap_or_else(|| change.jitter.clone());
        self.impairments = Some(Box::new(Impairments {
            last_arrival,
            ..Impairments::of(&settings, loss, jitter)
        }));
        self.delay = settings.delay;
        self.settings = settings;
    }

    /// Which pair of which shared medium it is, if it is on one.
    pub fn medium_pair(&self) -> Option<MediumPair> {
        self.medium_pair
    }

    /// Queue a packet of `bytes`. If it arrives, the caller follows with [`Link::launch`].
    #[inline]
    pub fn transmit(&mut self, now: Nanos, bytes: u32) -> SendOutcome {
        if self.state == State::Lossless {
            return SendOutcome::Arrives(self.send(now, bytes));
        }
        if let Some(medium_pair) = self.medium_pair.filter(|_| self.state == State::Shared) {
            return SendOutcome::Shared(medium_pair);
        }
        if self.state == State::Down {
            self.counters.dropped_down += 1;
            return SendOutcome::Dropped(DropReason::Down);
        }
        let start = now.max(self.transmitter.busy_until);
        if self.bounded && !self.has_room(now, start, bytes) {
            self.counters.dropped_queue += 1;
            return SendOutcome::Dropped(DropReason::QueueFull);
        }
        let mut arrival = self.send(now, bytes);
        if let Some(impairments) = &mut self.impairments {
            if impairments.loses() {
                self.counters.lost += 1;
                if let Some(packet) = self.waiting.back_mut().filter(|_| start > now) {
                    packet.lost = true;
                }
                return SendOutcome::Dropped(DropReason::Lost);
            }
            arrival = impairments.delayed(arrival, self.settings.jitter);
        }
        SendOutcome::Arrives(arrival)
    }

    /// Send a packet after all before it; when it arrives if the wire does not change that.
    fn send(&mut self, now: Nanos, bytes: u32) -> Nanos {
        let wait = self.transmitter.busy_until.saturating_sub(now);
        if wait > 0 {
            self.counters.max_wait = self.counters.max_wait.max(wait);
        }
        self.packets += 1;
        self.bytes += u64::from(bytes);
        self.transmitter.send(now, bytes) + self.delay
    }

    /// Put a transmitted packet on its way; whether it is the only one, so that its arrival must be scheduled.
    pub fn launch(&mut self, packet: InFlight) -> bool {
        self.flight.push(packet)
    }

    /// Take the packet that arrives by `event`, and the arrival of the next; none if the link went down meanwhile.
    pub fn arrive(&mut self, event: Event) -> Option<(InFlight, Option<Event>)> {
        (self.flight.first().arrival == event).then(|| self.flight.pop())
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
        self.state = match self.medium_pair {
            Some(_) => State::Shared,
            None if self.bounded || self.impairments.is_some() => State::Lossy,
            None => State::Lossless,
        };
    }

    /// The packets that arrive before a time, in order.
    pub(crate) fn arriving(&self, before: Nanos) -> impl Iterator<Item = InFlight> + '_ {
        let all = std::iter::once(self.flight.first()).chain(self.flight.rest().copied());
        all.take_while(move |packet| packet.arrival.time() < before)
    }

    /// Fetch what an arrival needs.
    #[inline]
    pub(crate) fn prefetch_arrival(&self) {
        prefetch_part(self, ARRIVAL_BYTES);
    }

    /// Fetch what a transmission needs.
    #[inline]
    pub(crate) fn prefetch_transmission(&self) {
        prefetch_part(self, TRANSMISSION_BYTES);
    }

    /// What the link is.
    pub fn settings(&self) -> &LinkSettings {
        &self.settings
    }

    /// What the link has carried.
    pub fn counters(&self) -> Counters {
        Counters {
            packets: self.packets,
            bytes: self.bytes,
            ..self.counters
        }
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

#[cfg(test)]
mod tests;
