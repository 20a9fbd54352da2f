//! Both directions of one connection: what a shell talks to.

use crate::error::{Error, LocalError};
use crate::frame::MAX_PAYLOAD_BYTES;
use crate::receiver::Receiver;
use crate::scheduler::{Scheduler, StreamSet};
use crate::sender::{Sender, Transmit};
use crate::MAX_STREAMS;

/// What a connection is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// How many streams, 1 to 64.
    pub stream_count: usize,
    /// Application bytes in a full-size frame, 1 to 65,535, both directions.
    pub frame_payload_bytes: usize,
    /// Bound of the send queue, in application bytes.
    pub send_queue_bytes: usize,
    /// Bound of the memory for frames that are ahead, in bytes.
    pub reorder_buffer_bytes: usize,
}

/// What one stream has carried, both directions. Bytes are application bytes, without headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStatistics {
    /// Data frames sent.
    pub frames_sent: u64,
    /// Application bytes sent.
    pub bytes_sent: u64,
    /// Data frames received.
    pub frames_received: u64,
    /// Application bytes received.
    pub bytes_received: u64,
    /// Frames received before an earlier one.
    pub out_of_order_frames: u64,
}

/// What a connection has carried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Each stream's part.
    pub streams: Vec<StreamStatistics>,
    /// Frames received before an earlier one, over all streams.
    pub out_of_order_frames: u64,
    /// Application bytes in the reorder buffer now.
    pub reorder_bytes: usize,
    /// The most application bytes that were ever in the reorder buffer.
    pub reorder_max_bytes: usize,
    /// Application bytes in the send queue now.
    pub queued_bytes: usize,
}

/// One MSTCP connection, after the hellos. `now_ns` is the shell's monotonic clock.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
    receiver: Receiver,
}

impl Connection {
    /// A new connection whose frames `scheduler` spreads over the streams.
    pub fn new(config: Config, scheduler: Box<dyn Scheduler>) -> Result<Self, LocalError> {
        if !(1..=MAX_STREAMS).contains(&config.stream_count) {
            return Err(LocalError::StreamCount(config.stream_count));
        }
        if !(1..=MAX_PAYLOAD_BYTES).contains(&config.frame_payload_bytes) {
            return Err(LocalError::BadFramePayload(config.frame_payload_bytes));
        }
        Ok(Self {
            sender: Sender::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.send_queue_bytes,
                scheduler,
            ),
            receiver: Receiver::new(
                config.stream_count,
                config.frame_payload_bytes,
                config.reorder_buffer_bytes,
            ),
        })
    }

    /// See [`Sender::write`].
    pub fn write(&mut self, data: &[u8]) -> Result<(), LocalError> {
        self.sender.write(data)
    }

    /// See [`Sender::end`].
    pub fn end(&mut self) {
        self.sender.end();
    }

    /// See [`Sender::poll`].
    pub fn poll(&mut self, now_ns: u64) -> Option<Transmit<'_>> {
        self.sender.poll(now_ns)
    }

    /// See [`Sender::on_sent`].
    pub fn on_sent(&mut self, stream: usize, count: usize) -> Result<bool, LocalError> {
        self.sender.on_sent(stream, count)
    }

    /// See [`Sender::on_writable`].
    pub fn on_writable(&mut self, stream: usize) -> Result<(), LocalError> {
        self.sender.on_writable(stream)
    }

    /// See [`Sender::set_weights`].
    pub fn set_weights(&mut self, weights: &[f64]) -> Result<(), LocalError> {
        self.sender.set_weights(weights)
    }

    /// See [`Sender::set_delay`].
    pub fn set_delay(&mut self, stream: usize, delay_ns: u64) -> Result<(), LocalError> {
        self.sender.set_delay(stream, delay_ns)
    }

    /// See [`Sender::on_unsent`].
    pub fn on_unsent(
        &mut self,
        now_ns: u64,
        stream: usize,
        unsent_bytes: usize,
    ) -> Result<(), LocalError> {
        self.sender.on_unsent(now_ns, stream, unsent_bytes)
    }

    /// See [`Receiver::on_received`].
    pub fn on_received(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.receiver.on_received(stream, data, out)
    }

    /// See [`Receiver::on_stream_end`].
    pub fn on_stream_end(&mut self, stream: usize) -> Result<(), Error> {
        self.receiver.on_stream_end(stream)
    }

    /// The streams that should be read now; see [`Receiver::readable`].
    pub fn readable(&self) -> StreamSet {
        self.receiver.readable()
    }

    /// Whether a stream's socket was full when last tried.
    pub fn is_blocked(&self, stream: usize) -> bool {
        self.sender.is_blocked(stream)
    }

    /// Application bytes in the send queue.
    pub fn queued_bytes(&self) -> usize {
        self.sender.queued_bytes()
    }

    /// Whether all we have to send, the FINs included, has been taken by the sockets.
    pub fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }

    /// Whether all of the peer's bytes have been delivered.
    pub fn is_ended(&self) -> bool {
        self.receiver.is_ended()
    }

    /// What has been carried so far.
    pub fn statistics(&self) -> Statistics {
        let reassembly = self.receiver.reassembly();
        let streams = self.sender.sent().zip(self.receiver.received());
        Statistics {
            streams: streams
                .map(|(sent, received)| StreamStatistics {
                    frames_sent: sent.frames,
                    bytes_sent: sent.bytes,
                    frames_received: received.frames,
                    bytes_received: received.bytes,
                    out_of_order_frames: received.out_of_order_frames,
                })
                .collect(),
            out_of_order_frames: reassembly.out_of_order_frames(),
            reorder_bytes: reassembly.waiting_bytes(),
            reorder_max_bytes: reassembly.max_waiting_bytes(),
            queued_bytes: self.sender.queued_bytes(),
        }
    }
}
