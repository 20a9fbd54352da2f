//! The engine's part that lets applications begin, write, ask and read.

use crate::description::WhenFull;
use crate::error::Error;
use crate::flow::{Carrier, Phase};
use crate::hosts::Side;
use crate::packet::Content;
use crate::queue::{Event, EventTarget};
use crate::simulation::Simulation;
use crate::tcp::Events;
use crate::time::{Nanos, MICROSECOND};
use crate::traffic::Source;

const UDP_HEADER_BYTES: u32 = 8;
/// Timers of protocols over TCP are not looked at more often.
const TIMER_RESOLUTION: Nanos = MICROSECOND;

impl Simulation {
    /// A segment or a timer has changed an endpoint: its application acts, then the endpoint answers. So an ACK tells of the
    /// window after the read, as in ns-3.
    pub(crate) fn on_change(&mut self, endpoint: u32) -> Result<(), Error> {
        self.hosts.touch(endpoint);
        let host = self.hosts.get_mut(endpoint);
        let events = if host.wrapped {
            host.tcp.take_events()
        } else {
            Events::default()
        };
        let (index, side, host_has_timers) = (host.flow, host.side, host.wrapped);
        let stream_end = host.stream_end();
        let flow = &mut self.flows[index as usize];
        if let Carrier::Connections(bundle) = &mut flow.carrier {
            let read = bundle.on_events(self.now, stream_end, &events, &mut self.hosts)?;
            if flow.phase == Phase::Opening {
                self.begin_if_open(index);
            } else if side == Side::Server {
                let whole = if read > 0 {
                    flow.on_read(self.now, read)
                } else {
                    0
                };
                if let Source::Requests(_) = &flow.source {
                    self.on_answers(index, whole)?;
                }
            } else {
                if let (1.., Source::Requests(requests)) = (read, &mut flow.source) {
                    let answers = requests.on_arrived(read);
                    flow.add_backlog(self.now, answers);
                }
                if flow.backlog > 0 {
                    self.fill(index)?;
                }
            }
        }
        if host_has_timers {
            self.arm_flow(index);
        }
        self.settle()
    }

    /// Let the protocol over a flow's connections do what is due.
    pub(crate) fn on_flow_timer(&mut self, index: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        if flow.timer != self.now {
            return Ok(());
        }
        flow.timer = Nanos::MAX;
        if let Carrier::Connections(bundle) = &mut flow.carrier {
            let read = bundle.on_timer(self.now, &mut self.hosts)?;
            if read > 0 {
                flow.on_read(self.now, read);
            }
            if flow.backlog > 0 {
                self.fill(index)?;
            }
        }
        self.arm_flow(index);
        self.settle()
    }

    /// Make sure that a flow is asked no later than its protocol's next timer, and when its application may write again.
    fn arm_flow(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Carrier::Connections(bundle) = &flow.carrier else {
            return;
        };
        let write = flow.write_rate.filter(|_| flow.backlog > 0);
        let write = write.map(|rate| rate.next()).filter(|&at| at > self.now);
        let Some(due) = bundle.next_timer().into_iter().chain(write).min() else {
            return;
        };
        // What is due already has been looked at now.
        let due = due.max(self.now + TIMER_RESOLUTION);
        if due < flow.timer {
            flow.timer = due;
            self.queue.schedule(due, EventTarget::Flow(index));
        }
    }

    /// Begin to write when all connections are open, to whom acts first, and its time has come.
    fn begin_if_open(&mut self, index: u32) {
        let flow = &mut self.flows[index as usize];
        let Carrier::Connections(bundle) = &flow.carrier else {
            return;
        };
        let asker = match flow.source {
            Source::Requests(_) => Side::Server,
            _ => Side::Client,
        };
        if !bundle.is_open(asker, &self.hosts) {
            return;
        }
        let begun = self.now.max(flow.write_from);
        flow.phase = Phase::Writing;
        flow.begun = Some(begun);
        let (count, later) = match &mut flow.source {
            Source::Requests(requests) => requests.first(),
            Source::Listed(writes) => match writes.next_time() {
                Some(time) => (1, time),
                None => (0, 0),
            },
            _ => (1, 0),
        };
        for _ in 0..count {
            self.queue
                .schedule(begun + later, EventTarget::Source(index));
        }
    }

