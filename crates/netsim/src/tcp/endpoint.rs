//! One side of a connection (RFC 9293): set-up, close, and the order in which segments leave.

use super::config::{Config, Sampling, Spurious};
use super::congestion::{self, CongestionControl};
use super::events::{Events, PathState};
use super::order::{Arrival, PacketOrder};
use super::receiver::{Receiver, OFF};
use super::recovery::SpuriousResponse;
use super::scoreboard::Transmission;
use super::segment::{MptcpKind, Segment, SynOptions};
use super::sender::Sender;
use super::statistics::Statistics;
use crate::time::Nanos;

/// The states of RFC 9293, 3.3.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No connection, or none any more.
    Closed,
    /// A server that waits for a SYN.
    Listen,
    /// Our SYN is out.
    SynSent,
    /// The peer's SYN is here, ours is not acknowledged.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed; our FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer's is missing.
    FinWait2,
    /// The peer closed, we did not.
    CloseWait,
    /// Both closed, our FIN is not acknowledged.
    Closing,
    /// Both closed, the peer first; our FIN is not acknowledged.
    LastAck,
    /// Both closed; late segments are waited out.
    TimeWait,
}

/// One side of one connection: bytes go out and come in; they are counted, not carried.
///
/// After each call that changes something the shell takes the segments that [`poll_transmit`](Self::poll_transmit) gives until it
/// gives none, and sees to it that [`on_timer`](Self::on_timer) is called at [`next_timer`](Self::next_timer).
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    state: State,
    sender: Sender,
    receiver: Receiver,
    statistics: Statistics,
    /// A SYN (with an ACK, as a server) is to be sent.
    syn_due: bool,
    reset_due: bool,
    syn_sent_at: Nanos,
    syn_retries: u32,
    syn_timer: Nanos,
    time_wait_until: Nanos,
    close_requested: bool,
    /// Whether the connection ended by a reset or for want of answers.
    failed: bool,
    sack: bool,
    timestamps: bool,
    /// Whether both SYNs offered window scaling.
    scaling: bool,
    /// Whether segments carry options of MPTCP.
    subflow: bool,
    order: PacketOrder,
    events: Events,
}

impl Endpoint {
    /// Open a connection; the SYN is ready to be sent.
    pub fn client(config: &Config, now: Nanos) -> Self {
        let mut endpoint =
            Self::with_congestion(config, congestion::build(config.congestion), State::SynSent);
        endpoint.syn_due = true;
        endpoint.syn_sent_at = now;
        endpoint
    }

    /// Wait for a connection.
    pub fn server(config: &Config) -> Self {
        Self::with_congestion(config, congestion::build(config.congestion), State::Listen)
    }

    /// Like [`client`](Self::client), with a congestion control of one's own.
    pub fn client_with(
        config: &Config,
        now: Nanos,
        congestion: Box<dyn CongestionControl>,
    ) -> Self {
        let mut endpoint = Self::with_congestion(config, congestion, State::SynSent);
        endpoint.syn_due = true;
        endpoint.syn_sent_at = now;
        endpoint
    }

    /// Like [`server`](Self::server), with a congestion control of one's own.
    pub fn server_with(config: &Config, congestion: Box<dyn CongestionControl>) -> Self {
        Self::with_congestion(config, congestion, State::Listen)
    }

    fn with_congestion(
        config: &Config,
        congestion: Box<dyn CongestionControl>,
        state: State,
    ) -> Self {
        Self {
            config: *config,
            state,
            sender: Sender::new(config, congestion),
            receiver: Receiver::new(config),
            statistics: Statistics::default(),
            syn_due: false,
            reset_due: false,
            syn_sent_at: 0,
            syn_retries: 0,
            syn_timer: OFF,
            time_wait_until: OFF,
            close_requested: false,
            failed: false,
            sack: config.sack,
            timestamps: config.timestamps,
            scaling: config.window_scaling,
            subflow: false,
            order: PacketOrder::new(config.spurious == Spurious::Door),
            events: Events::default(),
        }
    }

