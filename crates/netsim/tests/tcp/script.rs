//! Scripted packet sequences in the manner of packetdrill: inject a segment, expect segments, look at the state.
//!
//! A script has one step a line; `#` begins a comment. A step begins with a time in milliseconds: `120` since the start or `+20` since
//! the step before. Then follows one of
//!
//! | step | meaning |
//! |---|---|
//! | `write 1000`, `read 1000`, `close` | the application's call |
//! | `< S. 0:1 ack 1 win 65535 <mss 536,sackOK,wscale 2,ts 1 0>` | the peer's segment arrives; `3x <` means three of them at once |
//! | `> . 1:537 ack 1 again` | the endpoint sends this segment now; `each 536` cuts a longer range into segments |
//! | `? cwnd 5360 phase Open` | the state is so |
//!
//! Flags are `S`, `F`, `R` and `.` (ACK); `first:end` are sequence numbers of data, end exclusive (SYN and FIN not counted). What `>`
//! does not mention (window, options, packet number) is not compared, apart from `again` and `disorder`. Every segment that the endpoint sends must be expected.

use std::collections::VecDeque;
use std::fmt::Write;

use netsim::tcp::segment::SynOptions;
use netsim::tcp::{Config, Endpoint, Segment};
use netsim::time::{Nanos, MILLISECOND};

/// An endpoint under a script.
pub struct Script {
    pub endpoint: Endpoint,
    now: Nanos,
    /// Sent and not yet expected.
    sent: VecDeque<(Nanos, Segment)>,
    log: String,
}

impl Script {
    /// A client whose SYN is due at time 0.
    pub fn client(config: Config) -> Self {
        Self::new(Endpoint::client(&config, 0))
    }

    /// A server that listens.
    pub fn server(config: Config) -> Self {
        Self::new(Endpoint::server(&config))
    }

    /// A client after a handshake that took no time, with a peer window of 65535 bytes.
    pub fn connected(config: Config) -> Self {
        let options = format!(
            "<mss {}{}>",
            config.mss_bytes,
            if config.sack { ",sackOK" } else { "" }
        );
        let (ts, echo) = if config.timestamps {
            (" ts 0 0", " ts 0 0")
        } else {
            ("", "")
        };
        let mut script = Self::client(config);
        script.run(&format!(
            "0 > S 0:0\n+0 < S. 0:0 ack 1 win 65535 {options}{ts}\n+0 > . 1:1 ack 1{echo}"
        ));
        script
    }

    /// A client after a handshake that has written and sent this many full segments, which are its window.
    pub fn with_out(config: Config, segments: u32) -> Self {
        let mss = config.mss_bytes;
        let mut script = Self::connected(Config {
            initial_window_segments: segments,
            ..config
        });
        let bytes = segments * mss;
        script.run(&format!(
            "0 write {bytes}\n+0 > . 1:{} ack 1 each {mss}",
            1 + bytes
        ));
        script
    }

    fn new(endpoint: Endpoint) -> Self {
        let mut script = Self {
            endpoint,
            now: 0,
            sent: VecDeque::new(),
            log: String::new(),
        };
        script.collect();
        script
    }

    /// Run the steps of `text`; panics with the history at the first that fails.
    pub fn run(&mut self, text: &str) -> &mut Self {
        for line in text.lines() {
            let step = line.split('#').next().unwrap_or("").trim();
            if !step.is_empty() {
                let _ = writeln!(self.log, "  {step}");
                self.step(step);
            }
        }
        if let Some((at, segment)) = self.sent.front() {
            let text = describe(segment);
            self.fail(&format!("sent and not expected at {}: {text}", millis(*at)));
        }
        self
    }

    /// Run one step without asking what it sends.
    pub fn inject(&mut self, step: &str) {
        self.sent.clear();
        let _ = writeln!(self.log, "  {step}");
        self.step(step);
    }

    /// What was sent and not expected since.
    pub fn take_sent(&mut self) -> Vec<Segment> {
        self.sent.drain(..).map(|(_, segment)| segment).collect()
    }

    fn fail(&self, reason: &str) -> ! {
        panic!(
            "{reason}\nscript so far:\n{}{:?} {:?}",
            self.log,
            self.endpoint.state(),
            self.endpoint.statistics()
        );
    }

