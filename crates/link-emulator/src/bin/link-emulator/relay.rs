//! The thread that moves the frames: receive, release, sleep, around and around.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::Arc;

use link_emulator::checksum;
use link_emulator::fabric::{Departure, DirectionId, Fabric, Snapshot};
use link_emulator::request::Wireless;
use link_emulator::shape::{Shape, ShapeChange};

use crate::alarm::Alarm;
use crate::port::{Port, Received};
use crate::sys::{self, Epoll, EventFd};
use crate::transmit::{Transmitter, BATCH_FRAMES};

/// The number by which epoll reports commands; ports are reported by their directions.
const COMMANDS: u64 = u64::MAX;
/// Most frames taken from one port before the others have their turn.
const RECEIVE_BUDGET: usize = 256;
/// Most frames sent before the ports are looked at again.
const RELEASE_BUDGET: usize = 256;
/// Shortest time between two wake-ups for releases: bounds the processor time under load, at the price of lateness.
const QUANTUM_NS: u64 = 100_000;
/// Longest sleep in which arrivals go unnoticed, well below the time in which they could fill a ring.
const MAX_HOLD_OFF_NS: u64 = 250_000;
/// Below this, sleeping through arrivals saves nothing.
const MIN_HOLD_OFF_NS: u64 = 20_000;
/// A time stamp further than this from now means that the wall clock was set.
const MAX_STAMP_AGE_NS: i64 = 1_000_000_000;

type Job = Box<dyn FnOnce(&mut Relay) + Send>;

/// The way to the relay's thread.
pub struct RelayHandle {
    jobs: Sender<Job>,
    wake: Arc<EventFd>,
    /// Whether the thread runs at a real-time priority.
    pub is_realtime: bool,
}

impl RelayHandle {
    /// Starts the thread, at a real-time priority if that is above 0 and allowed.
    ///
    /// With `is_exact` sleeps end on time and cost nothing, as in virtual time: it wakes for each event and spins for none.
    pub fn start(priority: i32, is_exact: bool) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel();
        let (started, start) = mpsc::channel();
        let wake = Arc::new(EventFd::new()?);
        let signal = Arc::clone(&wake);
        std::thread::Builder::new()
            .name("relay".into())
            .spawn(move || {
                let relay = Relay::new(queue, &signal, is_exact)
                    .map(|relay| (relay, sys::become_realtime(priority)));
                match relay {
                    Ok((mut relay, is_realtime)) => {
                        let _ = started.send(Ok(is_realtime));
                        relay.run();
                    }
                    Err(error) => drop(started.send(Err(error))),
                }
            })?;
        let is_realtime = start
            .recv()
            .map_err(|_| io::Error::other("the relay thread died"))??;
        Ok(Self {
            jobs,
            wake,
            is_realtime,
        })
    }

    /// Has the relay do something between two rounds and returns its result; `None` if its thread has died.
    pub fn call<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Relay) -> R + Send + 'static,
    ) -> Option<R> {
        let (answer, result) = mpsc::channel();
        self.jobs
            .send(Box::new(move |relay| drop(answer.send(work(relay)))))
            .ok()?;
        self.wake.notify();
        result.recv().ok()
    }
}

/// One direction's figures for a report.
pub struct DirectionReport {
    pub snapshot: Snapshot,
    pub dropped_receive: u64,
    pub oversize: u64,
}

/// All wires. Wire `w` has the directions `2 w` (a to b) and `2 w + 1` (b to a); the port where a direction starts
/// has the direction's number.
pub struct Relay {
    fabric: Fabric,
    ports: Vec<Option<Port>>,
    epoll: Epoll,
    transmitter: Transmitter,
    queue: Receiver<Job>,
    /// Ports that may have more frames.
    ready: Vec<DirectionId>,
    batch: Vec<Departure>,
    /// How long arrivals may go unnoticed: no frame that comes meanwhile can be due before.
    hold_off_ns: u64,
    woke_ns: u64,
    alarm: Alarm,
    is_exact: bool,
}

impl Relay {
    fn new(queue: Receiver<Job>, wake: &EventFd, is_exact: bool) -> io::Result<Self> {
        let epoll = Epoll::new(64)?;
        epoll.add(wake.as_raw_fd(), COMMANDS)?;
        Ok(Self {
            fabric: Fabric::default(),
            ports: Vec::new(),
            epoll,
            transmitter: Transmitter::new()?,
            queue,
            ready: Vec::new(),
            batch: Vec::with_capacity(BATCH_FRAMES),
            hold_off_ns: 0,
            woke_ns: 0,
            alarm: Alarm::default(),
            is_exact,
        })
    }

