//! Control frames that wait for a stream, or for several.

use super::drafting::FrameKind;
use super::Sender;
use crate::control::Control;
use crate::frame;
use crate::scheduler::StreamSet;

/// A control frame, the streams that are still to carry it, and whether one has. A stream without room gets it when it has
/// some: else what a slow stream brings would never be told on the only stream that works. Without a stream in the set the
/// frame goes over whichever has room first.
#[derive(Debug)]
pub(super) struct PendingControl {
    control: Control,
    targets: StreamSet,
    is_sent: bool,
}

impl Sender {
    /// Queue a control frame, on these streams or on whichever has room; it goes before data.
    pub fn push_control(&mut self, control: Control, targets: StreamSet) {
        // Only the newest of its kind matters, so that a peer cannot have the queue grow.
        let drafted = matches!(self.draft, Some((_, FrameKind::Control)));
        let replaced = |old: &Control| match (old, &control) {
            (Control::Pong(_), Control::Pong(_)) => true,
            (Control::Gone(old), Control::Gone(new)) => old == new,
            (Control::Status { id: old, .. }, Control::Status { id: new, .. }) => old == new,
            (old, new) => std::mem::discriminant(old) == std::mem::discriminant(new),
        };
        let mut place = 0;
        let mut left = StreamSet::default();
        self.controls.retain(|pending| {
            place += 1;
            let stays = (drafted && place == 1) || !replaced(&pending.control);
            if !stays {
                left = left.or(pending.targets);
            }
            stays
        });
        self.controls.push_back(PendingControl {
            control,
            targets: targets.or(left.and(self.alive)),
            is_sent: false,
        });
    }

    /// Send an acknowledgement on these streams; one that waits is replaced.
    pub(crate) fn push_ack(&mut self, targets: StreamSet, ack: Control) {
        let left = self.ack.take().map_or(targets, |before| before.targets);
        self.ack = Some(PendingControl {
            control: ack,
            targets: targets.or(left.and(self.alive)),
            is_sent: false,
        });
    }

    /// Whether an acknowledgement waits that no stream has carried.
    pub(crate) fn has_ack(&self) -> bool {
        self.ack.as_ref().is_some_and(|ack| !ack.is_sent)
    }

    /// Draft the control frame that is next, if a stream has room for it.
    pub(super) fn draw_control(&mut self) -> Option<usize> {
        if let Some(ack) = self.ack.take() {
            let stream = self.stream_for(&ack);
            if let Some(stream) = stream {
                frame::encode_control(&mut self.streams[stream].out.header, &ack.control);
                self.draft = Some((stream, FrameKind::Ack));
            }
            self.ack = Some(ack);
            if stream.is_some() {
                return stream;
            }
        }
        let mut waiting = self.controls.iter().enumerate();
        let (place, stream) =
            waiting.find_map(|(place, pending)| Some((place, self.stream_for(pending)?)))?;
        // What is drafted is the first.
        let pending = self.controls.remove(place)?;
        frame::encode_control(&mut self.streams[stream].out.header, &pending.control);
        self.controls.push_front(pending);
        self.draft = Some((stream, FrameKind::Control));
        Some(stream)
    }

    fn stream_for(&self, pending: &PendingControl) -> Option<usize> {
        let with_room = self.with_room.without(self.greeting);
        let room = with_room.and(self.alive).without(self.last_begun);
        let target = pending.targets.and(room).iter().next();
        if target.is_some() || pending.is_sent {
            return target;
        }
        with_room.and(self.eligible).iter().next()
    }

    /// Note that the drafted acknowledgement goes out on a stream.
    pub(super) fn begin_ack(&mut self, stream: usize) {
        self.streams[stream].note_ack_sent(self.views_ns);
        if let Some(ack) = &mut self.ack {
            ack.is_sent = true;
            ack.targets.remove(stream);
            if ack.targets.and(self.alive).is_empty() {
                self.ack = None;
            }
        }
    }

    /// Note that the drafted control frame goes out on a stream.
    pub(super) fn begin_control(&mut self, stream: usize) {
        if let Some(pending) = self.controls.front_mut() {
            pending.is_sent = true;
            pending.targets.remove(stream);
            if pending.targets.and(self.alive).is_empty() {
                self.controls.pop_front();
            }
        }
    }
}
