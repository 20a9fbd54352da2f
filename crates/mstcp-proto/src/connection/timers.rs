//! What falls due: acknowledgements, questions to the peer, stalls, signs of life, the wait for a stream, the end.

use super::Connection;
use crate::control::Control;
use crate::frame::encode_control;
use crate::peer_activity::SILENCE_NS;
use crate::scheduler::StreamSet;
use crate::sender::SEEN_DELAY_NS;
use crate::state::{ConnectionState, Event, Outcome};

/// The peer is asked on every stream once nothing that is awaited has come for this, in nanoseconds, and a round trip: its
/// answer comes before the silence counts as a stall.
const ASK_NS: u64 = 150_000_000;
/// It is asked again so often as long as something came within the time after, and while a stream is stalled: a peer that hears
/// nothing for longer would not know that this side lives, and judge no stream.
const AGAIN_ASK_NS: u64 = 200_000_000;
const OFTEN_NS: u64 = 5_000_000_000;
/// Then after twice the time, up to this.
const MAX_ASK_NS: u64 = 1_000_000_000;
/// An ACK goes also over a path whose delay is so much less than that of the path which brought data last, in nanoseconds.
const MUCH_QUICKER_NS: u64 = 10_000_000;
/// For how long and how often the peer is asked while nothing comes and TCP waits for acknowledgements: TCP waits ever longer
/// before it sends again, but sends what is new while its window has room, and its peer's answer lets it go on at once.
const PROBE_FOR_NS: u64 = 500_000_000;
const PROBE_NS: u64 = 50_000_000;
/// A peer that asks is not answered more often.
const ANSWER_NS: u64 = 50_000_000;
/// How long a connection without a stream waits for one to come back, unless the shell says otherwise.
pub(crate) const RECONNECT_NS: u64 = 5_000_000_000;
/// How long it waits at least where the last was given up because nothing came through it, in nanoseconds: a stream that nobody
/// resets would live on for as long.
const SILENT_PATHS_NS: u64 = 30_000_000_000;
/// How long it waits at most where the client has never confirmed its hello, in nanoseconds: it may have chosen another path.
const UNCONFIRMED_NS: u64 = 1_000_000_000;
/// How long a closed connection waits while the peer takes nothing more, unless the shell says otherwise.
pub(crate) const CLOSE_NS: u64 = 30_000_000_000;
/// How long the peer's own end is awaited once it has everything.
pub(crate) const END_NS: u64 = 2_000_000_000;

/// How long all streams that work have for their LAST; then one that has sent it is enough.
const LAST_NS: u64 = 500_000_000;

#[derive(Debug, Default)]
pub(super) struct Timers {
    /// When all below was looked at last.
    looked_ns: u64,
    /// The peer has asked for an answer on every stream.
    pub(super) is_asked: bool,
    answered_ns: u64,
    seen_at_ns: Option<u64>,
    /// When to ask the peer, after how long again, and what was known of its progress then.
    ask_at_ns: Option<u64>,
    ask_ns: u64,
    asked_ns: u64,
    asked: u64,
    progress: (u64, u64),
    progress_ns: u64,
    keepalive: Option<Keepalive>,
    reconnect_ns: u64,
    close_ns: u64,
    /// When the state is left if nothing happens, and what was acknowledged when that was set.
    leave_at_ns: Option<u64>,
    acknowledged: u64,
    /// The peer has ended a stream since this side closes, or has sent everything: it knows what this side has.
    has_peer_ended: bool,
    /// See [`Connection::reopen_streams`].
    reopens: bool,
    /// The stream that went last was given up because nothing came through it.
    pub(super) has_silent_paths: bool,
}

impl Timers {
    pub(super) fn new() -> Self {
        Self {
            looked_ns: u64::MAX,
            ask_ns: ASK_NS,
            reconnect_ns: RECONNECT_NS,
            close_ns: CLOSE_NS,
            ..Self::default()
        }
    }
}

/// See [`Connection::set_keepalive`].
#[derive(Debug, Clone, Copy)]
struct Keepalive {
    idle_ns: u64,
    probes: u32,
    /// PINGs since something was heard, and when the last was sent.
    silent: u32,
    pinged_ns: u64,
    at_ns: Option<u64>,
}

