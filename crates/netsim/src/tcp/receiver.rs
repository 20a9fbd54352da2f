//! The receiving side: reassembly, when to acknowledge, SACK blocks, the window, the timestamp to echo.

use std::collections::VecDeque;

use super::config::Config;
use super::held_acks::{HeldAck, HeldAcks};
use super::options::OptionLayout;
use super::segment::{MptcpKind, SackBlocks, Segment, MAX_SACK_BLOCKS};
use super::statistics::Statistics;
use crate::time::{Nanos, SECOND};

/// What Linux takes for the peer's segments before it has seen any, and the least that it takes for them.
const DEFAULT_MSS_BYTES: u32 = 536;
const MIN_MSS_BYTES: u32 = 88;

/// A timer that is off.
pub(super) const OFF: Nanos = Nanos::MAX;

/// One direction of a connection, as seen by who receives.
#[derive(Debug, Clone)]
pub struct Receiver {
    buffer_bytes: u64,
    mss: u64,
    delay_segments: u32,
    delay_timeout: Nanos,
    /// The next sequence number expected.
    next: u64,
    /// Where reading goes on.
    read: u64,
    /// Received beyond `next`: disjoint, ascending, never adjacent.
    ahead: VecDeque<(u64, u64)>,
    ahead_bytes: u64,
    /// Sequence number of the FIN, once seen.
    fin_at: Option<u64>,
    fin_received: bool,
    /// A sequence number in each range that was reported last, the newest first (RFC 2018, 4).
    reported: [u64; MAX_SACK_BLOCKS],
    /// In-order segments since the last ACK.
    unacknowledged: u32,
    delayed_until: Nanos,
    /// Whether what is pushed is acknowledged once it is read; whether such data waits, when data in order came last (never: [`OFF`]), and
    /// whether this side answers what comes, so that its data carries the ACKs.
    when_read: bool,
    pushed: bool,
    data_at: Nanos,
    answers: bool,
    /// Linux's estimate of the peer's segments, and the size of the last one that was smaller.
    peer_mss: u32,
    small_bytes: u32,
    /// The most segments that are acknowledged at once one after the other, and how many of them are left.
    quick_max: u32,
    quick: u32,
    /// ACKs due at once.
    due: u32,
    /// Whether a due ACK must not ride on data, since it is to be counted as a duplicate.
    alone: bool,
    /// The highest ACK sent (RFC 7323, Last.ACK.sent).
    last_ack_sent: u64,
    /// Right edge of the window last advertised.
    edge: u64,
    /// The shift of the windows that we send.
    shift: u8,
    /// The timestamp to echo (RFC 7323, TS.Recent) and the highest seen.
    echo: Nanos,
    highest_timestamp: Nanos,
    /// An ACK is due because reading has opened the window.
    window_update: bool,
    /// The window to advertise where somebody else owns the buffer.
    granted: Option<u64>,
    /// Data that has arrived twice, to be reported once (RFC 2883); whether that is done at all.
    duplicate: Option<(u64, u64)>,
    reports_duplicates: bool,
    /// The ACKs that are due where disorder of the connection raises duplicates as in ns-3's MPTCP.
    held_acks: Option<Box<HeldAcks>>,
    /// `next` may not go beyond: what is in order up to here is not in order for the connection that holds it back.
    hold: u64,
}

impl Receiver {
    /// Expect byte 1 (the SYN is the endpoint's).
    pub fn new(config: &Config) -> Self {
        Self {
            buffer_bytes: u64::from(config.receive_buffer_bytes),
            mss: u64::from(config.mss_bytes),
            delay_segments: config.delayed_ack_segments,
            delay_timeout: config.delayed_ack_timeout.min(SECOND / 2),
            next: 0,
            read: 1,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            fin_at: None,
            fin_received: false,
            reported: [0; MAX_SACK_BLOCKS],
            unacknowledged: 0,
            delayed_until: OFF,
            when_read: config.acks.when_read,
            pushed: false,
            data_at: OFF,
            answers: false,
            peer_mss: config.mss_bytes.min(DEFAULT_MSS_BYTES),
            small_bytes: 0,
            quick_max: (config.receive_buffer_bytes / config.mss_bytes / 2)
                .max(2)
                .min(config.acks.quick),
            quick: 0,
            due: 0,
            alone: false,
            last_ack_sent: 0,
            edge: 1,
            shift: 0,
            echo: 0,
            highest_timestamp: 0,
            window_update: false,
            granted: None,
            duplicate: None,
            reports_duplicates: config.dsack,
            held_acks: None,
            hold: u64::MAX,
        }
    }

    /// The next sequence number expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Take the peer's SYN.
    pub fn on_syn(&mut self) {
        self.next = 1;
    }

