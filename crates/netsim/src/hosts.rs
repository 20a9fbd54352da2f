//! The TCP endpoints of all hosts, with what connects each to network and application.

use std::collections::VecDeque;

use crate::bundle::StreamEnd;
use crate::tcp::{Endpoint, Segment};
use crate::time::Nanos;

/// The application's side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// It opened the connection and writes.
    Client,
    /// It accepted the connection and reads.
    Server,
}

/// An endpoint and the end of the stream that it is.
#[derive(Debug)]
pub struct Host {
    /// TCP.
    pub tcp: Endpoint,
    /// The route of what it sends.
    pub route: u32,
    /// The endpoint at the other end.
    pub peer: u32,
    /// Its flow.
    pub flow: u32,
    /// Its stream within the flow.
    pub stream: u16,
    /// Its side of the flow.
    pub side: Side,
    /// The time of the timer event that counts; the others that may be in the queue are out of date.
    pub timer: Nanos,
    /// Whether the flow's protocol is told of events and completes the segments that leave.
    pub wrapped: bool,
    touched: bool,
}

impl Host {
    /// Which end of which stream of its flow it is.
    pub fn stream_end(&self) -> StreamEnd {
        StreamEnd {
            stream: usize::from(self.stream),
            side: self.side,
        }
    }
}

/// All endpoints.
#[derive(Debug, Default)]
pub struct Hosts {
    hosts: Vec<Host>,
    /// Endpoints that may have something to send, in the order in which they were touched.
    touched: VecDeque<u32>,
    /// Segments that have left their endpoints and wait to be routed.
    pushed: VecDeque<(u32, Segment)>,
}

impl Hosts {
    /// Add the two endpoints of a connection: indices of client and server.
    pub fn connect(
        &mut self,
        ends: [Endpoint; 2],
        routes: [u32; 2],
        flow: u32,
        stream: u16,
    ) -> [u32; 2] {
        let first = self.hosts.len() as u32;
        for (index, tcp) in ends.into_iter().enumerate() {
            self.hosts.push(Host {
                tcp,
                route: routes[index],
                peer: first + 1 - index as u32,
                flow,
                stream,
                side: if index == 0 {
                    Side::Client
                } else {
                    Side::Server
                },
                timer: Nanos::MAX,
                wrapped: false,
                touched: false,
            });
        }
        [first, first + 1]
    }

    /// All endpoints.
    pub fn all(&self) -> &[Host] {
        &self.hosts
    }

    /// An endpoint.
    pub fn get(&self, endpoint: u32) -> &Host {
        &self.hosts[endpoint as usize]
    }

    /// An endpoint, to change it.
    pub fn get_mut(&mut self, endpoint: u32) -> &mut Host {
        &mut self.hosts[endpoint as usize]
    }

    /// Bytes that the endpoint's send buffer would take.
    pub fn send_buffer_free(&self, endpoint: u32) -> u32 {
        self.get(endpoint).tcp.send_buffer_free()
    }

    /// Write to an endpoint: how many bytes its send buffer took. Where a rate paces, what may leave does at once, as Linux pushes each
    /// write: it is a packet of its own, and not unsent when the writer asks for room.
    pub fn write(&mut self, now: Nanos, endpoint: u32, bytes: u32) -> u32 {
        self.touch(endpoint);
        let tcp = &mut self.get_mut(endpoint).tcp;
        let taken = tcp.write(now, bytes);
        if tcp.is_paced_at_rate() {
            self.push(now, endpoint);
        }
        taken
    }

    /// Let what an endpoint may send leave before it is written to again.
    pub fn push(&mut self, now: Nanos, endpoint: u32) {
        while let Some(segment) = self.get_mut(endpoint).tcp.poll_transmit(now) {
            self.pushed.push_back((endpoint, segment));
        }
    }

    /// The next segment that has been pushed, and the endpoint that it left.
    pub fn next_pushed(&mut self) -> Option<(u32, Segment)> {
        self.pushed.pop_front()
    }

    /// Write bytes to an endpoint that share no segment with those after them.
    pub fn write_apart(&mut self, now: Nanos, endpoint: u32, bytes: u32) {
        self.touch(endpoint);
        let taken = self.get_mut(endpoint).tcp.write_apart(now, bytes);
        debug_assert_eq!(taken, bytes, "a subflow's buffer is never the limit");
    }

    /// Let an endpoint's SYN leave.
    pub fn open(&mut self, now: Nanos, endpoint: u32) {
        self.touch(endpoint);
        self.get_mut(endpoint).tcp.open(now);
    }

    /// Give a connection up: the peer gets a reset.
    pub fn abort(&mut self, endpoint: u32) {
        self.touch(endpoint);
        self.get_mut(endpoint).tcp.abort();
    }

    /// Pace what an endpoint sends at another rate, where a rate paces it.
    pub fn set_pacing_rate(&mut self, endpoint: u32, allocated_bps: f64) {
        self.touch(endpoint);
        self.get_mut(endpoint).tcp.set_pacing_rate(allocated_bps);
    }

    /// Let an endpoint acknowledge nothing from `sequence` on.
    pub fn hold_from(&mut self, endpoint: u32, sequence: u64) {
        if self.get_mut(endpoint).tcp.hold_from(sequence) {
            self.touch(endpoint);
        }
    }

    /// Let an endpoint acknowledge what was pushed, since all of its connection is read.
    pub fn acknowledge_read(&mut self, endpoint: u32) {
        if self.get_mut(endpoint).tcp.acknowledge_read() {
            self.touch(endpoint);
        }
    }

    /// Bytes in order that an endpoint has for its application.
    pub fn readable(&self, endpoint: u32) -> u32 {
        self.get(endpoint).tcp.readable()
    }

    /// Read from an endpoint, `max` bytes at most.
    pub fn read(&mut self, now: Nanos, endpoint: u32, max: u32) -> u32 {
        self.touch(endpoint);
        self.get_mut(endpoint).tcp.read(now, max)
    }

    /// Note that an endpoint may have something to send.
    pub fn touch(&mut self, endpoint: u32) {
        let host = &mut self.hosts[endpoint as usize];
        if !host.touched {
            host.touched = true;
            self.touched.push_back(endpoint);
        }
    }

    /// The next endpoint that may have something to send.
    pub fn next_touched(&mut self) -> Option<u32> {
        let endpoint = self.touched.pop_front()?;
        self.hosts[endpoint as usize].touched = false;
        Some(endpoint)
    }
}
