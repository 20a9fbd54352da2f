//! Traces: a row of CSV for each packet on each link, and pcap files of what hosts send and receive.
//!
//! Both are made as the run goes and taken away piece by piece, so that memory does not grow with the run.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::Ipv4Addr;

use serde::Deserialize;

use crate::hosts::{Hosts, Side};
use crate::link::{DropReason, SendOutcome};
use crate::packet::Content;
use crate::tcp::options::OptionLayout;
use crate::tcp::Segment;
use crate::time::{Nanos, SECOND};

/// The name of the rows among the pieces.
pub const ROWS: &str = "packets.csv";
/// The first line of the rows.
pub const HEADER: &str =
    "time_s,link,packet,flow,stream,direction,flags,sequence,acknowledgement,payload_bytes,\
packet_bytes,window_bytes,resent,fate,arrival_s\n";

const SERVER_PORT: u16 = 5001;
const FIRST_CLIENT_PORT: u16 = 49_152;
const CLIENT_PORTS: u32 = 16_384;
const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
/// Packets with a time in nanoseconds, link type Ethernet, whole headers kept.
const PCAP_MAGIC: u32 = 0xa1b2_3c4d;
const PCAP_ETHERNET: u32 = 1;
const SNAPSHOT_BYTES: u32 = 65_535;

/// What is to be traced.
#[derive(Debug, Clone, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub struct TraceDescription {
    /// A row of CSV for each packet on each link.
    pub rows: bool,
    /// Hosts of which a pcap file is made, with the addresses of all hosts that they speak with.
    pub captures: BTreeMap<String, Ipv4Addr>,
}

/// One end of a TCP connection, as the packets that it sends show it.
#[derive(Debug, Clone, Copy)]
struct TraceEndpoint {
    flow: u32,
    stream: u16,
    side: Side,
    /// Index of its capture, if its host has one.
    capture: Option<usize>,
    address: Ipv4Addr,
    port: u16,
    /// What its SYN offered to shift its windows by.
    shift: u8,
    scales: bool,
    layout: OptionLayout,
}

/// The traces of a run.
#[derive(Debug)]
pub struct Trace {
    rows: Option<String>,
    captures: Vec<(String, Vec<u8>)>,
    flows: Vec<String>,
    links: Vec<String>,
    ends: Vec<TraceEndpoint>,
    peers: Vec<u32>,
    /// Number of each packet in flight, by its index in the arena.
    numbers: Vec<u64>,
    sent: u64,
}

impl Trace {
    /// The traces of a run whose flows are `(name, source, destination)`, and whose links have these names.
    pub fn new(
        description: &TraceDescription,
        hosts: &Hosts,
        flows: &[(String, String, String)],
        links: Vec<String>,
    ) -> Self {
        let mut captures: Vec<(String, Vec<u8>)> = Vec::new();
        for name in description.captures.keys() {
            captures.push((name.clone(), pcap_header()));
        }
        let place = |node: &str| captures.iter().position(|(name, _)| name == node);
        let ends = hosts.all().iter().enumerate().map(|(index, host)| {
            let (_, source, destination) = &flows[host.flow as usize];
            let client = (index as u32).min(host.peer);
            let (node, port) = match host.side {
                Side::Client => (
                    source,
                    FIRST_CLIENT_PORT + (client / 2 % CLIENT_PORTS) as u16,
                ),
                Side::Server => (destination, SERVER_PORT),
            };
            TraceEndpoint {
                flow: host.flow,
                stream: host.stream,
                side: host.side,
                capture: place(node),
                address: description
                    .captures
                    .get(node)
                    .copied()
                    .unwrap_or(Ipv4Addr::UNSPECIFIED),
                port,
                shift: 0,
                scales: false,
                layout: host.tcp.option_layout(),
            }
        });
        Self {
            rows: description.rows.then(|| HEADER.to_owned()),
            ends: ends.collect(),
            peers: hosts.all().iter().map(|host| host.peer).collect(),
            captures,
            flows: flows.iter().map(|(name, _, _)| name.clone()).collect(),
            links,
            numbers: Vec::new(),
            sent: 0,
        }
    }