    /// Use the window shift that both sides agreed on.
    pub fn set_shift(&mut self, shift: u8) {
        self.shift = shift;
    }

    /// The shift that this buffer needs (RFC 7323, 2.3).
    pub fn wanted_shift(&self) -> u8 {
        (0..14)
            .find(|&shift| self.buffer_bytes >> shift <= 65_535)
            .unwrap_or(14)
    }

    /// Advertise this window from now on: the buffer is shared with others, and its owner says what is free.
    pub fn grant(&mut self, window_bytes: u64) {
        self.granted = Some(window_bytes);
        self.peer_mss = (self.mss as u32 + MptcpKind::Mapping.bytes()).min(DEFAULT_MSS_BYTES);
    }

    /// Acknowledge nothing from `sequence` on, in order or not; what this sets free is acknowledged at once:
    /// whether that is anything.
    pub fn hold_from(&mut self, sequence: u64) -> bool {
        self.hold = sequence;
        let before = self.next;
        self.join();
        if self.next == before {
            return false;
        }
        match &mut self.held_acks {
            Some(acks) => acks.on_release(before, self.next),
            None => self.acknowledge_now(!self.ahead.is_empty()),
        }
        true
    }

    /// Acknowledge from now on as subflows of ns-3's MPTCP do.
    pub fn acknowledge_by(&mut self, acks: HeldAcks) {
        self.held_acks = Some(Box::new(acks));
    }

    /// The next of the ACKs that are due in the manner of ns-3's MPTCP.
    pub fn next_held_ack(&mut self) -> Option<HeldAck> {
        self.held_acks.as_mut()?.pop()
    }

    /// Bytes in order and not read.
    pub fn readable(&self) -> u64 {
        (self.next - u64::from(self.fin_received)).saturating_sub(self.read)
    }

    /// Bytes that wait for earlier ones.
    pub fn ahead_bytes(&self) -> u64 {
        self.ahead_bytes
    }

    /// Whether the peer's FIN has arrived in order.
    pub fn finished(&self) -> bool {
        self.fin_received
    }

    /// Read up to `max` bytes; remember a window update if the peer may be waiting for it.
    pub fn read(&mut self, max: u64) -> u64 {
        let bytes = self.readable().min(max);
        self.read += bytes;
        let open = self.edge.saturating_sub(self.next);
        if bytes > 0
            && self.granted.is_none()
            && 2 * open <= self.buffer_bytes
            && self.right_edge().saturating_sub(self.next) >= (2 * open).max(1)
        {
            self.window_update = true;
        }
        if self.granted.is_none() && self.readable() == 0 {
            self.acknowledge_read();
        }
        bytes
    }

    /// The application has read all that has arrived: whether an ACK is due for that (Linux, `tcp_cleanup_rbuf`).
    pub fn acknowledge_read(&mut self) -> bool {
        let is_due = self.pushed && !self.answers && self.due == 0;
        if is_due {
            self.acknowledge_now(false);
        }
        is_due
    }

    /// RFC 7323, 4.3: which timestamp to echo. `strict`: only of the segment expected next.
    pub fn note_timestamp(&mut self, sequence: u64, timestamp: Nanos, strict: bool) {
        if timestamp < self.highest_timestamp {
            return;
        }
        self.highest_timestamp = timestamp;
        if sequence <= self.last_ack_sent && (!strict || sequence == self.next) {
            self.echo = timestamp;
        }
    }

    /// The timestamp to echo.
    pub fn echo(&self) -> Nanos {
        self.echo
    }

    /// Take a segment's data and FIN; after a longer `pause` the peer is taken to begin slow start.
    pub fn on_data(
        &mut self,
        now: Nanos,
        segment: &Segment,
        pause: Nanos,
        statistics: &mut Statistics,
    ) {
        let start = segment.sequence;
        let payload_end = start + u64::from(segment.payload_bytes);
        if segment.fin {
            self.fin_at = Some(payload_end);
        }
        let expected = self.next;
        let buffered = match self.granted {
            Some(_) => u64::MAX,
            None => self.read + self.buffer_bytes,
        };
        let limit = self.fin_at.unwrap_or(u64::MAX).min(buffered);
        let fresh = segment.payload_bytes > 0 && self.store(start, payload_end.min(limit));
        if self.reports_duplicates && !fresh && segment.payload_bytes > 0 && payload_end <= limit {
            self.duplicate = Some((start, payload_end));
        }
        self.count(segment, fresh, start > expected, statistics);
        let fin_now = !self.fin_received && self.fin_at == Some(self.next);
        if fin_now {
            self.fin_received = true;
            self.next += 1;
        }
        statistics.bytes_received = self.next - 1 - u64::from(self.fin_received);
        if let (Some(acks), false) = (&mut self.held_acks, segment.fin) {
            return acks.on_data(segment, fresh, [expected, self.next]);
        }
        if segment.payload_bytes > 0 && (!fresh || self.next > expected) {
            self.note_begin(now, fresh, pause);
        }
        let filled_gap = self.next > payload_end.max(expected) + u64::from(fin_now);
        if !fresh || fin_now || filled_gap || !self.ahead.is_empty() {
            // RFC 5681, 4.2: at once for what is out of order, fills a gap or is old; RFC 9293, 3.10.7.4: and for a FIN.
            self.acknowledge_now(!fresh || !self.ahead.is_empty());
        } else {
            self.pushed |= self.when_read && self.is_pushed(segment);
            self.acknowledge_later(now);
        }
    }

