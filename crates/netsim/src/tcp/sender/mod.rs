//! The sending side: what may be sent when, and the timers that watch over it.

mod acknowledging;
mod choosing;
mod timers;
mod usage;

use std::collections::VecDeque;

use self::usage::WindowUsage;
use super::config::{BackoffEnd, Config, Detection, RttSampling, TimeoutRule, WindowGrowth};
use super::congestion::{CongestionControl, Window};
use super::delivery_rate::SampleRule;
use super::events::{Events, PathState};
use super::pacing::Pacer;
use super::receiver::OFF;
use super::recovery::{LossRecovery, SenderParts, SpuriousResponse};
use super::rtt::RttEstimator;
use super::scoreboard::{Scoreboard, ScoreboardRules};
use super::statistics::Statistics;
use crate::prefetch::prefetch;
use crate::time::Nanos;

/// One direction of a connection, as seen by who sends.
#[derive(Debug)]
pub struct Sender {
    buffer_bytes: u64,
    nagle: bool,
    timestamps: bool,
    backoff_end: BackoffEnd,
    sampling: RttSampling,
    data_retries: u32,
    persist_first: Option<Nanos>,
    /// The sequence number after the last byte written.
    written: u64,
    closing: bool,
    fin_sent: bool,
    board: Scoreboard,
    recovery: LossRecovery,
    window: Window,
    congestion: Box<dyn CongestionControl>,
    /// Whether the congestion control looks at deliveries.
    measured: bool,
    /// Whether it does as a control of ns-3.
    as_ns3: bool,
    initial_segments: u64,
    least_rtt: Option<Nanos>,
    /// The least round trip by when segments left.
    nearest: Option<Nanos>,
    lost_before: u64,
    rtt: RttEstimator,
    pacer: Pacer,
    /// The peer's window and the segment that told it (SND.WND, SND.WL1, SND.WL2 of RFC 9293).
    peer_window: u64,
    window_sequence: u64,
    window_ack: u64,
    /// A retransmission that does not wait for the window.
    forced: bool,
    /// A retransmission that does not wait for the window is a tail loss probe.
    tail_probe: bool,
    /// A probe of the closed window is due.
    probe: bool,
    /// The number after the last probe's byte.
    probed: u64,
    retransmit_at: Nanos,
    /// Whether sending the left edge again restarts the retransmission timer, so that a retransmission which is lost too may be found by
    /// RACK (Linux).
    times_edge: bool,
    persist_at: Nanos,
    persist_wait: Nanos,
    timeouts_in_row: u32,
    /// Whether the congestion window was what held data back last.
    window_limited: bool,
    /// How the window is used, where it grows and falls by that (Linux).
    usage: Option<WindowUsage>,
    /// Whether it falls in a pause.
    restarts: bool,
    /// Whether pacing holds data back.
    paced: bool,
    /// Whether somebody else watches the peer's window.
    outside_window: bool,
    /// Where segments must end: what is mapped differently does not share one.
    ends: VecDeque<u64>,
    events: Events,
}

impl Sender {
    /// Nothing sent, nothing written.
    pub fn new(config: &Config, congestion: Box<dyn CongestionControl>) -> Self {
        let mss = config.mss_bytes;
        Self {
            buffer_bytes: u64::from(config.send_buffer_bytes),
            nagle: config.nagle,
            timestamps: config.timestamps,
            backoff_end: config.backoff_end,
            sampling: config.sampling,
            data_retries: config.data_retries,
            persist_first: config.persist_timeout,
            written: 1,
            closing: false,
            fin_sent: false,
            // ns-3 leaves segments that were sent again and then SACKed in the pipe; RFC 6675 takes them out.
            board: Scoreboard::new(ScoreboardRules {
                threshold: match config.detection {
                    Detection::DuplicateAcks | Detection::Ns3 => Some(config.duplicate_threshold),
                    Detection::Rack
                    | Detection::Delay
                    | Detection::TimerOnly
                    | Detection::Ns3Mptcp(_) => None,
                },
                keep_resent: config.detection == Detection::Ns3,
                tracks_deliveries: config.detection == Detection::Rack,
                samples_rate: congestion.samples(),
                times_past_resent: config.sampling == RttSampling::Departures,
            }),
            recovery: LossRecovery::new(config),
            window: Window {
                cwnd: u64::from(config.initial_window_segments) * u64::from(mss),
                ssthresh: config.initial_ssthresh_bytes,
                mss,
            },
            measured: congestion.samples().is_some(),
            as_ns3: congestion.samples() == Some(SampleRule::Ns3),
            initial_segments: u64::from(config.initial_window_segments),
            least_rtt: None,
            nearest: None,
            lost_before: 0,
            congestion,
            rtt: RttEstimator::new(config.rto, config.timeout),
            pacer: Pacer::new(config.pacing),
            peer_window: 0,
            window_sequence: 0,
            window_ack: 0,
            forced: false,
            tail_probe: false,
            probe: false,
            probed: 0,
            retransmit_at: OFF,
            times_edge: config.timeout == TimeoutRule::LeastMargin,
            persist_at: OFF,
            persist_wait: 0,
            timeouts_in_row: 0,
            window_limited: false,
            usage: (config.growth == WindowGrowth::WhenUsedLately).then(WindowUsage::default),
            restarts: config.slow_start_after_idle,
            paced: false,
            outside_window: false,
            ends: VecDeque::new(),
            events: Events::default(),
        }
    }

    /// Take reductions back by a user-defined response.
    pub fn respond_by(&mut self, response: Box<dyn SpuriousResponse>) {
        self.recovery.respond_by(response);
    }