    /// Take what has been written since the last time: name of the file and its next bytes.
    pub fn take(&mut self) -> Vec<(String, Vec<u8>)> {
        let rows = self.rows.as_mut().map(std::mem::take);
        let mut pieces: Vec<(String, Vec<u8>)> = Vec::new();
        pieces.extend(rows.map(|rows| (ROWS.to_owned(), rows.into_bytes())));
        for (name, bytes) in &mut self.captures {
            pieces.push((format!("{name}.pcap"), std::mem::take(bytes)));
        }
        pieces.retain(|(_, bytes)| !bytes.is_empty());
        pieces
    }

    /// A host sends a packet, which has got this place in the arena.
    pub fn on_sent(&mut self, now: Nanos, packet: u32, content: &Content) {
        let index = packet as usize;
        if index >= self.numbers.len() {
            self.numbers.resize(index + 1, 0);
        }
        self.numbers[index] = self.sent;
        self.sent += 1;
        if let Content::Tcp { endpoint, segment } = content {
            let sender = self.peers[*endpoint as usize];
            if segment.syn {
                let end = &mut self.ends[sender as usize];
                end.scales = segment.options.window_scale.is_some();
                end.shift = segment.options.window_scale.unwrap_or(0);
            }
            self.capture(
                self.ends[sender as usize].capture,
                now,
                [sender, *endpoint],
                segment,
            );
        }
    }

    /// A packet has reached its host.
    pub fn on_delivered(&mut self, now: Nanos, content: &Content) {
        if let Content::Tcp { endpoint, segment } = content {
            let sender = self.peers[*endpoint as usize];
            self.capture(
                self.ends[*endpoint as usize].capture,
                now,
                [sender, *endpoint],
                segment,
            );
        }
    }

    /// A link was given a packet of `bytes`.
    pub fn on_link(
        &mut self,
        now: Nanos,
        link: u32,
        packet: u32,
        content: &Content,
        bytes: u32,
        verdict: SendOutcome,
    ) {
        let Some(rows) = &mut self.rows else {
            return;
        };
        let number = self.numbers[packet as usize];
        let link = &self.links[link as usize];
        push_time(rows, now);
        let written = match content {
            Content::Tcp { endpoint, segment } => {
                let end = &self.ends[self.peers[*endpoint as usize] as usize];
                let direction = match end.side {
                    Side::Client => "forward",
                    Side::Server => "back",
                };
                let acknowledgement = segment
                    .acknowledgement
                    .map_or_else(String::new, |number| number.to_string());
                write!(
                    rows,
                    ",{link},{number},{},{},{direction},{},{},{acknowledgement},{},{bytes},{},{},",
                    quoted(&self.flows[end.flow as usize]),
                    end.stream,
                    flags_text(segment),
                    segment.sequence,
                    segment.payload_bytes,
                    segment.window_bytes,
                    u8::from(segment.retransmission),
                )
            }
            Content::Datagram {
                flow,
                payload_bytes,
                ..
            } => write!(
                rows,
                ",{link},{number},{},0,forward,,,,{payload_bytes},{bytes},,,",
                quoted(&self.flows[*flow as usize])
            ),
        };
        debug_assert!(written.is_ok(), "a string takes all that is written");
        match verdict {
            SendOutcome::Arrives(time) => {
                rows.push_str("arrives,");
                push_time(rows, time);
            }
            SendOutcome::Dropped(DropReason::QueueFull) => rows.push_str("queue_full,"),
            SendOutcome::Dropped(DropReason::Lost) => rows.push_str("lost,"),
            SendOutcome::Dropped(DropReason::Down) => rows.push_str("down,"),
            SendOutcome::Shared(_) => unreachable!("the medium says what became of it"),
        }
        rows.push('\n');
    }

