//! What follows from whatever a driver was told: frames are sent, and the shell hears what it is to do.

use std::sync::Arc;

use mstcp_proto::{Event as CoreEvent, Outcome, StreamSet};

use super::{Action, Driver, Event, Side};
use crate::dial;
use crate::error::Error;
use crate::sys;

impl Driver {
    /// Send what is to be sent, and have the shell do what follows.
    pub(super) fn settle(&mut self, now_ns: u64) {
        if self.is_open && self.over.is_none() {
            self.pump(now_ns);
        }
        self.resume();
        let has_bytes = self.endpoint.ready_bytes() > 0 || self.endpoint.is_ended();
        if has_bytes && !self.has_told_bytes {
            self.has_told_bytes = true;
            self.actions.push_back(Action::Deliver);
        }
        self.watch();
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
            if let Some((slot, _)) = sent.failed {
                self.lose(now_ns, slot);
                continue;
            }
            self.are_sockets_new |= self.blocked != sent.blocked;
            self.blocked = sent.blocked;
            let mut has_changed = false;
            while let Some(event) = self.endpoint.poll_event() {
                has_changed = true;
                self.take_event(now_ns, event);
            }
            let told = self.endpoint.core.closed_by_peer();
            if let Some((code, reason)) = told.map(|(code, why)| (code, why.to_owned())) {
                return self.finish(Err(Error::ClosedByPeer { code, reason }));
            }
            if !has_changed || self.over.is_some() {
                break;
            }
        }
        if let Side::Server(membership) = &mut self.side {
            membership.note_time(now_ns);
            membership.set_alive(self.endpoint.core.alive().iter().count());
        }
    }

    pub(super) fn take_event(&mut self, now_ns: u64, event: CoreEvent) {
        let stream = |slot: usize| self.slots.get(slot).map(|slot| slot.stream);
        let event = match event {
            // Hellos are this driver's own.
            CoreEvent::Opened => None,
            CoreEvent::StreamGone { slot } => return self.let_go(now_ns, slot, false),
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
            Side::Server(membership) => membership.end(self.endpoint.core.farewell()),
        }
        self.are_sockets_new = true;
        self.blocked = StreamSet::default();
        self.over = Some(result.clone());
        self.watch();
        self.actions.push_back(Action::Ended(result));
    }

    pub(super) fn resume(&mut self) {
        let few = self.endpoint.core.queued_bytes() <= self.send_buffer_bytes / 2;
        if self.is_paused && (few || self.over.is_some()) {
            self.is_paused = false;
            self.actions.push_back(Action::ResumeWriting);
        }
    }

    /// Have the shell watch the sockets that there are.
    pub(super) fn watch(&mut self) {
        if !std::mem::take(&mut self.are_sockets_new) {
            return;
        }
        let open = (self.slots.iter().enumerate())
            .filter_map(|(at, slot)| Some((at, slot.open.as_ref()?)))
            .map(|(at, open)| (open.socket, &open.descriptor, self.blocked.contains(at)));
        let attempts = match &self.side {
            Side::Client(dialler) => Some(dialler.watched()),
            Side::Server(_) => None,
        };
        let wanted: Vec<_> = open.chain(attempts.into_iter().flatten()).collect();
        for (socket, _) in &self.watched {
            if wanted.iter().all(|(other, ..)| other != socket) {
                self.actions.push_back(Action::Unwatch { socket: *socket });
            }
        }
        for (socket, descriptor, for_room) in &wanted {
            if !self.watched.contains(&(*socket, *for_room)) {
                self.actions.push_back(Action::Watch {
                    socket: *socket,
                    descriptor: Arc::clone(descriptor),
                    for_room: *for_room,
                });
            }
        }
        self.watched = (wanted.iter())
            .map(|(socket, _, for_room)| (*socket, *for_room))
            .collect();
    }
}
