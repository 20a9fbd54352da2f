//! The stream that opens a connection: which address and path is tried, and which says the first hello.

use mstcp_proto::handshake::ClientHandshake;

use super::{DialAttempt, DialOutcome, Dialler, PendingDial};
use crate::dial::Candidate;
use crate::driver::StreamId;
use crate::error::Error;
use crate::sys;

/// How long an address may leave connecting unanswered before the next is tried as well, and a path the first hello before
/// another says one (RFC 8305, section 5), or some of its round trips if they take longer.
const ANSWER_NS: u64 = 250_000_000;
const ROUND_TRIPS: u64 = 3;

/// The stream that says the first hello while the connection is open already.
#[derive(Debug)]
pub(super) struct FirstHello {
    way: Candidate,
    round_trip_ns: u64,
    pub(super) deadline_ns: u64,
    is_lost: bool,
}

impl Dialler {
    pub(super) fn next_ways(&self) -> Option<&Vec<Candidate>> {
        let is_opening = self.client.is_none() && self.lead.is_none();
        self.rounds.get(self.next_round).filter(|_| is_opening)
    }

    /// Begin to connect to the addresses whose turn it is.
    pub(super) fn try_ways(&mut self, now_ns: u64) {
        while let Some(ways) = self.next_ways() {
            if self.is_over || self.next_round_ns > now_ns {
                break;
            }
            let ways = ways.clone();
            self.next_round += 1;
            self.next_round_ns = now_ns + ANSWER_NS;
            let timeout_ns = self.config.transport.connect_timeout.as_nanos() as u64;
            let mut failed = Vec::new();
            for (stream, route) in ways {
                let stream = StreamId::from_index(stream);
                if let Err(error) = self.begin(now_ns, stream, route, timeout_ns, false) {
                    failed.push((stream, error));
                }
            }
            for (stream, error) in failed {
                self.note_failed(now_ns, stream, error);
            }
        }
    }

    /// Have those say their hellos whose turn it is.
    pub(super) fn greet(&mut self, now_ns: u64) {
        let ready = |one: &DialAttempt| one.opening.is_ready();
        while let Some(at) = self.attempts.iter().position(ready) {
            let is_turn = self.client.is_some() || self.next_hello_ns <= now_ns;
            if self.is_over || !is_turn {
                return;
            }
            let mut attempt = self.attempts.remove(at);
            if self.joins_early(attempt.stream) {
                self.join_early(now_ns, attempt);
                continue;
            }
            match self.greet_on(now_ns, &mut attempt) {
                Ok(true) => self.attempts.insert(at, attempt),
                Ok(false) => self.lead(now_ns, attempt),
                Err(error) => {
                    self.attempts.insert(at, attempt);
                    self.fail(now_ns, at, error);
                }
            }
        }
    }

    /// Say a hello; false: the connection does that itself, or says none.
    fn greet_on(&mut self, now_ns: u64, attempt: &mut DialAttempt) -> Result<bool, Error> {
        let priority = self.specs[attempt.stream.index()].map_or(0, |spec| spec.priority);
        let greeting = match &mut self.client {
            Some(client) => client.greet(sys::random(), priority.into(), &[])?,
            None if self.config.is_plain || self.config.opens_early => return Ok(false),
            None => {
                let wait_ns = ANSWER_NS.max(ROUND_TRIPS * attempt.round_trip_ns);
                self.next_hello_ns = now_ns + wait_ns;
                let payload_bytes = attempt.opening.payload_bytes(&self.config);
                self.connection_id = sys::random();
                let mut client = self.make_client(payload_bytes);
                let early_data = &self.config.early_data;
                let greeting = client.greet(sys::random(), priority.into(), early_data)?;
                attempt.own = Some((Box::new(client), payload_bytes));
                greeting
            }
        };
        attempt.opening.greet(greeting)?;
        self.limit(now_ns, attempt);
        Ok(true)
    }

    /// Whether a stream is to send data behind its hello: not where that has failed, and it would be missing until that is known.
    fn joins_early(&self, stream: StreamId) -> bool {
        let is_new = |dial: &PendingDial| dial.stream == stream && !dial.has_failed;
        self.config.opens_early && self.client.is_some() && self.dials.iter().any(is_new)
    }

