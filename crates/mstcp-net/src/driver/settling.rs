//! What follows from whatever a driver was told: frames are sent, and the shell hears what it is to do.

use mstcp_proto::{Event as CoreEvent, Outcome, StreamSet};

use super::{Action, Driver, Event, Loss, OpenSlot, Side};
use crate::dial;
use crate::error::Error;
use crate::sys;

impl Driver {
    /// Send what is to be sent, and have the shell do what follows. Other calls do so by themselves where they do not say otherwise.
    pub fn settle(&mut self, now_ns: u64) {
        if self.is_open && self.over.is_none() {
            self.pump(now_ns);
        }
        if self.is_closed {
            self.discard();
        }
        self.resume();
        let readable = self.endpoint.core.readable();
        self.are_sockets_new |= readable != self.readable;
        self.readable = readable;
        let has_bytes = self.endpoint.ready_bytes() > 0 || self.endpoint.is_ended();
        if has_bytes && !self.is_closed && !self.has_told_bytes {
            self.has_told_bytes = true;
            self.actions.push_back(Action::Deliver);
        }
    }

    pub(super) fn pump(&mut self, now_ns: u64) {
        loop {
            let sent = match self.endpoint.transmit(now_ns) {
                Ok(sent) => sent,
                Err(error) => return self.finish(Err(error.into())),
            };
            for slot in sent.ended.iter() {
                sys::shut(self.endpoint.sockets().descriptor(slot));
            }
            self.sent_bytes += sent.bytes as u64;
            if let Some((slot, errno)) = sent.failed {
                self.break_stream(now_ns, slot, errno);
                if self.over.is_some() || self.is_given_up() {
                    return;
                }
                continue;
            }
            self.are_sockets_new |= self.blocked != sent.blocked;
            self.blocked = sent.blocked;
            let mut has_changed = false;
            while let Some(event) = self.endpoint.poll_event() {
                has_changed = true;
                self.take_event(now_ns, event);
            }
            if self.is_given_up() {
                return;
            }
            if !has_changed || self.over.is_some() {
                break;
            }
        }
        if let Side::Server(registration) = &mut self.side {
            let core = &self.endpoint.core;
            registration.note(now_ns, core.alive().iter().count(), core.is_unconfirmed());
        }
    }

    pub(super) fn take_event(&mut self, now_ns: u64, event: CoreEvent) {
        let stream = |slot: usize| self.slots.get(slot).map(|slot| slot.stream);
        let event = match event {
            CoreEvent::Opened => {
                if let (Side::Client(dialler), Some(client)) =
                    (&mut self.side, self.endpoint.core.client())
                {
                    dialler.on_answered(now_ns, client.clone());
                    self.are_sockets_new = true;
                    self.follow_dialler(now_ns);
                }
                return;
            }
            CoreEvent::Addresses(addresses) => return self.follow_announced(now_ns, &addresses),
            CoreEvent::StreamGone { slot } => return self.let_go(now_ns, slot, Loss::Silent),
            CoreEvent::StreamJoined { slot } => return self.note_joined(slot),
            CoreEvent::StreamRefused { slot, error } => {
                return self.let_go_by(now_ns, slot, Loss::Silent, error.into());
            }
            CoreEvent::StreamStalled { slot } => {
                stream(slot).map(|stream| Event::StreamStalled { stream })
            }
            CoreEvent::StreamRecovered { slot } => {
                stream(slot).map(|stream| Event::StreamRecovered { stream })
            }
            CoreEvent::Closed(outcome) => {
                return self.finish(match outcome {
                    Outcome::Delivered => Ok(()),
                    Outcome::Undelivered { bytes } => Err(Error::Undelivered { bytes }),
                    Outcome::Lost => Err(Error::Lost),
                })
            }
        };
        self.actions.extend(event.map(Action::Event));
    }

    pub(super) fn finish(&mut self, result: Result<(), Error>) {
        if self.over.is_some() {
            return;
        }
        for slot in &mut self.slots {
            if let (Some(open), true) = (slot.open.take(), result.is_err()) {
                dial::reset_on_close(&open.descriptor);
            }
        }
        match &mut self.side {
            Side::Client(dialler) => dialler.stop(),
            Side::Server(registration) => registration.end(self.endpoint.core.farewell()),
            Side::Plain(place) => *place = None,
        }
        self.lingering = None;
        // Applications keep connections that are over.
        self.endpoint.core.leave_budget();
        self.are_sockets_new = true;
        self.blocked = StreamSet::default();
        self.over = Some(result.clone());
        self.watch();
        self.actions.push_back(Action::Ended(result));
    }

    pub(super) fn resume(&mut self) {
        let queued = self.endpoint.core.queued_bytes();
        let few = match self.awaits_empty {
            true => 0,
            false => self.few_queued_bytes,
        };
        if self.over.is_some() {
            // Who waits for room is told of the end.
            self.is_paused = false;
        } else if self.is_paused && queued <= few {
            (self.is_paused, self.awaits_empty) = (false, false);
            self.actions.push_back(Action::ResumeWriting);
        } else if !self.is_paused && queued > self.most_queued_bytes {
            self.is_paused = true;
            self.actions.push_back(Action::PauseWriting);
        }
    }

    /// Have the shell watch the sockets that there are.
    pub(super) fn watch(&mut self) {
        if !std::mem::take(&mut self.are_sockets_new) {
            return;
        }
        let open = (self.slots.iter().enumerate())
            .filter_map(|(at, slot)| Some((at, slot.open.as_ref()?)))
            .map(|(at, open)| {
                let for_bytes = self.is_read(at, open);
                let stands_by = self.stands_by || self.starts_later;
                let for_room = !stands_by && self.blocked.contains(at);
                (open.socket, open.descriptor.clone(), for_bytes, for_room)
            });
        let attempts = match &self.side {
            Side::Client(dialler) => Some(dialler.watched()),
            Side::Server(_) | Side::Plain(_) => None,
        };
        let attempts = (attempts.into_iter().flatten()).map(|(socket, descriptor, interest)| {
            (socket, descriptor.clone().into(), interest.0, interest.1)
        });
        let wanted: Vec<_> = open.chain(attempts).collect();
        for (socket, ..) in &self.watched {
            if wanted.iter().all(|(other, ..)| other != socket) {
                self.actions.push_back(Action::Unwatch { socket: *socket });
            }
        }
        let before = std::mem::take(&mut self.watched);
        for (socket, descriptor, for_bytes, for_room) in wanted {
            let now = (socket, for_bytes, for_room);
            if !before.contains(&now) {
                self.actions.push_back(Action::Watch {
                    socket,
                    descriptor,
                    for_bytes,
                    for_room,
                });
            }
            self.watched.push(now);
        }
    }

    /// Whether a stream is to be read now.
    fn is_read(&self, slot: usize, open: &OpenSlot) -> bool {
        let is_kept = self.endpoint.core.is_plain() && self.holds && !self.reads_ahead;
        let stands_by =
            self.stands_by || self.starts_later || open.has_ended || is_kept && !self.is_closed;
        !stands_by && self.endpoint.core.readable().contains(slot)
    }
}
