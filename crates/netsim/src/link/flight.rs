//! What is on its way over a link.

use std::collections::VecDeque;

use crate::queue::Event;

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

/// What is on its way, in order: the first by itself, since most links hold one packet at a time.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Flight {
    arrival: Event,
    packet: u32,
    cursor: u32,
    bytes: u32,
    /// How many come after the first.
    behind: u32,
    #[allow(clippy::box_collection)] // a VecDeque is four times as long
    rest: Option<Box<VecDeque<InFlight>>>,
}

impl Flight {
    const NONE: InFlight = InFlight {
        arrival: Event::NEVER,
        packet: 0,
        cursor: 0,
        bytes: 0,
    };

    pub(super) fn new() -> Self {
        Self {
            arrival: Event::NEVER,
            packet: 0,
            cursor: 0,
            bytes: 0,
            behind: 0,
            rest: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrival == Event::NEVER
    }

    pub(super) fn len(&self) -> usize {
        usize::from(!self.is_empty()) + self.behind as usize
    }

    pub(super) fn first(&self) -> InFlight {
        InFlight {
            arrival: self.arrival,
            packet: self.packet,
            cursor: self.cursor,
            bytes: self.bytes,
        }
    }

    fn set_first(&mut self, packet: InFlight) {
        self.arrival = packet.arrival;
        self.packet = packet.packet;
        self.cursor = packet.cursor;
        self.bytes = packet.bytes;
    }

    /// Those after the first.
    pub(super) fn rest(&self) -> impl Iterator<Item = &InFlight> {
        let rest = self.rest.iter().filter(|_| self.behind > 0);
        rest.flat_map(|rest| rest.iter())
    }

    /// Append a packet; whether it is the only one.
    pub(super) fn push(&mut self, packet: InFlight) -> bool {
        let only = self.is_empty();
        if only {
            self.set_first(packet);
        } else {
            self.rest.get_or_insert_with(Box::default).push_back(packet);
            self.behind += 1;
        }
        only
    }

    /// Take the first, of which there is one, and say when the next arrives.
    pub(super) fn pop(&mut self) -> (InFlight, Option<Event>) {
        let first = self.first();
        let mut next = None;
        if self.behind > 0 {
            self.behind -= 1;
            next = self.rest.as_mut().and_then(|rest| rest.pop_front());
        }
        self.set_first(next.unwrap_or(Self::NONE));
        (first, next.map(|next| next.arrival))
    }

    /// When the packet at `index` arrives.
    pub(super) fn arrival_mut(&mut self, index: usize) -> &mut Event {
        match index {
            0 => &mut self.arrival,
            _ => &mut self.rest.get_or_insert_with(Box::default)[index - 1].arrival,
        }
    }

    pub(super) fn take(&mut self) -> Vec<InFlight> {
        let mut all = Vec::with_capacity(self.len());
        while !self.is_empty() {
            all.push(self.pop().0);
        }
        all
    }
}