    /// Write a segment from the first end to the other into a capture.
    fn capture(
        &mut self,
        place: Option<usize>,
        now: Nanos,
        [sender, receiver]: [u32; 2],
        segment: &Segment,
    ) {
        let Some(place) = place else {
            return;
        };
        let [from, to] = [sender, receiver].map(|end| self.ends[end as usize]);
        // Windows are shifted once both SYNs have offered it (RFC 7323, 2.2), never those of SYNs.
        let shift = if from.scales && to.scales && !segment.syn {
            from.shift
        } else {
            0
        };
        let headers = headers(&from, &to, segment, shift);
        let whole = headers.len() as u32 + segment.payload_bytes;
        let out = &mut self.captures[place].1;
        for word in [
            (now / SECOND) as u32,
            (now % SECOND) as u32,
            headers.len() as u32,
            whole,
        ] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&headers);
    }
}

fn pcap_header() -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend_from_slice(&PCAP_MAGIC.to_le_bytes());
    bytes.extend_from_slice(&2u16.to_le_bytes());
    bytes.extend_from_slice(&4u16.to_le_bytes());
    for word in [0, 0, SNAPSHOT_BYTES, PCAP_ETHERNET] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// Ethernet, IPv4 and TCP header of a segment; its data is taken for zeros.
fn headers(from: &TraceEndpoint, to: &TraceEndpoint, segment: &Segment, shift: u8) -> Vec<u8> {
    let options = from.layout.encode(segment);
    let tcp_bytes = 20 + options.len();
    let ip_bytes = (IPV4_BYTES + tcp_bytes) as u32 + segment.payload_bytes;
    let mut out = Vec::with_capacity(ETHERNET_BYTES + IPV4_BYTES + tcp_bytes);
    for end in [to, from] {
        out.extend_from_slice(&[2, 0]);
        out.extend_from_slice(&end.address.octets());
    }
    out.extend_from_slice(&[0x08, 0x00]);

    let ip = out.len();
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&(ip_bytes as u16).to_be_bytes());
    out.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0]);
    out.extend_from_slice(&from.address.octets());
    out.extend_from_slice(&to.address.octets());
    let sum = checksum(0, &out[ip..]);
    out[ip + 10..ip + 12].copy_from_slice(&sum.to_be_bytes());

    let tcp = out.len();
    let window = (segment.window_bytes >> shift).min(0xffff) as u16;
    out.extend_from_slice(&from.port.to_be_bytes());
    out.extend_from_slice(&to.port.to_be_bytes());
    out.extend_from_slice(&(segment.sequence as u32).to_be_bytes());
    out.extend_from_slice(&(segment.acknowledgement.unwrap_or(0) as u32).to_be_bytes());
    out.extend_from_slice(&[(tcp_bytes as u8 / 4) << 4, flags(segment)]);
    out.extend_from_slice(&window.to_be_bytes());
    out.extend_from_slice(&[0, 0, 0, 0]);
    out.extend_from_slice(&options);
    let length = tcp_bytes as u32 + segment.payload_bytes;
    let addresses = [from.address, to.address].map(u32::from);
    let pseudo = addresses
        .iter()
        .map(|word| (word >> 16) + (word & 0xffff))
        .sum::<u32>()
        + 6
        + length;
    let sum = checksum(pseudo, &out[tcp..]);
    out[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
    out
}

fn flags(segment: &Segment) -> u8 {
    u8::from(segment.fin)
        | u8::from(segment.syn) << 1
        | u8::from(segment.rst) << 2
        | u8::from(segment.payload_bytes > 0) << 3
        | u8::from(segment.acknowledgement.is_some()) << 4
}

fn flags_text(segment: &Segment) -> String {
    let flags = flags(segment);
    "FSRPA"
        .chars()
        .enumerate()
        .filter(|(bit, _)| flags >> bit & 1 == 1)
        .map(|(_, letter)| letter)
        .collect()
}

/// The Internet checksum (RFC 1071) of an even number of bytes, on top of `sum`.
fn checksum(sum: u32, bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum = sum + words.sum::<u32>();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    !(sum as u16)
}

fn push_time(rows: &mut String, time: Nanos) {
    let written = write!(rows, "{}.{:09}", time / SECOND, time % SECOND);
    debug_assert!(written.is_ok(), "a string takes all that is written");
}

/// A name as a field of CSV (RFC 4180).
fn quoted(name: &str) -> std::borrow::Cow<'_, str> {
    if name.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", name.replace('"', "\"\"")).into()
    } else {
        name.into()
    }
}
