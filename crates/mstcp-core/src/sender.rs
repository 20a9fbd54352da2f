//! Application bytes to frames, and frames to streams.
//!
//! All unsent bytes wait in one queue of the connection. A frame is cut, numbered and given to a stream only when the
//! shell asks for it, and becomes final only when the stream's socket took some of it: if the socket was full the bytes
//! are still in the queue and the draw is repeated among the others. What an application writes is never held back to
//! fill a frame; writes merge into full frames only while they wait in the queue anyway.

use crate::error::LocalError;
use crate::frame;
use crate::scheduler::{check_weights, Scheduler, StreamSet, StreamView, View};

/// Bytes for the shell to send on a stream.
#[derive(Debug, PartialEq, Eq)]
pub struct Transmit<'a> {
    /// Index of the stream.
    pub stream: usize,
    /// What to send on it next.
    pub data: &'a [u8],
}

/// What one stream has carried of this direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Data frames.
    pub frames: u64,
    /// Application bytes in them (no headers).
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draft {
    Data { payload_bytes: usize },
    Fin,
}

#[derive(Debug, Default)]
struct Stream {
    /// The frame that is being sent, and how much of it the socket took.
    encoded: Vec<u8>,
    taken: usize,
    fin_begun: bool,
    sent: Sent,
}

impl Stream {
    fn rest(&self) -> &[u8] {
        &self.encoded[self.taken..]
    }
}

/// The sending direction of a connection.
#[derive(Debug)]
pub struct Sender {
    frame_payload_bytes: usize,
    queue: ByteQueue,
    queue_limit_bytes: usize,
    scheduler: Box<dyn Scheduler>,
    views: Vec<StreamView>,
    /// When the backlogs of `views` were true, in nanoseconds of the shell's clock.
    views_ns: u64,
    streams: Vec<Stream>,
    with_room: StreamSet,
    /// The frame that `poll` offered and no byte of which has been taken yet.
    draft: Option<(usize, Draft)>,
    next_number: u64,
    ended: bool,
}

impl Sender {
    /// A sender over `stream_count` streams of equal weights whose sockets all have room. The queue is bounded to `queue_limit_bytes`,
    /// but an empty queue takes a write of any size.
    pub fn new(
        stream_count: usize,
        frame_payload_bytes: usize,
        queue_limit_bytes: usize,
        scheduler: Box<dyn Scheduler>,
    ) -> Self {
        Self {
            frame_payload_bytes,
            queue: ByteQueue::default(),
            queue_limit_bytes,
            scheduler,
            views: vec![
                StreamView {
                    weight: 1.0,
                    delay_ns: 0,
                    backlog_bytes: 0.0
                };
                stream_count
            ],
            views_ns: 0,
            streams: (0..stream_count).map(|_| Stream::default()).collect(),
            with_room: StreamSet::first(stream_count),
            draft: None,
            next_number: 0,
            ended: false,
        }
    }