    /// Makes a wire of two ports.
    ///
    /// # Errors
    /// What is wrong, as a sentence's end.
    pub fn add(
        &mut self,
        wire: usize,
        name: &str,
        ports: [Port; 2],
        shapes: &[ShapeChange; 2],
        wifi: Option<&Wireless>,
    ) -> Result<(), String> {
        let first = 2 * wire;
        self.ports
            .resize_with(self.ports.len().max(first + 2), || None);
        for (side, port) in ports.into_iter().enumerate() {
            let id = first + side;
            self.epoll
                .add(port.as_raw_fd(), id as u64)
                .map_err(|error| format!("its interfaces cannot be watched: {error}"))?;
            let mut shape = Shape::default();
            shapes[side].apply(&mut shape);
            self.fabric
                .add(id, shape, &format!("{name} {}", DIRECTION_NAMES[side]));
            self.ports[id] = Some(port);
            self.ready.push(id);
        }
        if let Some(wifi) = wifi {
            self.fabric.share([first, first + 1], wifi)?;
        }
        self.plan_hold_off();
        Ok(())
    }

    /// Changes a wire, as of now.
    pub fn set(&mut self, wire: usize, shapes: &[ShapeChange; 2], up: Option<bool>) {
        let now_ns = sys::monotonic_ns();
        for (side, change) in shapes.iter().enumerate() {
            let id = 2 * wire + side;
            self.fabric.change(id, now_ns, change);
            if let Some(up) = up {
                self.fabric.set_up(id, up);
            }
        }
        self.plan_hold_off();
    }

    /// Takes a wire apart. The ports are for the caller to close, which takes the kernel too long to do it here.
    pub fn remove(&mut self, wire: usize) -> [Option<Port>; 2] {
        let ports = [0, 1].map(|side| {
            let id = 2 * wire + side;
            self.fabric.remove(id);
            self.ready.retain(|&ready| ready != id);
            self.ports.get_mut(id).and_then(Option::take)
        });
        self.plan_hold_off();
        ports
    }

    /// Reports on the directions of a wire.
    pub fn report(&mut self, wire: usize) -> [Option<DirectionReport>; 2] {
        [0, 1].map(|side| {
            let id = 2 * wire + side;
            let port = self.ports.get_mut(id)?.as_mut()?;
            Some(DirectionReport {
                snapshot: self.fabric.snapshot(id, sys::monotonic_ns())?,
                dropped_receive: port.dropped_receive(),
                oversize: port.oversize,
            })
        })
    }

    /// Bytes of memory held for frames.
    pub fn held_bytes(&self) -> usize {
        self.fabric.held_bytes()
    }

    /// Runs until the control thread ends the process.
    fn run(&mut self) {
        loop {
            // Before receiving: whatever arrived up to here is then known when the releases up to here are made.
            let now_ns = sys::monotonic_ns();
            let received = self.receive(now_ns);
            self.release(now_ns);
            self.pause(now_ns, received > 0);
        }
    }

    fn receive(&mut self, now_ns: u64) -> usize {
        let mut has_jobs = false;
        for number in self.epoll.poll() {
            if number == COMMANDS {
                has_jobs = true;
            } else if !self.ready.contains(&(number as DirectionId)) {
                self.ready.push(number as DirectionId);
            }
        }
        let clock_offset_ns = now_ns as i64 - sys::realtime_ns() as i64;
        let (fabric, ports) = (&mut self.fabric, &mut self.ports);
        let mut total = 0;
        self.ready.retain(|&id| {
            let Some(port) = &mut ports[id] else {
                return false;
            };
            let received = port.drain(RECEIVE_BUDGET, |frame| {
                if !frame.is_oversize {
                    let arrival_ns = arrival_ns(frame, now_ns, clock_offset_ns);
                    let tag_bytes = if frame.vlan.is_some() { 4 } else { 0 };
                    let size_bytes = (frame.bytes.len() + tag_bytes) as u32;
                    fabric.arrive(id, arrival_ns, size_bytes, |room| restore(frame, room));
                }
            });
            total += received;
            received == RECEIVE_BUDGET
        });
        if has_jobs {
            self.work();
        }
        total
    }

    fn work(&mut self) {
        // The event is edge-triggered, so the counter need not be read; each job came with an event of its own.
        while let Ok(job) = self.queue.try_recv() {
            job(self);
        }
    }

