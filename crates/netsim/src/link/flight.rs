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
pub(super) struct Flight {
    pub(super) first: InFlight,
    rest: VecDeque<InFlight>,
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
            first: Self::NONE,
            rest: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.arrival == Event::NEVER
    }

    pub(super) fn len(&self) -> usize {
        usize::from(!self.is_empty()) + self.rest.len()
    }

    /// Append a packet; whether it is the only one.
    pub(super) fn push(&mut self, packet: InFlight) -> bool {
        let only = self.is_empty();
        if only {
            self.first = packet;
        } else {
            self.rest.push_back(packet);
        }
        only
    }

    /// Take the first, of which there is one, and say when the next arrives.
    pub(super) fn pop(&mut self) -> (InFlight, Option<Event>) {
        let next = self.rest.pop_front();
        let first = std::mem::replace(&mut self.first, next.unwrap_or(Self::NONE));
        (first, next.map(|next| next.arrival))
    }

    pub(super) fn get_mut(&mut self, index: usize) -> &mut InFlight {
        match index {
            0 => &mut self.first,
            _ => &mut self.rest[index - 1],
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