impl Connection {
    /// How long the connection lives on without any stream, in nanoseconds.
    pub fn set_reconnect_ns(&mut self, reconnect_ns: u64) {
        self.timers.reconnect_ns = reconnect_ns;
    }

    /// How long a closed connection waits while the peer takes nothing more, in nanoseconds.
    pub fn set_close_ns(&mut self, close_ns: u64) {
        self.timers.close_ns = close_ns;
    }

    /// Ask for a sign of life after `idle_ns` of silence, and again after as long; after `probes` that nothing answers
    /// all streams are given up. None: no more.
    pub fn set_keepalive(&mut self, idle_ns: Option<u64>, probes: u32) {
        self.timers.keepalive = idle_ns.map(|idle_ns| Keepalive {
            idle_ns,
            probes,
            silent: 0,
            pinged_ns: 0,
            at_ns: None,
        });
    }

    /// Note that the client opens lost streams again until the connection is closed. So if the last stream is lost before the
    /// peer can know that this side has everything, the connection waits for another that tells it.
    pub fn reopen_streams(&mut self) {
        self.timers.reopens = true;
    }

    /// The frames by which a server whose connection has ended, with everything received, answers a client that joins it with
    /// another stream. See [`crate::handshake::Admission::remember`].
    pub fn farewell(&self) -> Option<Vec<u8>> {
        let has_all = self.delivered && self.is_ended();
        has_all.then(|| {
            let mut farewell = Vec::new();
            encode_control(&mut farewell, &self.receiver.final_ack());
            encode_control(&mut farewell, &Control::Last);
            farewell
        })
    }

    /// Say that the application has closed: what was written goes out, then the end. [`Event::Closed`] tells when the
    /// sockets can be closed.
    pub fn shut(&mut self) {
        if self.has_peer_closed() && !self.trusting {
            // It has everything that was sent before it ended the last stream, and takes no more.
            self.end();
            self.finish(match self.sender.undelivered_bytes() {
                0 => Outcome::Delivered,
                bytes => Outcome::Undelivered { bytes },
            });
        } else if matches!(self.state, ConnectionState::Open | ConnectionState::Waiting) {
            self.end();
            self.state = ConnectionState::Draining;
            self.timers.leave_at_ns = None;
            self.timers.looked_ns = u64::MAX;
        }
    }

    /// When to poll again though nothing happened; in the past while [`Connection::poll_event`] has something to tell.
    pub fn timeout_ns(&self) -> Option<u64> {
        if !self.events.is_empty() {
            return Some(0);
        }
        if self.trusting {
            return None;
        }
        let timers = &self.timers;
        // One that waits for room goes out when there is some.
        let may_send = !self.alive().is_empty() && !self.sender.has_ack();
        let may_answer = timers.is_asked && may_send;
        let answer = may_answer.then_some(timers.answered_ns + ANSWER_NS);
        let ack = self.receiver.ack_at_ns().filter(|_| may_send);
        // What was sent since the last look is awaited too.
        let awaits = || self.sender.awaits().then_some(self.now_ns + ASK_NS);
        let ask = timers.ask_at_ns.or_else(awaits);
        let query = || {
            let alive = self.alive();
            let is_silent = self.may_probe();
            let asks = alive
                .iter()
                .filter_map(|slot| self.unanswered_streams.ask_at_ns(slot, is_silent));
            asks.filter(|at_ns| *at_ns > self.now_ns).min()
        };
        let due = [
            ack,
            self.may_query_tcp().then(query).flatten(),
            self.probe_at_ns().filter(|at_ns| *at_ns > self.now_ns),
            self.late_at_ns().filter(|at_ns| *at_ns > self.now_ns),
            self.sender.stall_at_ns(self.now_ns, &self.peer_activity),
            self.sender.look_at_ns(self.now_ns),
            answer,
            timers.seen_at_ns,
            ask,
            timers.keepalive.and_then(|keepalive| keepalive.at_ns),
            timers.leave_at_ns,
        ];
        due.into_iter().flatten().min()
    }