    fn release(&mut self, now_ns: u64) {
        for _ in 0..RELEASE_BUDGET / BATCH_FRAMES {
            while self.batch.len() < BATCH_FRAMES {
                let Some(departure) = self.fabric.pop(now_ns) else {
                    break;
                };
                self.batch.push(departure);
            }
            if self.batch.is_empty() {
                return;
            }
            self.send_batch();
        }
    }

    fn send_batch(&mut self) {
        let (fabric, ports) = (&self.fabric, &self.ports);
        let frames = self.batch.iter().map(|departure| {
            // The port at the other end of the wire. Without one, no interface has the number 0.
            let port = ports[departure.direction ^ 1].as_ref();
            (
                port.map_or(0, |port| port.interface.index),
                fabric.bytes(departure),
            )
        });
        let mut left = [false; BATCH_FRAMES];
        let start_ns = sys::monotonic_ns();
        self.transmitter
            .send(frames, |place, has_left| left[place] = has_left);
        let step_ns = (sys::monotonic_ns() - start_ns) / self.batch.len() as u64;
        for (place, departure) in self.batch.drain(..).enumerate() {
            // The frames of a batch leave one after the other, at about even intervals. What comes after a frame
            // is handed over, such as the receiver's work, which the kernel may do at once, is no lateness.
            let left_ns = start_ns + step_ns * place as u64;
            self.fabric
                .complete(departure, left[place].then_some(left_ns));
        }
    }

    /// Sleeps until there is something to do.
    fn pause(&mut self, now_ns: u64, has_received: bool) {
        if !self.ready.is_empty() {
            return;
        }
        let event_ns = self.fabric.next_event_ns();
        if self.is_exact {
            return self.epoll.wait_until(event_ns);
        }
        let release_ns = event_ns.map(|due_ns| due_ns.max(self.woke_ns + QUANTUM_NS));
        // More frames are likely to follow one: let them gather in the rings instead of being woken for each.
        let look_ns = (has_received && self.hold_off_ns > 0).then_some(now_ns + self.hold_off_ns);
        let epoll = &self.epoll;
        match (release_ns, look_ns) {
            (Some(release_ns), None) => self.alarm.wait(release_ns, |deadline_ns| {
                epoll.wait_until(Some(deadline_ns))
            }),
            (Some(release_ns), Some(look_ns)) if release_ns <= look_ns => {
                self.alarm.wait(release_ns, sys::sleep_until);
            }
            (_, Some(look_ns)) => sys::sleep_until(look_ns),
            (None, None) => epoll.wait_until(None),
        }
        self.woke_ns = sys::monotonic_ns();
    }

    fn plan_hold_off(&mut self) {
        let half = self.fabric.shortest_transit_ns().unwrap_or(0) / 2;
        self.hold_off_ns = if half < MIN_HOLD_OFF_NS {
            0
        } else {
            half.min(MAX_HOLD_OFF_NS)
        };
    }
}

/// The names of the directions in requests and reports.
pub const DIRECTION_NAMES: [&str; 2] = ["a_to_b", "b_to_a"];

/// When a frame arrived, on the monotonic clock.
fn arrival_ns(frame: &Received<'_>, now_ns: u64, clock_offset_ns: i64) -> u64 {
    let arrival_ns = frame.stamp_realtime_ns as i64 + clock_offset_ns;
    if (arrival_ns - now_ns as i64).abs() <= MAX_STAMP_AGE_NS {
        arrival_ns as u64
    } else {
        now_ns
    }
}

/// Writes a frame as it was on the wire: with its VLAN tag and its checksum.
fn restore(frame: &Received<'_>, room: &mut [u8]) {
    /// Two MAC addresses come before a VLAN tag.
    const TAG_OFFSET: usize = 12;
    let Some([protocol, control]) = frame.vlan else {
        room.copy_from_slice(frame.bytes);
        frame
            .checksum
            .map(|request| checksum::complete(room, request));
        return;
    };
    let (head, tail) = frame.bytes.split_at(TAG_OFFSET);
    room[..TAG_OFFSET].copy_from_slice(head);
    room[TAG_OFFSET..][..2].copy_from_slice(&protocol.to_be_bytes());
    room[TAG_OFFSET + 2..][..2].copy_from_slice(&control.to_be_bytes());
    room[TAG_OFFSET + 4..].copy_from_slice(tail);
    // The request counts from the start of the frame without the tag.
    frame
        .checksum
        .map(|request| checksum::complete(&mut room[4..], request));
}