    fn step(&mut self, step: &str) {
        let mut words = step.split_whitespace();
        let time = words.next().unwrap_or("");
        let at = match time.strip_prefix('+') {
            Some(more) => self.now + self.time(more),
            None => self.time(time),
        };
        self.advance(at);
        let mut rest: Vec<&str> = words.collect();
        let times = rest.first().and_then(|word| word.strip_suffix('x'));
        let times = times.map_or(1, |count| self.number(count));
        if times > 1 {
            rest.remove(0);
        }
        for _ in 0..times {
            self.act(&rest);
        }
        self.endpoint.check();
    }

    fn act(&mut self, rest: &[&str]) {
        match rest.first().copied().unwrap_or("") {
            ">" => self.expect_all(&rest[1..]),
            "?" => self.look(&rest[1..]),
            other => {
                if let Some((at, segment)) = self.sent.front() {
                    let text = describe(segment);
                    self.fail(&format!("sent and not expected at {}: {text}", millis(*at)));
                }
                match other {
                    "<" => {
                        let segment = self.parse(&rest[1..]).0;
                        self.endpoint.on_segment(self.now, &segment);
                    }
                    "write" => assert_eq!(
                        self.endpoint.write(self.now, self.number(rest[1]) as u32),
                        self.number(rest[1]) as u32
                    ),
                    "read" => assert_eq!(
                        self.endpoint.read(self.now, self.number(rest[1]) as u32),
                        self.number(rest[1]) as u32
                    ),
                    "close" => self.endpoint.close(self.now),
                    _ => self.fail("no such step"),
                }
                self.collect();
            }
        }
    }

    fn time(&self, text: &str) -> Nanos {
        match text.parse::<f64>() {
            Ok(millis) => (millis * MILLISECOND as f64).round() as Nanos,
            Err(_) => self.fail("a step begins with a time in ms"),
        }
    }

    fn number(&self, text: &str) -> u64 {
        text.parse()
            .unwrap_or_else(|_| self.fail(&format!("{text} is no number")))
    }

    /// Let timers expire up to `at`.
    fn advance(&mut self, at: Nanos) {
        while let Some(timer) = self.endpoint.next_timer().filter(|&timer| timer <= at) {
            self.now = self.now.max(timer);
            self.endpoint.on_timer(self.now);
            self.collect();
        }
        self.now = at;
    }

    fn collect(&mut self) {
        while let Some(segment) = self.endpoint.poll_transmit(self.now) {
            self.sent.push_back((self.now, segment));
        }
    }

    fn expect_all(&mut self, words: &[&str]) {
        let (mut expected, mentioned) = self.parse(words);
        let Some(each) = mentioned.each_bytes else {
            return self.expect(expected, &mentioned);
        };
        assert_eq!(expected.payload_bytes % each, 0, "whole segments");
        let count = expected.payload_bytes / each;
        expected.payload_bytes = each;
        for _ in 0..count {
            self.expect(expected, &mentioned);
            expected.sequence += u64::from(each);
        }
    }

    fn expect(&mut self, expected: Segment, mentioned: &Mentioned) {
        let Some((at, segment)) = self.sent.pop_front() else {
            self.fail("nothing was sent")
        };
        let seen = Segment {
            window_bytes: if mentioned.window {
                segment.window_bytes
            } else {
                0
            },
            timestamps: segment.timestamps.filter(|_| mentioned.timestamps),
            options: if mentioned.options {
                segment.options
            } else {
                SynOptions::default()
            },
            sack: if mentioned.sack {
                segment.sack
            } else {
                Default::default()
            },
            push: segment.push && expected.push,
            packet_number: if mentioned.number {
                segment.packet_number
            } else {
                0
            },
            ..segment
        };
        if at != self.now || seen != expected {
            let text = describe(&segment);
            self.fail(&format!("sent instead, at {}: {text}", millis(at)));
        }
    }