    /// Fetch what is needed beyond the sender itself.
    pub fn prefetch(&self) {
        self.board.prefetch();
        prefetch(&*self.congestion);
    }

    /// Leave the peer's window to the writer: all that is written may be sent as far as the congestion window goes.
    pub fn ignore_peer_window(&mut self) {
        self.outside_window = true;
        self.peer_window = u64::MAX / 2;
    }

    /// Whether an allocated rate paces.
    pub fn is_paced_at_rate(&self) -> bool {
        self.pacer.is_at_rate()
    }

    /// Pace at another rate, where a rate paces.
    pub fn set_pacing_rate(&mut self, allocated_bps: f64) {
        self.pacer.set_rate(allocated_bps);
    }

    /// Take bytes into the buffer that share no segment with those after them.
    pub fn write_apart(&mut self, now: Nanos, bytes: u64) -> u64 {
        let taken = self.write(now, bytes);
        self.ends.push_back(self.written);
        taken
    }

    /// Bytes that the congestion window has room for beyond all that waits to be sent, first time or again.
    pub fn room(&self) -> u64 {
        let waiting = self.unsent() + self.board.pending_bytes();
        let room = self.window.cwnd.min(self.peer_window);
        room.saturating_sub(self.board.pipe() + waiting)
    }

    /// The state of this path, for a scheduler.
    pub fn path(&self) -> PathState {
        PathState {
            srtt: self.rtt.srtt().unwrap_or(0),
            rtt_variation: self.rtt.variation(),
            cwnd_bytes: self.window.cwnd,
            pipe_bytes: self.board.pipe(),
            room_bytes: self.room(),
            segment_bytes: self.window.segment(),
        }
    }

    /// Whether the retransmission timer has expired, and nothing was acknowledged since.
    pub fn is_unanswered(&self) -> bool {
        self.timeouts_in_row > 0
    }

    /// The oldest sequence number that is not acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.board.start()
    }

    /// Let the congestion control shrink the window because this path holds the others back.
    pub fn penalise(&mut self) {
        self.congestion.on_penalty(&mut self.window);
    }

    /// What has happened since the last time.
    pub fn take_events(&mut self) -> Events {
        std::mem::take(&mut self.events)
    }

    /// Settle what the handshake agreed on.
    pub fn agree(&mut self, mss: u32, sack: bool, timestamps: bool) {
        self.congestion.on_mss(&mut self.window, mss);
        self.recovery.agree(sack);
        self.timestamps = timestamps;
    }

    /// Where samples of the round-trip time come from.
    pub fn sampling(&self) -> RttSampling {
        self.sampling
    }

    /// The RTT and timeout estimator.
    pub fn rtt(&mut self) -> &mut RttEstimator {
        &mut self.rtt
    }

    /// Bytes that a write takes now.
    pub fn free(&self) -> u64 {
        self.buffer_bytes.saturating_sub(self.unacknowledged())
    }

    /// Bytes written and not acknowledged, sent or not.
    pub fn unacknowledged(&self) -> u64 {
        self.written.saturating_sub(self.board.start().max(1))
    }

    /// Take bytes into the buffer; give how many.
    pub fn write(&mut self, now: Nanos, bytes: u64) -> u64 {
        if self.closing {
            return 0;
        }
        self.note_pause(now);
        if self.pacer.is_at_rate() && self.unsent() == 0 {
            // Linux makes a packet of what is written while nothing waits, which the pacing of the next one counts from.
            self.pacer.end_burst();
        }
        let taken = bytes.min(self.free());
        self.written += taken;
        if self.as_ns3 {
            self.note_shortage();
        }
        taken
    }

    /// In ns-3 the application limits the rate if what it writes makes no segment and the window has room.
    fn note_shortage(&mut self) {
        let pipe = self.board.pipe();
        let short = self.unsent() < self.window.segment();
        if short && pipe < self.window.cwnd && self.board.has_resent_lost() {
            if let Some(sampler) = self.board.sampler() {
                sampler.limit_by_application(pipe);
            }
        }
    }

    /// The handshake is over, of which the round trip is known unless a SYN was sent again.
    pub fn on_open(&mut self, now: Nanos, handshake: Option<Nanos>) {
        self.nearest = handshake;
        let srtt = self.rtt.srtt();
        self.congestion.on_open(now, &mut self.window, srtt);
        if let Some(usage) = &mut self.usage {
            usage.on_sent(now);
        }
        if self.as_ns3 {
            self.least_rtt = srtt;
        }
    }

    /// No more will be written: a FIN follows the data.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Whether the FIN has been sent, and whether it has been acknowledged.
    pub fn fin_state(&self) -> (bool, bool) {
        (self.fin_sent, self.fin_sent && self.board.is_empty())
    }

    /// The sequence number of the next new byte.
    pub fn next(&self) -> u64 {
        self.board.end()
    }

    /// Bytes written and not sent.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.board.end())
    }

    /// Fill in the present state.
    pub fn report(&self, statistics: &mut Statistics) {
        statistics.cwnd_bytes = self.window.cwnd;
        statistics.ssthresh_bytes = self.window.ssthresh;
        statistics.pipe_bytes = self.board.pipe();
        statistics.srtt = self.rtt.srtt();
        statistics.rto = self.rtt.rto();
        statistics.phase = self.recovery.phase();
    }

    /// The recovery, and what it acts on.
    fn split(&mut self) -> (&mut LossRecovery, SenderParts<'_>) {
        let parts = SenderParts {
            board: &mut self.board,
            window: &mut self.window,
            congestion: &mut *self.congestion,
        };
        (&mut self.recovery, parts)
    }

    /// Check the scoreboard against a recount, for tests.
    pub fn check(&self) {
        self.board.check();
    }
}