    /// Take reductions back by a response of one's own.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.sender.respond_by(response);
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether data may flow in some direction.
    pub fn is_open(&self) -> bool {
        !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::SynReceived | State::TimeWait
        )
    }

    /// Whether the connection ended by a reset, or because the peer did not answer.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether the peer has closed and all its data is read.
    pub fn at_end(&self) -> bool {
        self.receiver.finished() && self.receiver.readable() == 0
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Events {
        let mut events = self.sender.take_events();
        let own = std::mem::take(&mut self.events);
        events.opened = own.opened;
        events.ended = own.ended;
        events
    }

    /// Let the SYN leave now, where that was not the case when the endpoint was made.
    pub fn open(&mut self, now: Nanos) {
        self.syn_sent_at = now;
    }

    /// Give the connection up at once: the peer gets a reset.
    pub fn abort(&mut self) {
        self.reset_due = self.is_open();
        self.end(true);
    }

    /// Share a receive window: advertise `window_bytes` until told otherwise, and leave the peer's window to the writer.
    pub fn grant(&mut self, window_bytes: u64) {
        self.subflow = true;
        self.receiver.grant(window_bytes);
        self.sender.ignore_peer_window();
    }

    /// Acknowledge nothing from `sequence` on (see [`Receiver::hold_from`]); whether more may be acknowledged than before.
    pub fn hold_from(&mut self, sequence: u64) -> bool {
        self.receiver.hold_from(sequence)
    }

    /// Tell the peer that data has arrived in another order than it left, over all paths (TCP-DOOR).
    pub fn report_disorder(&mut self) {
        self.order.report();
    }

    /// The oldest sequence number that the peer has not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// The sequence number of the next byte that is written.
    pub fn write_position(&self) -> u64 {
        self.sender.next() + self.sender.unsent()
    }

    /// Write bytes that share no segment with what is written after them; give how many were taken.
    pub fn write_apart(&mut self, bytes: u32) -> u32 {
        if self.close_requested || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        self.sender.write_apart(u64::from(bytes)) as u32
    }

    /// The path, as the sender sees it.
    pub fn path(&self) -> PathState {
        self.sender.path()
    }

    /// Shrink the window because this path holds others back.
    pub fn penalise(&mut self) {
        self.sender.penalise();
    }

    /// Write `bytes`; give how many the send buffer took. What is written before the handshake is over waits.
    pub fn write(&mut self, _now: Nanos, bytes: u32) -> u32 {
        if self.close_requested || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        self.sender.write(u64::from(bytes)) as u32
    }

    /// Bytes that a write takes now.
    pub fn send_buffer_free(&self) -> u32 {
        self.sender.free() as u32
    }

    /// Bytes written and never sent.
    pub fn unsent_bytes(&self) -> u32 {
        self.sender.unsent() as u32
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged_bytes(&self) -> u32 {
        self.sender.unacknowledged() as u32
    }

    /// Bytes in order and not read.
    pub fn readable(&self) -> u32 {
        self.receiver.readable() as u32
    }

    /// Bytes that wait for earlier ones.
    pub fn reassembly_bytes(&self) -> u64 {
        self.receiver.ahead_bytes()
    }

    /// Read up to `max` bytes; give how many there were.
    pub fn read(&mut self, _now: Nanos, max: u32) -> u32 {
        self.receiver.read(u64::from(max)) as u32
    }

    /// Say that no more will be written; what is in the buffer is still delivered.
    pub fn close(&mut self, _now: Nanos) {
        if self.close_requested {
            return;
        }
        self.close_requested = true;
        match self.state {
            State::Listen => self.end(false),
            // RFC 9293, 3.10.4 drops what was written before the handshake; as with a shutdown for writing it is sent here.
            State::SynSent if self.sender.unacknowledged() == 0 => self.end(false),
            _ => self.sender.close(),
        }
    }

    fn end(&mut self, failed: bool) {
        self.events.ended = true;
        self.state = State::Closed;
        self.failed |= failed;
        self.syn_due = false;
        self.syn_timer = OFF;
        self.time_wait_until = OFF;
    }

    /// Take a segment from the peer.
    pub fn on_segment(&mut self, now: Nanos, segment: &Segment) {
        self.statistics.segments_received += 1;
        if segment.rst {
            if !matches!(self.state, State::Closed | State::Listen) {
                self.end(true);
            }
            return;
        }
        match self.state {
            State::Closed => {}
            State::Listen => self.on_first_syn(now, segment),
            State::SynSent => self.on_syn_answer(now, segment),
            State::TimeWait => self.on_late_segment(now, segment),
            _ => self.on_established(now, segment),
        }
    }

    /// RFC 9293, 3.10.7.2.
    fn on_first_syn(&mut self, now: Nanos, segment: &Segment) {
        if !segment.syn {
            self.reset_due = segment.acknowledgement.is_some();
            return;
        }
        self.agree(segment);
        self.state = State::SynReceived;
        self.syn_due = true;
        self.syn_sent_at = now;
    }

    /// RFC 9293, 3.10.7.3.
    fn on_syn_answer(&mut self, now: Nanos, segment: &Segment) {
        if segment.acknowledgement.is_some_and(|ack| ack != 1) {
            self.reset_due = true;
            return;
        }
        if !segment.syn {
            return;
        }
        self.agree(segment);
        if segment.acknowledgement.is_none() {
            // Both opened at once (RFC 9293, 3.5 figure 7).
            self.state = State::SynReceived;
            self.syn_due = true;
            return;
        }
        self.establish(now, segment);
        self.receiver.acknowledge_now(false);
    }

    /// Settle the options that the peer's SYN and ours have in common.
    fn agree(&mut self, segment: &Segment) {
        let options = segment.options;
        let mss = match options.mss_bytes {
            0 => self.config.mss_bytes,
            peer => self.config.mss_bytes.min(peer),
        };
        self.sack = self.config.sack && options.sack_permitted;
        self.timestamps = self.config.timestamps && segment.timestamps.is_some();
        self.scaling = self.config.window_scaling && options.window_scale.is_some();
        self.sender.agree(mss, self.sack, self.timestamps);
        self.receiver.on_syn();
        if let Some((value, _)) = segment.timestamps {
            self.receiver.note_timestamp(0, value, false);
        }
        self.sender.on_window(
            segment.sequence,
            segment.acknowledgement.unwrap_or(0),
            segment.window_bytes,
        );
    }

    fn establish(&mut self, now: Nanos, segment: &Segment) {
        self.events.opened = true;
        self.state = State::Established;
        self.syn_timer = OFF;
        self.syn_due = false;
        if self.scaling {
            self.receiver.set_shift(self.receiver.wanted_shift());
        }
        if self.syn_retries == 0 {
            match segment.timestamps {
                Some((_, echo)) if self.timestamps => self.sender.sample_echo(now, echo),
                _ => self.sender.rtt().sample(now - self.syn_sent_at),
            }
        }
        if self.config.acks.first_data_at_once {
            self.receiver.acknowledge_first_data();
        }
    }

    /// RFC 9293, 3.10.7.4.
    fn on_established(&mut self, now: Nanos, segment: &Segment) {
        if segment.syn {
            self.on_repeated_syn(now, segment);
            return;
        }
        let Some(ack) = segment.acknowledgement else {
            return;
        };
        match self.order.on_arrival(segment) {
            Arrival::InOrder => {}
            Arrival::LateData => self.order.report(),
            Arrival::Reported => self.sender.on_out_of_order(now, &mut self.statistics),
        }
        if self.state == State::SynReceived {
            if ack == 0 {
                return;
            }
            self.establish(now, segment);
        }
        if let (true, Some((value, _))) = (self.timestamps, segment.timestamps) {
            self.receiver.note_timestamp(
                segment.sequence,
                value,
                self.config.sampling == Sampling::FirstSentOnly,
            );
        }
        if !self.sender.on_ack(now, segment, ack, &mut self.statistics) {
            self.receiver.acknowledge_now(false);
            return;
        }
        if segment.payload_bytes > 0 || segment.fin {
            self.receiver.on_data(now, segment, &mut self.statistics);
        }
        self.follow_fins(now);
    }

    /// The peer did not get our answer to its SYN, or a SYN-ACK comes twice.
    fn on_repeated_syn(&mut self, now: Nanos, segment: &Segment) {
        if self.state != State::SynReceived {
            self.receiver.acknowledge_now(true);
        } else if segment.acknowledgement == Some(1) {
            self.establish(now, segment);
            self.receiver.acknowledge_now(false);
        } else {
            self.syn_due = true;
        }
    }

    /// The transitions that sent, acknowledged and received FINs cause (RFC 9293, figure 5).
    fn follow_fins(&mut self, now: Nanos) {
        let (sent, acknowledged) = self.sender.fin_state();
        let received = self.receiver.finished();
        let next = match (sent, acknowledged, received) {
            (false, _, false) => return,
            (false, _, true) => State::CloseWait,
            (true, false, false) => State::FinWait1,
            (true, true, false) => State::FinWait2,
            (true, false, true) if matches!(self.state, State::CloseWait | State::LastAck) => {
                State::LastAck
            }
            (true, false, true) => State::Closing,
            (true, true, true) if self.state == State::LastAck => return self.end(false),
            (true, true, true) => State::TimeWait,
        };
        if next == State::TimeWait && self.state != State::TimeWait {
            self.time_wait_until = now + self.config.time_wait;
        }
        self.state = next;
    }

    /// RFC 9293, 3.10.7.4, TIME-WAIT: the peer has missed our last ACK.
    fn on_late_segment(&mut self, now: Nanos, segment: &Segment) {
        if segment.fin {
            self.receiver.acknowledge_now(true);
            self.time_wait_until = now + self.config.time_wait;
        }
    }

    /// When [`on_timer`](Self::on_timer) is to be called next.
    pub fn next_timer(&self) -> Option<Nanos> {
        let next = if self.state == State::Closed {
            OFF
        } else {
            self.sender
                .timer()
                .min(self.receiver.timer())
                .min(self.syn_timer)
                .min(self.time_wait_until)
        };
        (next != OFF).then_some(next)
    }

    /// Do what is due at `now`; harmless if nothing is.
    pub fn on_timer(&mut self, now: Nanos) {
        self.receiver.on_timer(now);
        if now >= self.time_wait_until {
            self.end(false);
        }
        if now >= self.syn_timer {
            self.on_syn_timeout();
        }
        if !self.sender.on_timer(now, &mut self.statistics) {
            self.reset_due = true;
            self.end(true);
        }
    }

    /// RFC 6298, 5.5: the SYN is sent again after twice the time.
    fn on_syn_timeout(&mut self) {
        self.syn_timer = OFF;
        self.syn_retries += 1;
        if self.syn_retries > self.config.syn_retries {
            self.end(true);
            return;
        }
        self.statistics.timeouts += 1;
        self.syn_due = true;
    }

    /// The next segment to send at `now`, or none for the present.
    pub fn poll_transmit(&mut self, now: Nanos) -> Option<Segment> {
        if std::mem::take(&mut self.reset_due) {
            let reset = Segment {
                rst: true,
                sequence: self.sender.next(),
                ..Segment::default()
            };
            return Some(self.finish(reset));
        }
        if std::mem::take(&mut self.syn_due) {
            return Some(self.syn(now));
        }
        match self.state {
            State::Closed | State::Listen | State::SynSent | State::SynReceived => None,
            _ => self.poll_synchronised(now),
        }
    }

    fn poll_synchronised(&mut self, now: Nanos) -> Option<Segment> {
        let (due, alone) = self.receiver.ack_due();
        let ack_first = due && (alone || self.config.acks.separate) && !self.sender.is_forced();
        if !ack_first {
            if let Some(transmission) = self.sender.poll(now) {
                return Some(self.data(now, transmission));
            }
            self.sender.settle(now);
        }
        due.then(|| self.pure_ack(now))
    }

    fn syn(&mut self, now: Nanos) -> Segment {
        let timeout = self.config.rto.initial << self.syn_retries.min(16);
        self.syn_timer = now + timeout.min(self.config.rto.max);
        let answer = self.state == State::SynReceived;
        let (sack, timestamps, scaling) = if answer {
            (self.sack, self.timestamps, self.scaling)
        } else {
            self.offers()
        };
        let segment = Segment {
            syn: true,
            acknowledgement: answer.then(|| self.receiver.next()),
            window_bytes: self.receiver.advertise(true),
            options: SynOptions {
                mss_bytes: self.config.mss_bytes,
                window_scale: scaling.then(|| self.receiver.wanted_shift()),
                sack_permitted: sack,
            },
            timestamps: timestamps.then(|| self.stamp(now)),
            retransmission: self.syn_retries > 0,
            ..Segment::default()
        };
        if answer {
            self.receiver.on_ack_sent(true);
        }
        self.finish(segment)
    }

    fn offers(&self) -> (bool, bool, bool) {
        (
            self.config.sack,
            self.config.timestamps,
            self.config.window_scaling,
        )
    }

    fn stamp(&self, now: Nanos) -> (Nanos, Nanos) {
        (
            now / self.config.timestamp_tick * self.config.timestamp_tick,
            self.receiver.echo(),
        )
    }

    fn data(&mut self, now: Nanos, transmission: Transmission) -> Segment {
        let mut segment = self.acknowledging(now, MptcpKind::Mapping);
        segment.sequence = transmission.start;
        segment.payload_bytes = transmission.payload_bytes;
        segment.fin = transmission.fin;
        segment.retransmission = transmission.again;
        self.receiver.on_ack_sent(false);
        if transmission.payload_bytes > 0 {
            self.statistics.data_segments_sent += 1;
            self.statistics.data_bytes_sent += u64::from(transmission.payload_bytes);
            self.statistics.retransmits += u64::from(transmission.again);
        }
        if transmission.fin {
            self.follow_fins(now);
        }
        self.finish(segment)
    }

    fn pure_ack(&mut self, now: Nanos) -> Segment {
        let mut segment = self.acknowledging(now, MptcpKind::DataAck);
        segment.sequence = self.sender.next();
        self.receiver.on_ack_sent(true);
        self.statistics.pure_acks_sent += 1;
        self.finish(segment)
    }

    /// What every segment of a synchronised connection carries; `option`: what MPTCP will add if the connection is a subflow.
    fn acknowledging(&mut self, now: Nanos, option: MptcpKind) -> Segment {
        // RFC 9293, 3.1: at most 40 bytes of options. RFC 2018, 3: 4 bytes of SACK with its padding, and 8 for each block.
        let timestamps = if self.timestamps { 12 } else { 0 };
        let option = if self.subflow { option.bytes() } else { 0 };
        let most = (36_u32.saturating_sub(timestamps + option) / 8) as usize;
        let sack = if self.sack {
            self.receiver.sack_blocks(most)
        } else {
            Default::default()
        };
        Segment {
            acknowledgement: Some(self.receiver.next()),
            window_bytes: self.receiver.advertise(false),
            sack,
            timestamps: self.timestamps.then(|| self.stamp(now)),
            ..Segment::default()
        }
    }

    fn finish(&mut self, mut segment: Segment) -> Segment {
        self.statistics.segments_sent += 1;
        self.order.stamp(&mut segment);
        segment
    }

    /// Counters and the present state.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        self.sender.report(&mut statistics);
        statistics
    }

    /// Name of the congestion control.
    pub fn congestion_name(&self) -> &'static str {
        self.sender.congestion_name()
    }

    /// Check the bookkeeping against a recount; panics if it is wrong. For tests.
    pub fn check(&self) {
        self.sender.check();
    }
}
