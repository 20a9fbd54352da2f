//! The streams' sockets, and what may wait unsent in them.

use mstcp_core::error::LocalError;
use mstcp_core::Connection;

use crate::sockets;

/// How often TCP is asked what a stream without a rate carries, in nanoseconds.
const MEASURE_NS: u64 = 10_000_000;
/// Of what such a stream carries, what may wait in its socket: so many seconds, and within these bounds.
const UNSENT_SECONDS: f64 = 0.010;
const LEAST_UNSENT_BYTES: usize = 1 << 14;
const MOST_UNSENT_BYTES: usize = 1 << 18;

/// A stream's socket.
#[derive(Clone, Copy)]
struct Socket {
    descriptor: i32,
    /// The most unsent bytes, and how many more would have been allowed when the kernel was last asked.
    unsent_limit: Option<usize>,
    unsent_room: usize,
    /// For a stream without a rate: when to ask TCP again what it carries.
    measure_ns: Option<u64>,
}

impl Socket {
    const NONE: Self = Self {
        descriptor: -1,
        unsent_limit: None,
        unsent_room: 0,
        measure_ns: None,
    };

    /// Whether `size` bytes more were not too many unsent ones when the kernel was last asked.
    ///
    /// The kernel calls the socket writable when less than half of the bound is unsent: what is larger (a frame that was
    /// begun before the bound shrank) must not wait for more, or it would wait for ever.
    fn has_room(&self, size: usize) -> bool {
        self.unsent_limit
            .map_or(true, |limit| self.unsent_room >= size.min(limit / 2))
    }

    /// Take what TCP carries: bound what waits by it. True if the bound has changed.
    fn note_rate(&mut self, rate_bps: f64) -> bool {
        let bytes = (rate_bps / 8.0 * UNSENT_SECONDS) as usize;
        let limit = (bytes < MOST_UNSENT_BYTES).then_some(bytes.max(LEAST_UNSENT_BYTES));
        let old = self.unsent_limit.unwrap_or(MOST_UNSENT_BYTES);
        let new = limit.unwrap_or(MOST_UNSENT_BYTES);
        // Not for every wobble.
        if old.abs_diff(new) <= old / 8 {
            return false;
        }
        self.unsent_limit = limit;
        self.unsent_room = 0;
        sockets::set_unsent_limit(self.descriptor, new);
        true
    }
}

/// By stream; those of lost streams are not used any more.
#[derive(Default)]
pub struct StreamSockets(Vec<Socket>);

impl StreamSockets {
    /// Use a socket for a stream; `has_rate` says that its rate is known and need not be measured.
    pub fn attach(
        &mut self,
        stream: usize,
        descriptor: i32,
        unsent_limit: Option<usize>,
        has_rate: bool,
    ) {
        *self.of(stream) = Socket {
            descriptor,
            unsent_limit,
            unsent_room: 0,
            measure_ns: (!has_rate).then_some(0),
        };
    }

    /// Forget the socket of a stream.
    pub fn detach(&mut self, stream: usize) {
        if let Some(socket) = self.0.get_mut(stream) {
            *socket = Socket::NONE;
        }
    }

    /// The socket's descriptor; -1, which every system call refuses, if there is none.
    pub fn descriptor(&self, stream: usize) -> i32 {
        self.0.get(stream).map_or(-1, |socket| socket.descriptor)
    }

    fn of(&mut self, stream: usize) -> &mut Socket {
        if stream >= self.0.len() {
            self.0.resize(stream + 1, Socket::NONE);
        }
        &mut self.0[stream]
    }

    /// Whether `size` bytes more in the socket are not too many unsent ones.
    ///
    /// TCP_NOTSENT_LOWAT alone is not enough: the kernel looks at it for each buffer it begins, and those hold tens of
    /// kilobytes: a tenth of a second on a slow path.
    pub fn has_room(
        &mut self,
        core: &mut Connection,
        now_ns: u64,
        stream: usize,
        size: usize,
    ) -> Result<bool, LocalError> {
        let socket = self.of(stream);
        if let (Some(limit), false) = (socket.unsent_limit, socket.has_room(size)) {
            let unsent = sockets::unsent_bytes(socket.descriptor);
            socket.unsent_room = limit.saturating_sub(unsent);
            core.on_unsent(now_ns, stream, unsent)?;
        }
        Ok(socket.has_room(size))
    }

    /// Note that a socket took bytes.
    pub fn on_sent(&mut self, stream: usize, count: usize) {
        let room = &mut self.of(stream).unsent_room;
        *room = room.saturating_sub(count);
    }

    /// Ask TCP about streams without a rate, where that is due; return the streams whose bound of unsent bytes changed.
    pub fn measure(
        &mut self,
        core: &mut Connection,
        now_ns: u64,
    ) -> Result<Vec<(usize, Option<usize>)>, LocalError> {
        let mut changed = Vec::new();
        for (stream, socket) in self.0.iter_mut().enumerate() {
            if !socket.measure_ns.is_some_and(|due_ns| now_ns >= due_ns) {
                continue;
            }
            socket.measure_ns = Some(now_ns + MEASURE_NS);
            let Some(path) = sockets::path(socket.descriptor) else {
                continue;
            };
            core.on_measured(stream, path.rate_bps, path.delay_ns)?;
            core.on_unsent(now_ns, stream, path.unsent_bytes)?;
            if socket.note_rate(path.rate_bps) {
                changed.push((stream, socket.unsent_limit));
            }
        }
        Ok(changed)
    }
}