    /// Linux, `tcp_measure_rcv_mss`: whether the peer waits for an ACK. Segments of one size below the estimate become the estimate, with
    /// MPTCP's option if there is one, and are never taken for pushed.
    fn is_pushed(&mut self, segment: &Segment) -> bool {
        let last = std::mem::take(&mut self.small_bytes);
        if segment.payload_bytes >= self.peer_mss {
            self.peer_mss = segment.payload_bytes;
            return segment.push;
        }
        let bytes = segment.payload_bytes + OptionLayout::Aligned.bytes(segment);
        if bytes >= DEFAULT_MSS_BYTES || (bytes >= MIN_MSS_BYTES && !segment.push) {
            let timestamps = segment.timestamps.map_or(0, |_| 12);
            self.small_bytes = bytes - timestamps;
            if self.small_bytes == last {
                self.peer_mss = last;
                return false;
            }
        }
        true
    }

    /// Linux, `tcp_event_data_recv` and `tcp_enter_quickack_mode`: the peer begins slow start, or sends again for want of an ACK.
    fn note_begin(&mut self, now: Nanos, fresh: bool, pause: Nanos) {
        let begins = self.data_at == OFF || (self.when_read && now - self.data_at > pause);
        if !fresh {
            self.answers = false;
        }
        if begins || (self.when_read && !fresh) {
            self.quick = self.quick_max;
        }
        if fresh {
            self.data_at = now;
        }
    }

    fn count(
        &self,
        segment: &Segment,
        fresh: bool,
        out_of_order: bool,
        statistics: &mut Statistics,
    ) {
        if segment.payload_bytes == 0 {
            return;
        }
        statistics.data_segments_received += 1;
        statistics.out_of_order_segments += u64::from(fresh && out_of_order);
        statistics.duplicate_segments += u64::from(!fresh);
        statistics.reassembly_max_bytes = statistics.reassembly_max_bytes.max(self.ahead_bytes);
    }

    /// An ACK is due now; `alone`: as a segment of its own.
    pub fn acknowledge_now(&mut self, alone: bool) {
        self.due += 1;
        self.alone |= alone;
    }

    /// RFC 5681, 4.2: an ACK for at least each second segment, and within the timeout.
    fn acknowledge_later(&mut self, now: Nanos) {
        self.unacknowledged += 1;
        let is_quick = self.quick > 0 && !self.answers;
        if is_quick || self.unacknowledged >= self.delay_segments {
            self.acknowledge_now(is_quick && self.when_read);
        } else if self.delayed_until == OFF {
            self.delayed_until = now + self.delay_timeout;
        }
    }

    /// When the delayed ACK is due; [`OFF`] if none.
    pub fn timer(&self) -> Nanos {
        self.delayed_until
    }

    /// Let the delayed ACK become due.
    pub fn on_timer(&mut self, now: Nanos) {
        if now >= self.delayed_until {
            self.delayed_until = OFF;
            self.answers = false;
            self.acknowledge_now(false);
        }
    }

    /// Whether an ACK must leave, and whether it must leave without data.
    pub fn ack_due(&self) -> (bool, bool) {
        let held = self.held_acks.as_ref().is_some_and(|acks| !acks.is_empty());
        (
            self.due > 0 || self.window_update || held,
            self.alone || held,
        )
    }

    /// Account for an ACK that leaves; `pure`: one of those that are due, else one that rides on data.
    pub fn on_ack_sent(&mut self, pure: bool) {
        if self.unacknowledged > 0 || self.due > 0 {
            self.quick = self.quick.saturating_sub(1);
        }
        self.due = if pure { self.due.saturating_sub(1) } else { 0 };
        self.alone &= self.due > 0;
        self.unacknowledged = 0;
        self.delayed_until = OFF;
        self.pushed = false;
        self.window_update = false;
        self.last_ack_sent = self.next;
    }

