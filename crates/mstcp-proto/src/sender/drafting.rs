//! Which frame comes next, and on which stream: cut when a stream has room, final when its socket took some of it.

use super::opening::Phase;
use super::stream::ByteRange;
use super::Sender;
use crate::control::Control;
use crate::frame::{self, HEADER_BYTES, LONG_HEADER_BYTES, MAX_PAYLOAD_BYTES, SHORT_HEADER_BYTES};
use crate::receiver::{INITIAL_WINDOW_BYTES, MIN_PIECES};
use crate::scheduler::{StreamSet, View};
use crate::state::StreamState;

/// How long a frame lasts at its stream's rate, about, in seconds.
const FRAME_SECONDS: f64 = 0.002;
/// Below this rate frames are of full size, one segment each, for the sake of delay; in bit/s.
const LARGE_FRAMES_BPS: f64 = 50e6;
/// The greatest frame that is sent.
const MAX_FRAME_BYTES: usize = 1 << 19;
/// A peer counts what waits in its memory; this many bytes of the window go with one frame that it may not have.
const WINDOW_BYTES_A_FRAME: u64 = 128;

/// Which kind of frame is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    New,
    Again,
    /// Bytes that another stream, which carries them already, would bring later.
    Overtaking,
    Fin,
    Last,
    Control,
    Ack,
}

impl Sender {
    /// A stream with room that has part of a frame left to send.
    pub(super) fn begun_frame(&self) -> Option<usize> {
        self.with_room
            .iter()
            .find(|&index| self.streams[index].out.rest() > 0)
    }

    pub(super) fn withdraw_draft(&mut self, stream: usize) {
        if let Some((_, draft)) = self.draft.take() {
            let out = std::mem::take(&mut self.streams[stream].out);
            // All else is still where it was taken from.
            if let (FrameKind::Again, Some(span)) = (draft, out.span) {
                self.again.insert(span);
            }
        }
    }

    /// Make the drafted frame final on its stream, and copy it to the others if the scheduler wants it so.
    pub(super) fn begin(&mut self, stream: usize, draft: FrameKind) {
        match draft {
            FrameKind::Fin => {
                self.streams[stream].fin_begun = true;
                self.fin_sent = true;
            }
            FrameKind::Last => {
                if self.last_ack.is_some() {
                    self.streams[stream].note_ack_sent(self.views_ns);
                }
                self.streams[stream].fin_begun |= self.plain_bytes.is_some();
                self.set_state(stream, StreamState::Ended);
            }
            FrameKind::Ack => self.begin_ack(stream),
            FrameKind::Control => self.begin_control(stream),
            FrameKind::New | FrameKind::Again | FrameKind::Overtaking => {
                self.begin_data(stream, draft)
            }
        }
    }

    fn begin_data(&mut self, stream: usize, draft: FrameKind) {
        let Some(span) = self.streams[stream].out.span else {
            return;
        };
        let mut scheduler = self.scheduler.take();
        let view = self.view(span.length);
        let (alive, with_room) = (view.alive, view.with_room);
        let copied = scheduler.as_mut().is_some_and(|scheduler| {
            scheduler.on_begun(&view, stream);
            scheduler.is_copied(span.length)
        });
        self.scheduler = scheduler;
        let mut carriers = StreamSet::default();
        carriers.insert(stream);
        if copied {
            for index in with_room.iter().filter(|&index| alive.contains(index)) {
                let idle = self.streams[index].out.rest() == 0;
                if idle && self.views[index].weight > 0.0 {
                    self.streams[index].out = self.streams[stream].out.clone();
                    carriers.insert(index);
                }
            }
        }
        for index in carriers.iter() {
            let now_ns = self.views_ns;
            let left_ns = now_ns + self.host_wait_ns(index);
            let out = &mut self.streams[index];
            out.sent.frames += 1;
            out.sent.bytes += span.length as u64;
            if draft != FrameKind::New {
                out.sent.resent_bytes += span.length as u64;
            }
            if out.in_flight.is_empty() {
                out.progress_ns = now_ns;
            }
            if out.state == StreamState::Stalled {
                out.taken_stalled_ns.get_or_insert(now_ns);
            }
            out.flight.on_sent(span.length);
            out.push_frame(span, now_ns, left_ns, draft == FrameKind::Overtaking);
            self.views[index].backlog_bytes += out.out.rest() as f64;
            if !self.trusting {
                self.note_flight(index);
            }
        }
        match draft {
            FrameKind::New => {
                self.next_offset = span.end();
                self.begun_new_ns = self.views_ns;
                if !self.trusting {
                    self.cuts.note_first(span.end());
                }
            }
            FrameKind::Overtaking => {
                self.overtaken.insert(span.end(), self.views_ns);
            }
            _ => self.cuts.note_again(span.end()),
        }
    }

