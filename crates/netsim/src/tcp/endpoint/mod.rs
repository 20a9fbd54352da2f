//! One side of a connection (RFC 9293): set-up, close, and the order in which segments leave.

mod arriving;
mod leaving;

use super::config::{AckRules, Config, Detection, SpuriousHandling};
use super::congestion::{self, CongestionControl};
use super::events::{Events, PathState};
use super::held_acks::HeldAcks;
use super::options::OptionLayout;
use super::order::PacketOrder;
use super::receiver::{Receiver, OFF};
use super::recovery::SpuriousResponse;
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
    /// By itself, since what each segment needs of it stands beside it.
    config: Box<Config>,
    acks: AckRules,
    options: OptionLayout,
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
    /// What resolving addresses adds to the round trip of the handshake.
    resolution: Nanos,
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
        Self::client_with(config, now, congestion::build(config.congestion))
    }

    /// Wait for a connection.
    pub fn server(config: &Config) -> Self {
        Self::server_with(config, congestion::build(config.congestion))
    }

    /// Like [`client`](Self::client), with a user-defined congestion control.
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

    /// Like [`server`](Self::server), with a user-defined congestion control.
    pub fn server_with(config: &Config, congestion: Box<dyn CongestionControl>) -> Self {
        Self::with_congestion(config, congestion, State::Listen)
    }

    fn with_congestion(
        config: &Config,
        congestion: Box<dyn CongestionControl>,
        state: State,
    ) -> Self {
        Self {
            config: Box::new(*config),
            acks: config.acks,
            options: config.options,
            state,
            sender: Sender::new(config, congestion),
            receiver: Receiver::new(config),
            statistics: Statistics::default(),
            syn_due: false,
            reset_due: false,
            syn_sent_at: 0,
            syn_retries: 0,
            syn_timer: OFF,
            resolution: 0,
            time_wait_until: OFF,
            close_requested: false,
            failed: false,
            sack: config.sack,
            timestamps: config.timestamps,
            scaling: config.window_scaling,
            subflow: false,
            order: PacketOrder::new(config.spurious == SpuriousHandling::Door),
            events: Events::default(),
        }
    }

    /// Count the time in which both hosts ask for the other's address (ARP) to the handshake's round trip.
    pub fn resolve_for(&mut self, time: Nanos) {
        self.resolution = time;
    }

    /// Take reductions back by a user-defined response.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.sender.respond_by(response);
    }

    /// Fetch what is needed beyond the endpoint itself.
    pub(crate) fn prefetch(&self) {
        self.sender.prefetch();
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

    /// Acknowledge only what is in order for the connection, and as ns-3's MPTCP does if that is the profile.
    pub fn hold_for_connection(&mut self) {
        if let Detection::Ns3Mptcp(method) = self.config.detection {
            let segment_bytes = u64::from(self.config.mss_bytes);
            self.receiver
                .acknowledge_by(HeldAcks::new(method, segment_bytes));
        }
    }

    /// Take a duplicate for the first unacknowledged segment of which another subflow's ACK has told.
    pub fn charge_duplicate(&mut self, now: Nanos) {
        self.sender.on_charged_duplicate(now, &mut self.statistics);
    }

    /// Learn that what was sent again on this subflow had arrived.
    pub fn on_needless_retransmission(&mut self) {
        self.sender.on_needless_retransmission(&mut self.statistics);
    }

    /// Acknowledge nothing from `sequence` on (see [`Receiver::hold_from`]); whether more may be acknowledged than before.
    pub fn hold_from(&mut self, sequence: u64) -> bool {
        self.receiver.hold_from(sequence)
    }

    /// Pace what is sent at another rate, where a rate paces it.
    pub fn set_pacing_rate(&mut self, allocated_bps: f64) {
        self.sender.set_pacing_rate(allocated_bps);
    }

    /// Tell the peer that data has arrived in another order than it left, over all paths (TCP-DOOR).
    pub fn report_disorder(&mut self) {
        self.order.report();
    }

    /// The oldest sequence number that the peer has not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// The sequence number of the next byte that is sent for the first time.
    pub fn next(&self) -> u64 {
        self.sender.next()
    }

    /// The sequence number of the next byte that is written.
    pub fn write_position(&self) -> u64 {
        self.sender.next() + self.sender.unsent()
    }

    /// Write bytes that share no segment with what is written after them; give how many were taken.
    pub fn write_apart(&mut self, now: Nanos, bytes: u32) -> u32 {
        if self.close_requested || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        self.sender.write_apart(now, u64::from(bytes)) as u32
    }

    /// Whether the retransmission timer has expired, and nothing was acknowledged since.
    pub fn is_unanswered(&self) -> bool {
        self.sender.is_unanswered()
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
    pub fn write(&mut self, now: Nanos, bytes: u32) -> u32 {
        if self.close_requested || matches!(self.state, State::Closed | State::TimeWait) {
            return 0;
        }
        self.sender.write(now, u64::from(bytes)) as u32
    }

    /// Whether an allocated rate paces what is sent.
    pub fn is_paced_at_rate(&self) -> bool {
        self.sender.is_paced_at_rate()
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

    /// Acknowledge what was pushed, as all that the connection's paths have brought is read (see [`Receiver::acknowledge_read`]).
    pub fn acknowledge_read(&mut self) -> bool {
        self.receiver.acknowledge_read()
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

    /// Counters and the present state.
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics;
        self.sender.report(&mut statistics);
        statistics
    }

    /// How this side lays its options out.
    pub fn option_layout(&self) -> OptionLayout {
        self.options
    }

    /// Check the bookkeeping against a recount; panics if it is wrong. For tests.
    pub fn check(&self) {
        self.sender.check();
    }
}