    /// Do what is due.
    pub(super) fn prepare(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
        if self.trusting {
            return;
        }
        if self.timers.looked_ns != self.now_ns {
            self.timers.looked_ns = self.now_ns;
            self.look();
        }
        if self.alive().is_empty() || self.sender.has_ack() {
            return;
        }
        if self.timers.is_asked && self.now_ns >= self.timers.answered_ns + ANSWER_NS {
            self.timers.is_asked = false;
            self.timers.answered_ns = self.now_ns;
            self.receiver.tell_again();
            self.acknowledge(true);
            self.push_seen();
        } else if self.receiver.wants_ack(self.now_ns) {
            let everywhere = self.receiver.may_block();
            self.acknowledge(everywhere);
        }
    }

    /// Send an ACK, on the stream that brought data last as long as that works, else on those that are used, or on all; also on
    /// one that is much quicker. A sender takes a late report for a path that is full.
    fn acknowledge(&mut self, everywhere: bool) {
        let alive = self.alive().without(self.sender.greeting());
        let latest = self.receiver.latest();
        let used = self.sender.eligible().and(alive);
        let prompt = alive.without(self.stalled()).without(self.sender.late());
        let targets = match everywhere {
            true => alive,
            false if prompt.contains(latest) => {
                let mut targets = StreamSet::only(latest);
                let quickest = self.sender.quickest(prompt);
                if self.sender.delay_ns(quickest) + MUCH_QUICKER_NS <= self.sender.delay_ns(latest)
                {
                    targets.insert(quickest);
                }
                targets
            }
            false if prompt.and(used).is_empty() => used,
            false => prompt.and(used),
        };
        let ack = self.receiver.make_ack();
        self.sender.push_ack(targets, ack);
    }

    /// Look at everything that time changes.
    fn look(&mut self) {
        let now_ns = self.now_ns;
        let round_trips_ns = self.sender.round_trips_ns();
        self.peer_activity.look(now_ns, round_trips_ns);
        self.receiver
            .grow(now_ns, self.sender.least_round_trip_ns());
        let unanswered = self.unanswered_streams.unanswered(&self.peer_activity);
        self.sender.note_unanswered(unanswered);
        for slot in self.sender.check_stalls(now_ns, &self.peer_activity).iter() {
            self.events.push_back(Event::StreamStalled { slot });
        }
        for slot in self.sender.take_recovered().iter() {
            self.events.push_back(Event::StreamRecovered { slot });
        }
        for slot in self.sender.hopeless(now_ns, &self.peer_activity).iter() {
            self.give_up_stream(slot);
        }
        self.tell_seen();
        self.ask(round_trips_ns);
        self.keep_alive();
        self.advance();
    }

    /// Tell the peer which of its acknowledgements have come.
    fn tell_seen(&mut self) {
        if !self.receiver.has_seen() {
            self.timers.seen_at_ns = None;
            return;
        }
        let at_ns = *self
            .timers
            .seen_at_ns
            .get_or_insert(self.now_ns + SEEN_DELAY_NS);
        if self.now_ns >= at_ns {
            self.push_seen();
        }
    }

    fn push_seen(&mut self) {
        self.timers.seen_at_ns = None;
        let seen = self.receiver.take_seen();
        if !seen.is_empty() {
            let alive = self.alive();
            self.sender.push_control(Control::Seen(seen), alive);
        }
    }