    pub(super) fn view(&self, frame_bytes: usize) -> View<'_> {
        let eligible = self.eligible;
        View {
            frame_bytes,
            expected_bytes: self.expected_bytes().max(frame_bytes as u64),
            alive: eligible,
            with_room: self.with_room.and(eligible).without(self.full),
            streams: &self.views,
        }
    }

    /// What is to be sent yet, as far as one can know.
    fn expected_bytes(&self) -> u64 {
        let queued = self.queued_bytes() as u64;
        match self.ended || queued == 0 {
            true => queued,
            false => queued.max((self.next_offset - self.busy_since) / 2),
        }
    }

    /// How large a frame may be on a stream: full size at low rates, more where that lasts no longer than 2 ms.
    pub(super) fn frame_bytes(&self, stream: usize) -> usize {
        let confirm_bytes = self.streams[stream].out.header.len();
        if confirm_bytes > 0 {
            // Both fill one segment, and what follows begins with the next.
            let beside = confirm_bytes + SHORT_HEADER_BYTES - HEADER_BYTES;
            return self.frame_payload_bytes.saturating_sub(beside).max(1);
        }
        let weight = self.views[stream].weight;
        let weight = (self.carried_bps(stream)).map_or(weight, |carried| weight.min(carried));
        if weight < LARGE_FRAMES_BPS {
            return self.frame_payload_bytes;
        }
        let bytes = (weight / 8.0 * FRAME_SECONDS) as usize;
        self.whole_segments(bytes.min(MAX_FRAME_BYTES).min(self.most_of_flight(stream)))
    }

    /// The application bytes, `bytes` or somewhat fewer, of a frame that ends with a segment: TCP would send its rest as a segment
    /// of its own, and counts its window in segments.
    fn whole_segments(&self, bytes: usize) -> usize {
        let segment_bytes = self.frame_payload_bytes + HEADER_BYTES;
        let frame_bytes = bytes / segment_bytes * segment_bytes;
        match frame_bytes.checked_sub(LONG_HEADER_BYTES) {
            _ if frame_bytes <= segment_bytes => self.frame_payload_bytes,
            Some(long) if long > MAX_PAYLOAD_BYTES => long,
            _ => frame_bytes - SHORT_HEADER_BYTES,
        }
    }

    /// Cut the next frame and give it to a stream.
    pub(super) fn draw(&mut self, now_ns: u64) -> Option<usize> {
        if let Some(most) = self.plain_bytes {
            return self.draw_plain(most);
        }
        self.drain_backlogs(now_ns);
        self.look_at_flights(now_ns);
        self.relieve_late();
        let is_open = self.phase == Phase::Open;
        if let Some(stream) = is_open.then(|| self.draw_control()).flatten() {
            return Some(stream);
        }
        if let Some(stream) = self.retired() {
            return Some(self.draft_last(stream));
        }
        self.trim_again();
        if let Some(span) = self.again.first().copied() {
            let stream = self.choose(span.length)?;
            let length = match self.is_crowded() {
                true => span.length,
                false => span.length.min(self.frame_bytes(stream)),
            };
            self.again.pop_first();
            if length < span.length {
                self.again.insert(ByteRange {
                    offset: span.offset + length as u64,
                    length: span.length - length,
                });
            }
            return Some(self.draft_data(stream, FrameKind::Again, span.offset, length));
        }
        let open = self.limit().saturating_sub(self.next_offset);
        let unsent = (self.queued_bytes() as u64).min(open) as usize;
        if unsent > 0 {
            if !self.trusting && self.is_crowded() {
                return None;
            }
            let stream = self.choose(unsent.min(self.frame_payload_bytes))?;
            let length = unsent.min(self.frame_bytes(stream));
            return Some(self.draft_data(stream, FrameKind::New, self.next_offset, length));
        }
        if self.queued_bytes() > 0 {
            return self.draft_unblocking();
        }
        if !is_open {
            return None;
        }
        self.draft_end().or_else(|| self.draft_overtaking(now_ns))
    }

    /// Offer the next bytes of a plain connection; none stand for the end.
    fn draw_plain(&mut self, most: usize) -> Option<usize> {
        let stream = self.with_room.and(self.alive).iter().next()?;
        let unsent = self.queued_bytes();
        if unsent > 0 {
            return Some(self.draft_data(
                stream,
                FrameKind::New,
                self.next_offset,
                unsent.min(most),
            ));
        }
        let out = &mut self.streams[stream];
        if !self.ended || out.state == StreamState::Ended {
            return None;
        }
        out.out.ends_stream = true;
        self.draft = Some((stream, FrameKind::Last));
        Some(stream)
    }

    /// Whether as many frames are on their way as the peer can be asked to order: what it lacks cuts what it has into
    /// pieces, each of which costs it memory. Only frames of few bytes come so far before the window is full.
    fn is_crowded(&self) -> bool {
        let window = self.limit().saturating_sub(self.acknowledged);
        let window = window.max(INITIAL_WINDOW_BYTES as u64);
        self.cuts.count() >= MIN_PIECES as u64 + window / WINDOW_BYTES_A_FRAME
    }

    fn draft_end(&mut self) -> Option<usize> {
        for stream in self.with_room.and(self.alive).without(self.greeting).iter() {
            let total_bytes = self.buffer.end();
            let out = &mut self.streams[stream];
            if self.ended && !out.fin_begun && out.state != StreamState::Ended {
                frame::encode_control(&mut out.out.header, &Control::Fin { total_bytes });
                self.draft = Some((stream, FrameKind::Fin));
                return Some(stream);
            }
            if self.closing && out.state != StreamState::Ended {
                return Some(self.draft_last(stream));
            }
        }
        None
    }

    /// A stream with room that is to go, and whose frames have all been reported, while another stays.
    fn retired(&self) -> Option<usize> {
        let staying = self.alive.without(self.retiring).without(self.last_begun);
        if self.retiring.is_empty() || staying.is_empty() {
            return None;
        }
        let ready = self.with_room.and(self.retiring).without(self.greeting);
        (ready.iter()).find(|&slot| self.streams[slot].in_flight.is_empty())
    }

    fn draft_last(&mut self, stream: usize) -> usize {
        let out = &mut self.streams[stream].out;
        if let Some(ack) = &self.last_ack {
            frame::encode_control(&mut out.header, ack);
        }
        frame::encode_control(&mut out.header, &Control::Last);
        out.ends_stream = true;
        self.draft = Some((stream, FrameKind::Last));
        stream
    }

    pub(super) fn choose(&mut self, frame_bytes: usize) -> Option<usize> {
        let mut scheduler = self.scheduler.take();
        let view = self.view(frame_bytes);
        let mut chosen = scheduler.as_mut().and_then(|rule| rule.choose(&view));
        if chosen.is_none()
            && view
                .alive
                .iter()
                .all(|index| view.streams[index].weight <= 0.0)
        {
            // Only streams without a rate are left: better those than none.
            chosen = view.with_room.iter().next();
        }
        self.scheduler = scheduler;
        chosen
    }

    pub(super) fn draft_data(
        &mut self,
        stream: usize,
        draft: FrameKind,
        offset: u64,
        length: usize,
    ) -> usize {
        let out = &mut self.streams[stream].out;
        if self.plain_bytes.is_none() {
            frame::encode_data_header(&mut out.header, offset, length, self.frame_payload_bytes);
        }
        out.span = Some(ByteRange { offset, length });
        self.draft = Some((stream, draft));
        stream
    }

    /// Drop what need not be sent again, and what stands there twice.
    pub(super) fn trim_again(&mut self) {
        while let Some(first) = self.again.first().copied() {
            let offset = self.acknowledged.max(first.offset);
            if offset == first.offset {
                break;
            }
            self.again.pop_first();
            if offset < first.end() {
                let length = (first.end() - offset) as usize;
                self.again.insert(ByteRange { offset, length });
            }
        }
    }
}