    /// Queue application bytes.
    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        if self.ended {
            return Err(LocalError::WriteAfterEnd);
        }
        let queued = self.queue.len();
        if queued > 0 && queued + data.len() > self.queue_limit_bytes {
            return Err(LocalError::SendQueueFull {
                queued,
                limit: self.queue_limit_bytes,
            });
        }
        self.queue.push(data);
        Ok(())
    }

    /// Say that no more application bytes will come: when the queue is empty every stream gets a FIN.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Offer the next bytes to send, if a stream has room for them.
    ///
    /// The shell sends them and reports by [`Sender::on_sent`]; until then the same bytes are offered.
    pub fn poll(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        let stream = match self.draft {
            Some((stream, _)) => stream,
            None => match self.begun_frame() {
                Some(stream) => stream,
                None => self.draw(now_ns)?,
            },
        };
        Some(Transmit {
            stream,
            data: self.streams[stream].rest(),
        })
    }

    /// Report how many of the offered bytes the stream's socket took; fewer than offered means that it is full.
    ///
    /// Returns true when the stream has sent its FIN, its last byte: the shell then shuts its sending side down.
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        let out = self
            .streams
            .get_mut(stream)
            .ok_or(LocalError::NoSuchStream(stream))?;
        let offered = out.rest().len();
        if count > offered {
            return Err(LocalError::SentTooMuch {
                reported: count,
                offered,
            });
        }
        if count < offered {
            self.with_room.remove(stream);
        }
        match self.draft {
            Some((drafted, draft)) if drafted == stream => {
                self.draft = None;
                if count == 0 {
                    out.encoded.clear();
                    return Ok(false);
                }
                match draft {
                    Draft::Data { payload_bytes } => self.begin_data(stream, payload_bytes),
                    Draft::Fin => out.fin_begun = true,
                }
            }
            _ => {}
        }
        let out = &mut self.streams[stream];
        out.taken += count;
        if count < offered || offered == 0 {
            return Ok(false);
        }
        out.encoded.clear();
        out.taken = 0;
        Ok(out.fin_begun)
    }

    /// Note that a stream's socket has room again.
    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        if stream >= self.streams.len() {
            return Err(LocalError::NoSuchStream(stream));
        }
        self.with_room.insert(stream);
        Ok(())
    }

    /// Take new weights, one for each stream: rates in bit/s, or any unit where rates are not known.
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        check_weights(weights)?;
        if weights.len() != self.views.len() {
            return Err(LocalError::BadWeights);
        }
        for (view, weight) in self.views.iter_mut().zip(weights) {
            view.weight = *weight;
        }
        Ok(())
    }

    /// Take the one-way propagation delay of a stream's path.
    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        self.view_mut(stream)?.delay_ns = delay_ns;
        Ok(())
    }

    /// Take what the shell found of a stream's bytes to be still in the host; without such reports it is reckoned.
    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.drain_backlogs(now_ns);
        self.view_mut(stream)?.backlog_bytes = unsent_bytes as f64;
        Ok(())
    }

    fn view_mut(&mut self, stream: usize) -> Result<&mut StreamView, LocalError> {
        self.views
            .get_mut(stream)
            .ok_or(LocalError::NoSuchStream(stream))
    }

    fn drain_backlogs(&mut self, now_ns: u64) {
        let elapsed_s = now_ns.saturating_sub(self.views_ns) as f64 * 1e-9;
        self.views_ns = self.views_ns.max(now_ns);
        for view in &mut self.views {
            let left = view.backlog_bytes - view.weight / 8.0 * elapsed_s;
            view.backlog_bytes = left.max(0.0);
        }
    }

    /// Whether the stream's socket was full when last tried.
    pub fn is_blocked(&self, stream: usize) -> bool {
        !self.with_room.contains(stream)
    }

    /// Application bytes in the queue: written, and in no frame that a socket has begun to take.
    pub fn queued_bytes(&self) -> usize {
        self.queue.len()
    }

    /// Whether everything, the FINs included, has been taken by the sockets.
    pub fn is_finished(&self) -> bool {
        self.ended
            && self
                .streams
                .iter()
                .all(|stream| stream.fin_begun && stream.rest().is_empty())
    }

    /// What each stream has carried.
    pub fn sent(&self) -> impl Iterator<Item = Sent> + '_ {
        self.streams.iter().map(|stream| stream.sent)
    }

    /// Make the drafted frame final on its stream, and copy it to the others if the scheduler wants it so.
    fn begin_data(&mut self, stream: usize, payload_bytes: usize) {
        let view = View {
            now_ns: self.views_ns,
            frame_bytes: payload_bytes,
            alive: StreamSet::first(self.streams.len()),
            with_room: self.with_room,
            streams: &self.views,
        };
        self.scheduler.on_begun(&view, stream);
        let mut carriers = StreamSet::default();
        carriers.insert(stream);
        if self.scheduler.is_copied(payload_bytes) {
            for index in self.with_room.iter() {
                let idle = self.streams[index].rest().is_empty();
                if idle && !self.streams[index].fin_begun && self.views[index].weight > 0.0 {
                    self.streams[index].encoded = self.streams[stream].encoded.clone();
                    carriers.insert(index);
                }
            }
        }
        for index in carriers.iter() {
            let out = &mut self.streams[index];
            out.sent.frames += 1;
            out.sent.bytes += payload_bytes as u64;
            self.views[index].backlog_bytes += out.encoded.len() as f64;
        }
        self.queue.consume(payload_bytes);
        self.next_number += 1;
    }

    /// A stream with room that has part of a frame left to send.
    fn begun_frame(&self) -> Option<usize> {
        self.with_room
            .iter()
            .find(|&index| !self.streams[index].rest().is_empty())
    }

    /// Cut the next frame and give it to a stream.
    fn draw(&mut self, now_ns: u64) -> Option<usize> {
        let (stream, draft) = if self.queue.len() > 0 {
            let payload_bytes = self.queue.len().min(self.frame_payload_bytes);
            self.drain_backlogs(now_ns);
            let view = View {
                now_ns,
                frame_bytes: payload_bytes,
                alive: StreamSet::first(self.streams.len()),
                with_room: self.with_room,
                streams: &self.views,
            };
            (self.scheduler.choose(&view)?, Draft::Data { payload_bytes })
        } else if self.ended {
            (
                self.with_room
                    .iter()
                    .find(|&index| !self.streams[index].fin_begun)?,
                Draft::Fin,
            )
        } else {
            return None;
        };
        let out = &mut self.streams[stream];
        match draft {
            Draft::Data { payload_bytes } => frame::encode_data(
                &mut out.encoded,
                self.next_number,
                self.queue.front(payload_bytes),
                self.frame_payload_bytes,
            ),
            Draft::Fin => frame::encode_fin(&mut out.encoded, self.next_number),
        }
        self.draft = Some((stream, draft));
        Some(stream)
    }
}

/// A queue of bytes whose front is always one slice.
#[derive(Debug, Default)]
struct ByteQueue {
    bytes: Vec<u8>,
    head: usize,
}

impl ByteQueue {
    fn len(&self) -> usize {
        self.bytes.len() - self.head
    }

    fn push(&mut self, data: &[u8]) {
        // Moving the rest only when it is the smaller half keeps the cost per byte constant.
        if self.head > self.len() {
            self.bytes.drain(..self.head);
            self.head = 0;
        }
        self.bytes.extend_from_slice(data);
    }

    fn front(&self, count: usize) -> &[u8] {
        &self.bytes[self.head..self.head + count]
    }

    fn consume(&mut self, count: usize) {
        self.head += count;
        if self.head == self.bytes.len() {
            self.bytes.clear();
            self.head = 0;
            // One huge write must not keep its memory for the rest of the connection.
            self.bytes.shrink_to(1 << 20);
        }
    }
}
