//! How a connection ends: closed, given up by either end, refused.

use std::os::fd::AsRawFd;

use mstcp_proto::code;
use rustix::net::sockopt;

use super::Driver;
use crate::error::Error;
use crate::sys;

/// How often a plain connection that was closed asks what its peer has not acknowledged: at first, and at last.
const POLL_NS: u64 = 10_000_000;
const MAX_POLL_NS: u64 = 500_000_000;
/// How long it waits while the peer acknowledges nothing more: of what its socket has, and of what no socket has taken.
const LINGER_NS: u64 = 5_000_000_000;
const CLOSE_NS: u64 = 30_000_000_000;

/// A plain connection that was closed, of which no event tells what the peer has.
#[derive(Debug)]
pub(super) struct Lingering {
    poll_ns: u64,
    due_ns: u64,
    left_bytes: usize,
    since_ns: u64,
}

impl Lingering {
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }
}

impl Driver {
    /// Have the connection end once the peer has everything.
    pub(super) fn begin_to_linger(&mut self, now_ns: u64) {
        if !self.endpoint.core.is_plain() {
            self.endpoint.core.shut();
            return;
        }
        self.lingering = Some(Lingering {
            poll_ns: POLL_NS,
            due_ns: now_ns,
            left_bytes: usize::MAX,
            since_ns: now_ns,
        });
        self.linger(now_ns);
    }

    /// End a plain connection whose peer has everything, or took nothing for too long, if it is time to look.
    pub(super) fn linger(&mut self, now_ns: u64) {
        let Some(mut state) = self.lingering.take() else {
            return;
        };
        let open = self.slots.first().and_then(|slot| slot.open.as_ref());
        let (Some(open), true) = (open, state.due_ns <= now_ns) else {
            self.lingering = Some(state);
            return;
        };
        if let Ok(Err(errno)) = sockopt::socket_error(&open.descriptor) {
            // A stream that the peer has ended is not read, and so tells nothing by itself.
            return self.break_stream(now_ns, 0, errno);
        }
        let queued = self.endpoint.core.queued_bytes();
        let unacknowledged = self.unacknowledged_bytes();
        if queued + unacknowledged != state.left_bytes {
            state.left_bytes = queued + unacknowledged;
            state.since_ns = now_ns;
        }
        let is_finished = self.endpoint.core.is_finished();
        let limit_ns = if is_finished { LINGER_NS } else { CLOSE_NS };
        if is_finished && unacknowledged == 0 {
            self.finish(Ok(()));
        } else if now_ns - state.since_ns >= limit_ns {
            let bytes = queued as u64;
            self.finish(match queued {
                0 => Ok(()),
                _ => Err(Error::Undelivered { bytes }),
            });
        } else {
            state.due_ns = now_ns + state.poll_ns;
            state.poll_ns = (2 * state.poll_ns).min(MAX_POLL_NS);
            self.lingering = Some(state);
        }
    }

    /// Bytes that the sockets have and the peer has not acknowledged, headers included.
    pub fn unacknowledged_bytes(&mut self) -> usize {
        let open = self.slots.iter().filter_map(|slot| slot.open.as_ref());
        let sockets = open.map(|open| sys::unacknowledged_bytes(open.descriptor.as_raw_fd()));
        sockets.sum::<usize>() + self.endpoint.unsent_in_layers_bytes()
    }

    /// End a connection whose peer broke the protocol, and say so.
    pub(super) fn refuse(&mut self, now_ns: u64, error: mstcp_proto::Error) {
        self.endpoint
            .core
            .close(code::PROTOCOL_ERROR, &error.to_string());
        // What cannot be said is not.
        let _ = self.endpoint.transmit(now_ns);
        self.finish(Err(error.into()));
    }

    /// End the connection if the peer has said that it gave up.
    pub(super) fn is_given_up(&mut self) -> bool {
        let told = self.endpoint.core.closed_by_peer();
        let Some((code, reason)) = told.map(|(code, why)| (code, why.to_owned())) else {
            return false;
        };
        self.finish(Err(Error::ClosedByPeer { code, reason }));
        true
    }

    /// Throw away what came after the connection was closed.
    pub(super) fn discard(&mut self) {
        while self.endpoint.ready_bytes() > 0 {
            drop(self.endpoint.take());
            self.endpoint.reclaim();
        }
    }
}