    pub(crate) fn on_source(&mut self, index: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        if flow.phase == Phase::Waiting {
            if let Carrier::Connections(bundle) = &flow.carrier {
                self.queue.pop();
                flow.phase = Phase::Opening;
                for endpoint in bundle.openers() {
                    self.hosts.touch(endpoint);
                }
                return self.settle();
            }
            flow.phase = Phase::Writing;
            flow.begun = Some(self.now);
        }
        if self.now >= flow.stop {
            self.queue.pop();
            return Ok(());
        }
        match flow.source.gap() {
            Some(gap) => {
                let gap = flow.lateness.gap(gap);
                let next = self
                    .queue
                    .reserve(self.now + gap, EventTarget::Source(index));
                self.queue.replace_first(next);
            }
            None => {
                self.queue.pop();
            }
        }
        match flow.source {
            Source::Bulk => {
                if let Some(rate) = &mut flow.write_rate {
                    rate.begin(self.now);
                }
                self.fill(index)?;
            }
            Source::Requests(_) => {
                flow.ask(self.now);
                self.on_answers(index, 0)?;
            }
            Source::Listed(ref mut writes) => {
                let bytes = writes.take();
                self.write_listed(index, bytes)?;
            }
            _ => self.tick(index)?,
        }
        self.settle()
    }

    /// One write of a source that has a rate.
    fn tick(&mut self, index: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        let bytes = flow.write_bytes;
        flow.ticks[0] += 1;
        match &mut flow.carrier {
            Carrier::Connections(bundle) => {
                if flow.backlog == 0 && bundle.write(self.now, bytes, &mut self.hosts)? {
                    flow.on_written(self.now, bytes);
                } else if flow.when_full == WhenFull::Wait {
                    flow.add_backlog(self.now, u64::from(bytes));
                } else {
                    flow.ticks[1] += 1;
                    if bundle.refuses_until_an_event() {
                        self.skip_ticks(index);
                    }
                }
                Ok(())
            }
            &mut Carrier::Datagrams { route } => {
                flow.totals[0] += u64::from(bytes);
                let content = Content::Datagram {
                    flow: index,
                    payload_bytes: bytes,
                    written: self.now,
                };
                self.send(
                    content,
                    route,
                    self.packet_overhead_bytes + UDP_HEADER_BYTES + bytes,
                )
            }
        }
    }

    /// A write that was decided before: in pieces of a packet as there is room, or as a whole or not at all.
    fn write_listed(&mut self, index: u32, bytes: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        flow.ticks[0] += 1;
        if flow.when_full == WhenFull::Wait {
            flow.add_backlog(self.now, u64::from(bytes));
            return self.fill(index);
        }
        if let Carrier::Connections(bundle) = &mut flow.carrier {
            if bundle.write(self.now, bytes, &mut self.hosts)? {
                flow.on_written(self.now, bytes);
            } else {
                flow.ticks[1] += 1;
            }
        }
        Ok(())
    }

    /// Count the ticks that will be refused as the last one was, because nothing happens before them, and schedule the next one.
    ///
    /// Each counts as an event, as it would one by one.
    fn skip_ticks(&mut self, index: u32) {
        let own = |event: &Event| event.target() == EventTarget::Source(index);
        let Some(tick) = self.queue.peek().filter(own) else {
            return;
        };
        self.queue.pop();
        let flow = &mut self.flows[index as usize];
        let other = self.queue.peek().map_or(Nanos::MAX, Event::time);
        let bound = other.min(flow.stop).min(self.schedule.end);
        if let Some((count, next)) = flow.lateness.skip(&mut flow.source, tick.time(), bound) {
            flow.ticks[0] += count;
            flow.ticks[1] += count;
            self.counters.events += count;
            self.queue.schedule(next, EventTarget::Source(index));
        } else {
            self.queue.push(tick);
        }
    }

    /// Write as much of what is ready as there is room for, no faster than the application's rate.
    fn fill(&mut self, index: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        while flow.may_write(self.now) {
            let bytes = flow.backlog.min(u64::from(flow.write_bytes)) as u32;
            let Carrier::Connections(bundle) = &mut flow.carrier else {
                return Ok(());
            };
            if !bundle.write(self.now, bytes, &mut self.hosts)? {
                break;
            }
            flow.backlog -= u64::from(bytes);
            flow.on_written(self.now, bytes);
        }
        if flow.write_rate.is_some() {
            self.arm_flow(index);
        }
        Ok(())
    }

    /// `whole` answers are read: their users think. Requests that wait are sent as far as there is room.
    fn on_answers(&mut self, index: u32, whole: u32) -> Result<(), Error> {
        let flow = &mut self.flows[index as usize];
        let (Source::Requests(requests), Carrier::Connections(bundle)) =
            (&mut flow.source, &mut flow.carrier)
        else {
            return Ok(());
        };
        for _ in 0..whole {
            if let Some(time) = requests.think() {
                self.queue
                    .schedule(self.now + time, EventTarget::Source(index));
            }
        }
        let unsent = requests.unsent();
        if unsent > 0 {
            requests.on_sent(bundle.ask(self.now, unsent, &mut self.hosts)?);
        }
        Ok(())
    }
}
