//! What may wait unsent in a stream's socket, so that frames are given to streams late: the only place that says so.

use rustix::io::Errno;
use std::time::Duration;

use mstcp_proto::Connection;
use mstcp_proto::LocalError;

use crate::low_water_mark::LowWaterMark;
use crate::sys;

/// How often TCP is asked what a stream without a rate carries.
pub const MEASURE: Duration = Duration::from_millis(2);
/// What may wait unsent in a socket, in seconds of what its stream carries.
const UNSENT_SECONDS: f64 = 0.010;
/// More for a stream without a rate on a long path, which it delays by an eighth at most: a host that comes late then leaves TCP
/// something to send, and its estimate of what the path carries is not kept low.
const ROUND_TRIPS_UNSENT: f64 = 0.125;
const MAX_UNSENT_SECONDS: f64 = 0.050;
/// But this many frames of a stream that has a rate, and this many bytes of one that has none.
const MIN_FRAMES: usize = 4;
const MIN_UNSENT_BYTES: usize = 1 << 14;
/// And no more than that. Each time that half of it has left wakes the sender up.
const MAX_UNSENT_BYTES: usize = 1 << 21;
/// Streams are paced 1 % above their rates, so that a host that was held up can catch up.
///
/// Where the rates fill a link to the last bit, what exceeds them waits in the link's queue and not in the host; the
/// application's own rate keeps it small.
pub const PACING_SLACK: f64 = 1.01;
/// A stream without a rate has no new frames, and repeats what the network lost at this rate: 1 Mbit/s.
const IDLE_PACING_BYTES_PER_S: u64 = 125_000;

/// How many bytes may wait unsent in one socket.
#[derive(Debug, Clone, Copy)]
pub struct UnsentLimit {
    descriptor: i32,
    /// None: as much as the socket takes.
    limit: Option<usize>,
    /// How many more would have been allowed when the kernel was last asked.
    left: usize,
}

impl UnsentLimit {
    /// The room of a socket, without a limit.
    pub fn new(descriptor: i32) -> Self {
        let (limit, left) = (None, 0);
        Self {
            descriptor,
            limit,
            left,
        }
    }

    /// The most unsent bytes.
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Pace the socket at a goodput of `rate_bps`, and bound what waits in it; none lifts both.
    ///
    /// The kernel counts TCP payload, so what a frame of `frame_payload_bytes` costs beside it (`header_bytes`) is added
    /// to the goodput, and [`PACING_SLACK`] to the sum.
    pub fn pace(
        &mut self,
        rate_bps: Option<f64>,
        frame_payload_bytes: usize,
        header_bytes: usize,
    ) -> Result<(), Errno> {
        let frame_bytes = frame_payload_bytes + header_bytes;
        let wire =
            rate_bps.map(|rate| rate / 8.0 * frame_bytes as f64 / frame_payload_bytes as f64);
        let pacing = wire.map_or(sys::NO_PACING, |wire| match (wire * PACING_SLACK) as u64 {
            0 => IDLE_PACING_BYTES_PER_S,
            bytes_per_s => bytes_per_s,
        });
        sys::set_pacing_rate(self.descriptor, pacing)?;
        let limit = wire.map(|wire| {
            let bytes = (wire * UNSENT_SECONDS) as usize;
            bytes.max(MIN_FRAMES * frame_bytes).min(MAX_UNSENT_BYTES)
        });
        self.limit = limit;
        self.left = 0;
        match sys::set_unsent_limit(self.descriptor, limit.unwrap_or(MAX_UNSENT_BYTES)) {
            // Without a rate nothing depends on it.
            Err(_) if limit.is_none() => Ok(()),
            result => result,
        }
    }

    /// Take what TCP was found to carry, and bound what waits by it. True if the bound has changed.
    fn note_rate(&mut self, rate_bps: f64, delay_ns: u64) -> bool {
        let round_trip_s = 2e-9 * delay_ns as f64;
        let seconds = round_trip_s * ROUND_TRIPS_UNSENT;
        let seconds = seconds.clamp(UNSENT_SECONDS, MAX_UNSENT_SECONDS);
        let bytes = (rate_bps / 8.0 * seconds) as usize;
        let limit = (bytes < MAX_UNSENT_BYTES).then_some(bytes.max(MIN_UNSENT_BYTES));
        let old = self.limit.unwrap_or(MAX_UNSENT_BYTES);
        let new = limit.unwrap_or(MAX_UNSENT_BYTES);
        // Not for every wobble.
        if old.abs_diff(new) <= old / 8 {
            return false;
        }
        self.limit = limit;
        self.left = 0;
        // A socket that refuses it is only called writable at another time.
        let _ = sys::set_unsent_limit(self.descriptor, new);
        true
    }

    /// Whether `size` bytes more were not too many unsent ones when the kernel was last asked.
    ///
    /// The kernel calls the socket writable when less than half of the bound is unsent: what is larger (a frame that was
    /// begun before the bound shrank) must not wait for more, or it would wait for ever.
    fn had(&self, size: usize) -> bool {
        self.limit
            .map_or(true, |limit| self.left >= size.min(limit / 2))
    }