    /// Ask the peer where something is awaited that does not come, or a stream is stalled.
    fn ask(&mut self, round_trips_ns: u64) {
        let has_stalled = !self.stalled().is_empty();
        let awaits = self.sender.awaits();
        let (now_ns, timers) = (self.now_ns, &mut self.timers);
        if !awaits && !has_stalled {
            timers.ask_at_ns = None;
            timers.ask_ns = ASK_NS;
            return;
        }
        let progress = self.sender.progress();
        if progress != timers.progress || timers.ask_at_ns.is_none() {
            timers.progress = progress;
            timers.progress_ns = now_ns;
            timers.ask_ns = ASK_NS;
            timers.ask_at_ns = Some(now_ns + ASK_NS + round_trips_ns / 2);
        }
        let probe_ns = timers.asked_ns + AGAIN_ASK_NS;
        if has_stalled {
            timers.ask_at_ns = timers
                .ask_at_ns
                .map(|at_ns| at_ns.min(probe_ns.max(now_ns)));
        }
        if timers.ask_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            timers.asked_ns = now_ns;
            timers.asked += 1;
            timers.ask_ns = match now_ns < timers.progress_ns + OFTEN_NS {
                true => AGAIN_ASK_NS,
                false => (2 * timers.ask_ns).min(MAX_ASK_NS),
            };
            timers.ask_at_ns = Some(now_ns + timers.ask_ns + round_trips_ns / 2);
            let token = timers.asked;
            self.ping(token);
        }
    }

    /// When the silence on all streams begins to be a reason for asking TCP, and the peer; none if nothing was sent since.
    fn probe_at_ns(&self) -> Option<u64> {
        let may_miss = self.sender.awaits() || self.sender.has_unseen_acks();
        let silent_ns = SILENCE_NS + self.sender.round_trips_ns();
        (may_miss && !self.trusting).then(|| self.peer_activity.heard_ns() + silent_ns)
    }

    pub(super) fn may_probe(&self) -> bool {
        self.probe_at_ns()
            .is_some_and(|at_ns| (at_ns..at_ns + PROBE_FOR_NS).contains(&self.now_ns))
    }

    /// Ask a peer that is silent on all streams though its kernel should have acknowledged something.
    pub(super) fn probe(&mut self) {
        if self.may_probe() && self.now_ns >= self.timers.asked_ns + PROBE_NS {
            self.timers.asked_ns = self.now_ns;
            self.timers.asked += 1;
            self.ping(self.timers.asked);
        }
    }

    /// Look for signs of life where the shell wants to know.
    fn keep_alive(&mut self) {
        let (now_ns, heard_ns) = (self.now_ns, self.peer_activity.heard_ns());
        let Some(keepalive) = &mut self.timers.keepalive else {
            return;
        };
        let at_ns = *keepalive.at_ns.get_or_insert(now_ns + keepalive.idle_ns);
        if now_ns < at_ns {
            return;
        }
        let idle_ns = keepalive.idle_ns;
        keepalive.at_ns = Some(now_ns + idle_ns);
        if heard_ns > keepalive.pinged_ns {
            // The answer may have come right after the PING, and this timer be late.
            keepalive.silent = 0;
        }
        if now_ns.saturating_sub(heard_ns) < idle_ns {
            keepalive.at_ns = Some(heard_ns + idle_ns);
            return;
        }
        keepalive.silent += 1;
        keepalive.pinged_ns = now_ns;
        if keepalive.silent > keepalive.probes {
            keepalive.silent = 0;
            for slot in self.alive().iter() {
                self.give_up(slot);
            }
        } else {
            let token = u64::from(keepalive.silent);
            self.ping(token);
        }
    }

    /// Note that the last of something went: a stream that was lost, or that the peer ended properly.
    pub(super) fn note_ended(&mut self, proper: bool, has_last: bool) {
        let is_closing = matches!(
            self.state,
            ConnectionState::Draining | ConnectionState::Ending
        );
        // Else the stream was only taken out.
        self.timers.has_peer_ended |= has_last && (is_closing || self.is_ended());
        self.timers.has_silent_paths = false;
        if !self.alive().is_empty() || self.trusting {
            return;
        }
        let nothing_left = self.sender.undelivered_bytes() == 0;
        match self.state {
            ConnectionState::Closed => {}
            // Another stream tells the peer what this side has.
            ConnectionState::Draining | ConnectionState::Ending
                if self.is_finished() && !self.knows_enough() => {}
            ConnectionState::Draining | ConnectionState::Ending
                if self.is_finished() || (proper && nothing_left) =>
            {
                self.finish(Outcome::Delivered);
            }
            // The peer is done; so are we when the application closes.
            ConnectionState::Open if proper && self.is_ended() && nothing_left => {}
            _ if proper => self.finish(Outcome::Lost),
            ConnectionState::Open => {
                self.state = ConnectionState::Waiting;
                self.timers.leave_at_ns = None;
            }
            _ => self.timers.leave_at_ns = None,
        }
    }

    /// Note that the application has written: nobody is there to take it if the peer has ended all streams.
    pub(super) fn note_written(&mut self) {
        if self.has_peer_closed() && self.sender.undelivered_bytes() > 0 {
            self.finish(Outcome::Lost);
        }
    }

    /// Whether the peer has ended all streams properly, and this side has not closed.
    fn has_peer_closed(&self) -> bool {
        self.state == ConnectionState::Open && self.alive().is_empty()
    }

    /// Whether the peer can do without a further stream.
    fn knows_enough(&self) -> bool {
        self.timers.has_peer_ended || !self.timers.reopens
    }

    /// Note that there is a further stream.
    pub(super) fn note_added(&mut self) {
        if self.state == ConnectionState::Waiting {
            self.state = ConnectionState::Open;
        }
        if self.state != ConnectionState::Ending {
            self.timers.leave_at_ns = None;
        }
    }

    /// Go on to the next state if it is time.
    fn advance(&mut self) {
        let now_ns = self.now_ns;
        if self.state == ConnectionState::Draining && self.is_finished() {
            self.state = ConnectionState::Ending;
            self.timers.leave_at_ns = Some(now_ns + END_NS);
            self.close_streams();
        }
        let has_streams = !self.alive().is_empty();
        let wait_ns = match self.state {
            ConnectionState::Open | ConnectionState::Closed => return,
            ConnectionState::Draining if has_streams => self.timers.close_ns,
            ConnectionState::Waiting | ConnectionState::Draining => self.reconnect_ns(),
            ConnectionState::Ending => END_NS,
        };
        let acknowledged = self.sender.acknowledged();
        if self.timers.acknowledged != acknowledged && has_streams {
            self.timers.acknowledged = acknowledged;
            if self.state == ConnectionState::Draining {
                self.timers.leave_at_ns = None;
            }
        }
        let leave_at_ns = *self.timers.leave_at_ns.get_or_insert(now_ns + wait_ns);
        let bytes = self.sender.undelivered_bytes();
        match self.state {
            ConnectionState::Ending if self.is_over() || now_ns >= leave_at_ns => {
                self.finish(Outcome::Delivered);
            }
            ConnectionState::Waiting if now_ns >= leave_at_ns => self.finish(Outcome::Lost),
            ConnectionState::Draining if now_ns >= leave_at_ns => {
                self.finish(Outcome::Undelivered { bytes });
            }
            _ => {}
        }
    }

    /// How long to wait without a stream: as long as TCP would, where the last was given up for its silence.
    fn reconnect_ns(&self) -> u64 {
        if self.receiver.is_unconfirmed() {
            return self.timers.reconnect_ns.min(UNCONFIRMED_NS);
        }
        match self.timers.has_silent_paths {
            true => self.timers.reconnect_ns.max(SILENT_PATHS_NS),
            false => self.timers.reconnect_ns,
        }
    }

    /// When one LAST is enough.
    fn late_at_ns(&self) -> Option<u64> {
        let leave_at_ns = self.timers.leave_at_ns;
        let leave_at_ns = leave_at_ns.filter(|_| self.state == ConnectionState::Ending)?;
        Some(leave_at_ns - END_NS + LAST_NS)
    }

    /// Whether each side has told the other its end.
    fn is_over(&self) -> bool {
        if self.alive().is_empty() {
            return self.knows_enough();
        }
        let is_late = (self.late_at_ns()).is_some_and(|late_at_ns| self.now_ns >= late_at_ns);
        let has_last = |slot| self.receiver.has_last(slot);
        let has_peer_ended = self.timers.has_peer_ended || self.alive().iter().any(has_last);
        // A socket that is closed with bytes unread is reset, and what it has not sent is lost with it.
        let working = self.alive().without(self.stalled());
        let mut working = working.without(self.sender.greeting()).iter();
        has_peer_ended
            && (is_late || working.all(has_last))
            && self.sender.has_ended_streams(is_late)
    }

    pub(super) fn finish(&mut self, outcome: Outcome) {
        self.state = ConnectionState::Closed;
        self.delivered = outcome == Outcome::Delivered;
        self.timers.leave_at_ns = None;
        self.events.push_back(Event::Closed(outcome));
    }
}
