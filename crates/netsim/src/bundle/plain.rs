//! One TCP connection.

use super::{Bundle, BundleReport, Place};
use crate::error::Error;
use crate::hosts::Hosts;
use crate::tcp::Events;
use crate::time::Nanos;

/// A flow over one TCP connection.
#[derive(Debug)]
pub struct Plain {
    ends: [u32; 2],
    written: u64,
    /// What the socket is given at once, at most.
    piece_bytes: u32,
    /// When the last piece was given to it, and how much more it might have had.
    piece: (Nanos, u32),
}

impl Plain {
    /// A flow over the connection between these endpoints, client and server.
    pub fn new(ends: [u32; 2], piece_bytes: u32) -> Self {
        Self {
            ends,
            written: 0,
            piece_bytes,
            piece: (0, 0),
        }
    }
}

impl Bundle for Plain {
    fn write(&mut self, now: Nanos, bytes: u32, hosts: &mut Hosts) -> Result<bool, Error> {
        if hosts.send_buffer_free(self.ends[0]) < bytes {
            return Ok(false);
        }
        let mut left_bytes = bytes;
        while left_bytes > 0 {
            if self.piece.0 == now && self.piece.1 > 0 {
                hosts.get_mut(self.ends[0]).tcp.continue_packet();
            } else {
                self.piece = (now, self.piece_bytes);
            }
            let part = left_bytes.min(self.piece.1);
            self.written += u64::from(hosts.write(now, self.ends[0], part));
            self.piece.1 -= part;
            left_bytes -= part;
        }
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
        place: Place,
        _: &Events,
        hosts: &mut Hosts,
    ) -> Result<u64, Error> {
        let endpoint = self.ends[place.side as usize];
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