    /// Whether `size` bytes more are not too many unsent ones, and how many are, where the kernel had to be asked; those that
    /// TLS holds (`held`) count.
    ///
    /// TCP_NOTSENT_LOWAT alone is not enough: the kernel looks at it for each buffer it begins, and those hold tens of
    /// kilobytes: a tenth of a second on a slow path.
    ///
    /// A socket whose connection is over has room whatever is unsent in it, or nobody would be told of it by sending.
    pub fn ask(&mut self, size: usize, held: usize) -> (bool, Option<usize>) {
        let Some(limit) = self.limit else {
            return (true, None);
        };
        if self.had(size) {
            return (true, None);
        }
        let unsent = sys::unsent_bytes(self.descriptor) + held;
        self.left = limit.saturating_sub(unsent);
        let has_room = self.had(size) || sys::is_over(self.descriptor);
        (has_room, Some(unsent))
    }

    /// Note that the socket took bytes.
    pub fn on_sent(&mut self, count: usize) {
        self.left = self.left.saturating_sub(count);
    }
}

/// A stream's socket.
#[derive(Debug, Clone, Copy)]
struct Socket {
    room: UnsentLimit,
    /// For a stream without a rate: when to ask TCP again what it carries.
    measure_ns: Option<u64>,
    awaiting: LowWaterMark,
}

/// The streams' sockets by the core's slots; those of lost streams are not used any more.
#[derive(Debug, Default)]
pub struct StreamSockets(Vec<Option<Socket>>);

impl StreamSockets {
    /// Use a socket for a stream: pace it at a rate, or ask TCP what it carries. See [`UnsentLimit::pace`].
    pub fn attach(
        &mut self,
        stream: usize,
        descriptor: i32,
        rate_bps: Option<f64>,
        frame_payload_bytes: usize,
        header_bytes: usize,
    ) -> Result<(), Errno> {
        if stream >= self.0.len() {
            self.0.resize(stream + 1, None);
        }
        let mut room = UnsentLimit::new(descriptor);
        // A stream of rate 0 gets no new frames; what it holds must still leave.
        let paced = rate_bps.filter(|rate| *rate > 0.0);
        let result = room.pace(paced, frame_payload_bytes, header_bytes);
        let measure_ns = rate_bps.is_none().then_some(0);
        self.0[stream] = Some(Socket {
            room,
            measure_ns,
            awaiting: LowWaterMark::default(),
        });
        result
    }

    /// Do not ask TCP what a stream carries.
    pub(crate) fn measure_no_more(&mut self, stream: usize) {
        if let Some(socket) = self.0.get_mut(stream).and_then(Option::as_mut) {
            socket.measure_ns = None;
        }
    }

    /// How many bytes may wait unsent in the socket of a stream with a rate.
    pub(crate) fn limit(&self, stream: usize) -> Option<usize> {
        self.0.get(stream).copied().flatten()?.room.limit
    }

    /// Forget the socket of a stream.
    pub fn detach(&mut self, stream: usize) {
        if let Some(socket) = self.0.get_mut(stream) {
            *socket = None;
        }
    }

    /// The socket's descriptor; -1, which every system call refuses, if there is none.
    pub fn descriptor(&self, stream: usize) -> i32 {
        let socket = self.0.get(stream).copied().flatten();
        socket.map_or(-1, |socket| socket.room.descriptor)
    }

    /// Note a read; see [`LowWaterMark::on_read`].
    pub fn on_read(&mut self, stream: usize, count: usize, rest: usize) {
        if let Some(socket) = self.0.get_mut(stream).and_then(Option::as_mut) {
            socket.awaiting.on_read(socket.room.descriptor, count, rest);
        }
    }

    /// Have no reader wait too long.
    pub fn check_awaited(&mut self, now_ns: u64) {
        for socket in self.0.iter_mut().flatten() {
            socket.awaiting.check(socket.room.descriptor, now_ns);
        }
    }

    /// When [`StreamSockets::check_awaited`] is due.
    pub fn awaited_due_ns(&self) -> Option<u64> {
        let sockets = self.0.iter().flatten();
        sockets.filter_map(|socket| socket.awaiting.due_ns()).min()
    }

    fn room(&mut self, stream: usize) -> Option<&mut UnsentLimit> {
        let socket = self.0.get_mut(stream)?.as_mut()?;
        Some(&mut socket.room)
    }

    /// Whether `size` bytes more in the socket are not too many unsent ones; see [`UnsentLimit::ask`].
    pub fn has_room(
        &mut self,
        core: &mut Connection,
        now_ns: u64,
        stream: usize,
        size: usize,
        held: usize,
    ) -> Result<bool, LocalError> {
        let Some(room) = self.room(stream) else {
            return Ok(true);
        };
        let (has_room, unsent) = room.ask(size, held);
        if let Some(unsent) = unsent {
            core.on_unsent(now_ns, stream, unsent)?;
        }
        Ok(has_room)
    }

    /// Note that a socket took bytes.
    pub fn on_sent(&mut self, stream: usize, count: usize) {
        if let Some(room) = self.room(stream) {
            room.on_sent(count);
        }
    }

    /// Ask TCP about streams without a rate, where that is due.
    pub fn measure(&mut self, core: &mut Connection, now_ns: u64) -> Result<(), LocalError> {
        let sockets = self.0.iter_mut().enumerate();
        for (stream, socket) in sockets.filter_map(|(at, socket)| Some((at, socket.as_mut()?))) {
            if !socket.measure_ns.is_some_and(|due_ns| now_ns >= due_ns) {
                continue;
            }
            socket.measure_ns = Some(now_ns + MEASURE.as_nanos() as u64);
            let Some((path, unsent_bytes)) = sys::path(socket.room.descriptor) else {
                continue;
            };
            core.on_measured(stream, &path)?;
            core.on_unsent(now_ns, stream, unsent_bytes)?;
            socket.room.note_rate(path.rate_bps, path.delay_ns);
        }
        Ok(())
    }
}