    /// Data leaves from this side: soon after data came it answers.
    pub fn on_data_sent(&mut self, now: Nanos) {
        self.answers |=
            self.when_read && self.data_at != OFF && now - self.data_at < self.delay_timeout;
    }

    /// Where the window ends. RFC 9293, 3.8.6.2.2: it moves by whole segments (or half of the buffer), against silly windows.
    fn right_edge(&self) -> u64 {
        let wanted = self.read + self.buffer_bytes;
        if wanted >= self.edge + self.mss.min(self.buffer_bytes / 2) {
            wanted
        } else {
            self.edge.max(self.next)
        }
    }

    /// The window to advertise in bytes, as the field and the shift can say it; `syn`: unscaled (RFC 7323, 2.2).
    pub fn advertise(&mut self, syn: bool) -> u64 {
        let shift = if syn { 0 } else { self.shift };
        if let Some(window) = self.granted {
            return (window >> shift).min(65_535) << shift;
        }
        self.edge = self.right_edge();
        let window = ((self.edge - self.next) >> shift).min(65_535) << shift;
        self.edge = self.edge.min(self.next + window);
        window
    }

    /// Store `start..end`; false if there is nothing new in it.
    fn store(&mut self, start: u64, end: u64) -> bool {
        let start = start.max(self.next);
        if start >= end {
            return false;
        }
        if start == self.next && end <= self.hold {
            self.next = end;
            self.join();
            return true;
        }
        self.reported.rotate_right(1);
        self.reported[0] = start;
        let new_bytes = insert_range(&mut self.ahead, start, end);
        self.ahead_bytes += new_bytes.unwrap_or(0);
        new_bytes.is_some()
    }

    /// Take over what follows `next` without a gap.
    fn join(&mut self) {
        while let Some(&(start, end)) = self.ahead.front() {
            if start > self.next || end > self.hold {
                return self.join_part();
            }
            self.next = self.next.max(end);
            self.ahead_bytes -= end - start;
            self.ahead.pop_front();
        }
    }

    /// Take over of the first range what is not held back.
    fn join_part(&mut self) {
        let Some(first) = self.ahead.front_mut() else {
            return;
        };
        if first.0 <= self.next && self.hold > self.next {
            self.ahead_bytes -= self.hold - first.0;
            first.0 = self.hold;
            self.next = self.hold;
        }
    }

    /// The SACK blocks of an ACK, at most `most`: the one last added to first, then those last reported (RFC 2018, 4).
    pub fn sack_blocks(&mut self, most: usize) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        if let (true, Some(duplicate)) = (most > 0, self.duplicate.take()) {
            self.report_duplicate(&mut blocks, duplicate, most);
        }
        if self.ahead.is_empty() {
            return blocks;
        }
        for &number in &self.reported {
            let index = self.ahead.partition_point(|range| range.1 <= number);
            if let Some(&range) = self.ahead.get(index) {
                let known = blocks.iter(self.next).any(|block| block == range);
                // A range at `next` is held back, which is not for SACK to tell.
                let apart = range.0 > self.next;
                if range.0 <= number && apart && !known && blocks.len() < most {
                    blocks.push(self.next, range);
                }
            }
        }
        blocks
    }

    /// RFC 2883, 4: what has arrived twice comes first, and if it lies ahead the range that it is in comes next.
    fn report_duplicate(&self, blocks: &mut SackBlocks, duplicate: (u64, u64), most: usize) {
        let around = self
            .ahead
            .iter()
            .find(|range| range.0 <= duplicate.0 && duplicate.1 <= range.1);
        match around {
            None if duplicate.0 >= self.next => {}
            Some(&range) if range.0 > self.next => {
                blocks.push(self.next, duplicate);
                if most > 1 {
                    blocks.push(self.next, range);
                }
            }
            _ => blocks.push(self.next, duplicate),
        }
    }
}

/// Add a range to disjoint, ascending ones that are never adjacent: how many bytes are new; none if the range is in one of them.
pub(crate) fn insert_range(ranges: &mut VecDeque<(u64, u64)>, start: u64, end: u64) -> Option<u64> {
    let from = ranges.partition_point(|range| range.1 < start);
    let to = ranges.partition_point(|range| range.0 <= end);
    let mut merged = (start, end);
    let mut covered = 0;
    for &(first, last) in ranges.range(from..to) {
        if first <= start && last >= end {
            return None;
        }
        merged = (merged.0.min(first), merged.1.max(last));
        covered += last - first;
    }
    if to > from {
        ranges[from] = merged;
        ranges.drain(from + 1..to);
    } else {
        ranges.insert(from, merged);
    }
    Some(merged.1 - merged.0 - covered)
}