    /// Have a stream say its hello in the core, which sends data behind it.
    fn join_early(&mut self, now_ns: u64, attempt: DialAttempt) {
        let stream = attempt.stream;
        let priority = self.specs[stream.index()].map_or(0, |spec| spec.priority);
        let greeting = (self.client.as_mut())
            .and_then(|client| client.greet(sys::random(), priority.into(), &[]).ok());
        let (Some(greeting), Some(dial)) = (
            greeting,
            self.dials.iter_mut().find(|dial| dial.stream == stream),
        ) else {
            return attempt.opening.discard();
        };
        let timeout_ns = self.config.transport.handshake_timeout.as_nanos() as u64;
        dial.answer_by_ns = Some(match attempt.is_redial {
            true => attempt.deadline_ns,
            false => now_ns + timeout_ns,
        });
        let took_ns = (now_ns - attempt.began_ns).max(2 * attempt.round_trip_ns);
        let id = greeting.hello.stream_id;
        let opened = attempt.opening.into_opened(attempt.socket, id);
        self.found
            .push_back(DialOutcome::Greets(opened, stream, took_ns, greeting));
    }

    fn make_client(&self, payload_bytes: usize) -> ClientHandshake {
        let (config, count) = (&self.config, self.specs.len() as u32);
        let client = ClientHandshake::new(
            &config.secret,
            self.connection_id,
            count,
            payload_bytes as u32,
        );
        match config.authenticate_frames {
            true => client.with_records(),
            false => client,
        }
    }

    /// Have the connection be open by a stream whose hello was not answered yet, or that says none.
    fn lead(&mut self, now_ns: u64, attempt: DialAttempt) {
        let payload_bytes = attempt.opening.payload_bytes(&self.config);
        let client = (!self.config.is_plain).then(|| Box::new(self.make_client(payload_bytes)));
        let deadline_ns = self.lead.as_ref().map_or_else(
            || now_ns + self.config.transport.handshake_timeout.as_nanos() as u64,
            |lead| lead.deadline_ns,
        );
        let (stream, route) = (attempt.stream, attempt.opening.route);
        self.lead = Some(FirstHello {
            way: (stream.index(), route),
            round_trip_ns: attempt.round_trip_ns,
            deadline_ns,
            is_lost: false,
        });
        self.note_greeted(now_ns);
        self.found.push_back(DialOutcome::First {
            opened: attempt.opening.into_opened(attempt.socket, 0),
            stream,
            took_ns: (now_ns - attempt.began_ns).max(2 * attempt.round_trip_ns),
            payload_bytes,
            client,
        });
        if self.config.is_plain {
            self.stop();
        }
    }

    /// The stream that is to say the first hello in the driver, as long as it has not been answered.
    pub(in crate::driver) fn lead_stream(&self) -> Option<StreamId> {
        let lead = self.lead.as_ref()?;
        Some(StreamId::from_index(lead.way.0))
    }

    /// Note that the first hello was said on that stream; another gets its turn where it is not answered.
    pub(in crate::driver) fn note_greeted(&mut self, now_ns: u64) {
        if let Some(lead) = &self.lead {
            self.next_hello_ns = now_ns + ANSWER_NS.max(ROUND_TRIPS * lead.round_trip_ns);
        }
    }

    /// Whether the application has written what goes with the first hello.
    pub(in crate::driver) fn has_greeted(&mut self, greets: bool) -> bool {
        self.has_greeted |= greets;
        self.has_greeted
    }

    /// Have other streams join: the first hello was answered in the driver.
    pub(in crate::driver) fn on_answered(&mut self, now_ns: u64, client: ClientHandshake) {
        if let Some(lead) = self.lead.take() {
            self.join(now_ns, client, &lead.way, 2 * lead.round_trip_ns);
            self.due(now_ns);
        }
    }

    /// Have another stream say the first hello, or give up, if this one said it and is lost.
    pub(in crate::driver) fn on_lost(&mut self, now_ns: u64, stream: StreamId) {
        match &mut self.lead {
            Some(lead) if lead.way.0 == stream.index() => lead.is_lost = true,
            _ => return,
        }
        self.next_hello_ns = now_ns;
        if self.attempts.is_empty() {
            self.end(Error::Lost);
        }
    }

    /// Note that a way does not lead to the peer; once none of the address is left the next is tried at once.
    pub(super) fn note_failed(&mut self, now_ns: u64, stream: StreamId, error: Error) {
        if self.is_over {
            return;
        }
        if let Some(lead) = &self.lead {
            // It is tried again once the hello is answered.
            if lead.is_lost && self.attempts.is_empty() {
                self.end(Error::Lost);
            }
            return;
        }
        let is_final = error.is_final();
        let is_first = |(first, _): &(usize, Error)| stream.index() < *first;
        if is_final || self.failed.as_ref().map_or(true, is_first) {
            self.failed = Some((stream.index(), error));
        }
        let has_more = self.next_ways().is_some() || !self.attempts.is_empty();
        if has_more && !is_final {
            if self.attempts.is_empty() {
                self.next_round_ns = now_ns;
            }
        } else if let Some((_, error)) = self.failed.take() {
            self.end(error);
        }
    }
}