    fn parse(&self, words: &[&str]) -> (Segment, Mentioned) {
        let mut segment = Segment::default();
        let mut mentioned = Mentioned::default();
        let flags = words.first().copied().unwrap_or("");
        segment.syn = flags.contains('S');
        segment.fin = flags.contains('F');
        segment.rst = flags.contains('R');
        segment.push = flags.contains('P');
        let Some((first, end)) = words.get(1).and_then(|range| range.split_once(':')) else {
            self.fail("a range is missing")
        };
        segment.sequence = self.number(first);
        segment.payload_bytes = (self.number(end) - segment.sequence) as u32;
        let text = words[2..].join(" ").replace(['<', '>', ','], " ");
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let mut value = || self.number(words.next().unwrap_or(""));
            match word {
                "ack" => segment.acknowledgement = Some(value()),
                "win" => (segment.window_bytes, mentioned.window) = (value(), true),
                "ts" => {
                    segment.timestamps = Some((value() * MILLISECOND, value() * MILLISECOND));
                    mentioned.timestamps = true;
                }
                "mss" => (segment.options.mss_bytes, mentioned.options) = (value() as u32, true),
                "wscale" => {
                    (segment.options.window_scale, mentioned.options) = (Some(value() as u8), true)
                }
                "sackOK" => (segment.options.sack_permitted, mentioned.options) = (true, true),
                "again" => segment.retransmission = true,
                "each" => mentioned.each_bytes = Some(value() as u32),
                "number" => (segment.packet_number, mentioned.number) = (value() as u32, true),
                "disorder" => segment.out_of_order = true,
                "nosack" => mentioned.sack = true,
                "sack" => {
                    let ack = segment.acknowledgement.unwrap_or(0);
                    segment.sack.push(ack, (value(), value()));
                    mentioned.sack = true;
                }
                _ => self.fail(&format!("{word}: no such field")),
            }
        }
        (segment, mentioned)
    }

    fn look(&self, words: &[&str]) {
        let statistics = self.endpoint.statistics();
        for pair in words.chunks(2) {
            let seen = match pair[0] {
                "cwnd" => statistics.cwnd_bytes.to_string(),
                "ssthresh" => statistics.ssthresh_bytes.to_string(),
                "pipe" => statistics.pipe_bytes.to_string(),
                "rto" => millis(statistics.rto),
                "srtt" => statistics.srtt.map_or("none".to_string(), millis),
                "phase" => format!("{:?}", statistics.phase),
                "state" => format!("{:?}", self.endpoint.state()),
                "timeouts" => statistics.timeouts.to_string(),
                "retransmits" => statistics.retransmits.to_string(),
                "undone" => statistics.undone_reductions.to_string(),
                "duplicates" => statistics.duplicate_acks.to_string(),
                "readable" => self.endpoint.readable().to_string(),
                "free" => self.endpoint.send_buffer_free().to_string(),
                "failed" => self.endpoint.has_failed().to_string(),
                other => self.fail(&format!("{other}: no such state")),
            };
            if Some(&seen.as_str()) != pair.get(1) {
                self.fail(&format!("{} is {seen}", pair[0]));
            }
        }
    }
}

#[derive(Default)]
struct Mentioned {
    window: bool,
    timestamps: bool,
    options: bool,
    sack: bool,
    number: bool,
    each_bytes: Option<u32>,
}

fn millis(time: Nanos) -> String {
    (time as f64 / MILLISECOND as f64).to_string()
}

/// A segment in the words of a script.
fn describe(segment: &Segment) -> String {
    let mut text = String::new();
    for (flag, letter) in [
        (segment.syn, 'S'),
        (segment.fin, 'F'),
        (segment.rst, 'R'),
        (segment.acknowledgement.is_some(), '.'),
    ] {
        if flag {
            text.push(letter);
        }
    }
    let _ = write!(
        text,
        " {}:{}",
        segment.sequence,
        segment.sequence + u64::from(segment.payload_bytes)
    );
    if let Some(ack) = segment.acknowledgement {
        let _ = write!(text, " ack {ack}");
    }
    let _ = write!(text, " win {}", segment.window_bytes);
    for (start, end) in segment.sack_blocks() {
        let _ = write!(text, " sack {start} {end}");
    }
    if let Some((value, echo)) = segment.timestamps {
        let _ = write!(text, " ts {} {}", millis(value), millis(echo));
    }
    if segment.syn {
        let _ = write!(text, " {:?}", segment.options);
    }
    if segment.retransmission {
        text.push_str(" again");
    }
    if segment.packet_number > 0 {
        let _ = write!(text, " number {}", segment.packet_number);
    }
    if segment.out_of_order {
        text.push_str(" disorder");
    }
    text
}
