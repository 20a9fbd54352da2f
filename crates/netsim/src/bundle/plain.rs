//! One TCP connection.

use super::{Bundle, BundleReport, StreamEnd};
use crate::error::Error;
use crate::hosts::{Hosts, Side};
use crate::tcp::Events;
use crate::time::Nanos;

/// A flow over one TCP connection.
#[derive(Debug)]
pub struct Plain {
    ends: [u32; 2],
    written: u64,
    room: SocketLimits,
    /// What was written and not given to the socket, and whether that waits for room.
    waiting_bytes: u32,
    is_blocked: bool,
}

/// What the socket of a connection is given.
#[derive(Debug, Clone, Copy)]
pub struct SocketLimits {
    /// What may wait unsent in it.
    pub unsent_bytes: u32,
    /// What it is given at once, at most.
    pub piece_bytes: u32,
}

impl SocketLimits {
    /// As much as it takes.
    pub const UNLIMITED: Self = Self {
        unsent_bytes: u32::MAX,
        piece_bytes: u32::MAX,
    };
}

impl Plain {
    /// A flow over the connection between these endpoints, client and server.
    pub fn new(ends: [u32; 2], room: SocketLimits) -> Self {
        Self {
            ends,
            written: 0,
            room,
            waiting_bytes: 0,
            is_blocked: false,
        }
    }

    /// Give the socket pieces of what waits, while it has room.
    fn give(&mut self, now: Nanos, hosts: &mut Hosts) {
        let client = self.ends[0];
        let limit = self.room.unsent_bytes;
        while self.waiting_bytes > 0 && !self.is_blocked {
            let part = self.waiting_bytes.min(self.room.piece_bytes);
            let unsent = hosts.get(client).tcp.unsent_bytes();
            self.is_blocked = unsent.saturating_add(part.min(limit / 2)) > limit;
            if self.is_blocked {
                return;
            }
            self.written += u64::from(hosts.write(now, client, part));
            self.waiting_bytes -= part;
        }
    }
}

impl Bundle for Plain {
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        if hosts.send_buffer_free(self.ends[0]) < self.waiting_bytes + bytes {
            return Ok(false);
        }
        self.waiting_bytes += bytes;
        self.give(now, hosts);
        Ok(true)
    }

    fn refuses_until_an_event(&self) -> bool {
        true
    }

    fn ask(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<u32, Error> {
        Ok(hosts.write(now, self.ends[1], bytes))
    }

    fn on_events(
        &mut self,
        now: Nanos,
        stream_end: StreamEnd,
        _: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let endpoint = self.ends[stream_end.side as usize];
        if self.is_blocked && stream_end.side == Side::Client {
            // The kernel calls the socket writable once half of the room is free, and looks when it has sent.
            hosts.push(now, endpoint);
            if hosts.get(endpoint).tcp.unsent_bytes() < self.room.unsent_bytes / 2 {
                self.is_blocked = false;
                self.give(now, hosts);
            }
        }
        if hosts.readable(endpoint) == 0 {
            return Ok(0);
        }
        Ok(u64::from(hosts.read(now, endpoint, u32::MAX)))
    }

    fn streams(&self) -> Vec<[u32; 2]> {
        vec![self.ends]
    }

    fn report(&self) -> BundleReport {
        BundleReport {
            stream_bytes: vec![self.written],
            ..BundleReport::default()
        }
    }
}
