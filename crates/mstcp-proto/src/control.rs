//! Control frames.
//!
//! | type | name | body |
//! |---|---|---|
//! | 1 | FIN | 64 bits: how many bytes the application sent in all |
//! | 2 | ACK | 64 bits: the next byte awaited (one more once the FIN is complete); 64 bits: the first byte that may not be sent yet; then for each stream that brought frames since the last ACK 32 bits of stream id and 64 bits: data frames received on it |
//! | 3 | LAST | empty: nothing follows on this stream |
//! | 4 | CLOSE | 16 bits: error code; then up to 256 bytes of UTF-8 for people |
//! | 5 | PING | 64 bits that come back in a PONG |
//! | 6 | PONG | 64 bits |
//! | 7 | CONFIRM | 32 bytes: the proof that the client read the answer; its first frame on every stream |
//! | 8 | SEEN | for streams 32 bits of stream id and 64 bits: ACK frames received on it |
//! | 9 | GONE | 32 bits: the id of a stream that this side gave up |
//! | 10 | STATUS | 32 bits of stream id, 32 bits: its priority from now on |
//! | 11 | ADDRESSES | 32 bits: a number that rises; then for addresses 128 bits of IPv6 address (IPv4's are mapped) and 16 bits of port: where the server accepts further streams |
//!
//! Frames of other types are skipped, so that later versions can add some.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use crate::error::RemoteError;
use crate::frame::{be, OFFSET_LIMIT};
use crate::hello::{MAX_PRIORITY, PROOF_BYTES};
use crate::MAX_STREAMS;

const FIN: u64 = 1;
const ACK: u64 = 2;
const LAST: u64 = 3;
const CLOSE: u64 = 4;
const PING: u64 = 5;
const PONG: u64 = 6;
const CONFIRM: u64 = 7;
const SEEN: u64 = 8;
const GONE: u64 = 9;
const STATUS: u64 = 10;
const ADDRESSES: u64 = 11;

const ACK_FIXED_BYTES: usize = 16;
/// A stream's id and a count.
const COUNT_BYTES: usize = 12;
const MAX_REASON_BYTES: usize = 256;
const NUMBER_BYTES: usize = 4;
/// An IPv6 address and a port.
const ADDRESS_BYTES: usize = 18;
/// The most addresses that a server may announce.
pub const MAX_ADDRESSES: usize = 16;

/// Why a connection is closed before its end, as the wire has it.
pub mod code {
    /// The application gave it up.
    pub const ABORTED: u16 = 0;
    /// The peer broke the protocol.
    pub const PROTOCOL_ERROR: u16 = 1;
    /// None of the peer's versions is spoken here.
    pub const UNSUPPORTED_VERSION: u16 = 2;
    /// A stream wants to join a connection that is not here (any more).
    pub const UNKNOWN_CONNECTION: u16 = 3;
    /// A stream's proof is wrong, or its id was used before.
    pub const NOT_AUTHORISED: u16 = 4;
    /// There are too many streams, connections or hellos.
    pub const LIMIT_EXCEEDED: u16 = 5;
    /// No stream came back in time.
    pub const TIMED_OUT: u16 = 6;
}

/// A control frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// The end of the application's bytes.
    Fin {
        /// How many there are.
        total_bytes: u64,
    },
    /// What has arrived and what may come.
    Ack {
        /// The next byte awaited; one more once all bytes and the FIN are there.
        received: u64,
        /// The first byte that may not be sent yet.
        limit: u64,
        /// Stream ids and the data frames received on them.
        streams: Vec<(u32, u64)>,
    },
    /// Nothing follows on this stream.
    Last,
    /// The connection is given up.
    Close {
        /// See [`code`].
        code: u16,
        /// For people.
        reason: String,
    },
    /// To be answered.
    Ping(u64),
    /// The answer.
    Pong(u64),
    /// The client has read the stream's answer; see [`crate::handshake`].
    Confirm([u8; PROOF_BYTES]),
    /// Which acknowledgements have come: stream ids and the ACK frames received on them.
    Seen(Vec<(u32, u64)>),
    /// This side gave the stream of this id up.
    Gone(u32),
    /// A stream's priority from now on, both directions.
    Status {
        /// The stream's id.
        id: u32,
        /// Streams of the lowest value that work are used; 0 to 255.
        priority: u32,
    },
    /// Where the server accepts further streams.
    Addresses {
        /// What has a lower one is older.
        number: u32,
        /// All of them; those that were announced before and are missing are withdrawn.
        addresses: Vec<SocketAddr>,
    },
}

impl Control {
    /// Append the body to `out`; return the type.
    pub(crate) fn encode_body(&self, out: &mut Vec<u8>) -> u64 {
        match self {
            Self::Fin { total_bytes } => {
                out.extend_from_slice(&total_bytes.to_be_bytes());
                FIN
            }
            Self::Ack {
                received,
                limit,
                streams,
            } => {
                out.extend_from_slice(&received.to_be_bytes());
                out.extend_from_slice(&limit.to_be_bytes());
                put_counts(out, streams);
                ACK
            }
            Self::Last => LAST,
            Self::Close { code, reason } => {
                out.extend_from_slice(&code.to_be_bytes());
                let mut end = reason.len().min(MAX_REASON_BYTES);
                while !reason.is_char_boundary(end) {
                    end -= 1;
                }
                out.extend_from_slice(&reason.as_bytes()[..end]);
                CLOSE
            }
            Self::Ping(token) => {
                out.extend_from_slice(&token.to_be_bytes());
                PING
            }
            Self::Pong(token) => {
                out.extend_from_slice(&token.to_be_bytes());
                PONG
            }
            Self::Confirm(proof) => {
                out.extend_from_slice(proof);
                CONFIRM
            }
            Self::Seen(streams) => {
                put_counts(out, streams);
                SEEN
            }
            Self::Gone(id) => {
                out.extend_from_slice(&id.to_be_bytes());
                GONE
            }
            Self::Status { id, priority } => {
                out.extend_from_slice(&id.to_be_bytes());
                out.extend_from_slice(&priority.to_be_bytes());
                STATUS
            }
            Self::Addresses { number, addresses } => {
                out.extend_from_slice(&number.to_be_bytes());
                for address in addresses {
                    let ip = match address.ip() {
                        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                        IpAddr::V6(ip) => ip,
                    };
                    out.extend_from_slice(&ip.octets());
                    out.extend_from_slice(&address.port().to_be_bytes());
                }
                ADDRESSES
            }
        }
    }

    /// Decode a body; none if the type is not known.
    pub(crate) fn decode(kind: u64, body: &[u8]) -> Result<Option<Self>, RemoteError> {
        let fits = match kind {
            FIN | PING | PONG => body.len() == 8,
            ACK => body.len() >= ACK_FIXED_BYTES && is_counts(&body[ACK_FIXED_BYTES..]),
            CONFIRM => body.len() == PROOF_BYTES,
            SEEN => is_counts(body),
            GONE => body.len() == 4,
            STATUS => body.len() == 8,
            LAST => body.is_empty(),
            CLOSE => (2..=2 + MAX_REASON_BYTES).contains(&body.len()),
            ADDRESSES => {
                (0..=MAX_ADDRESSES).any(|count| body.len() == NUMBER_BYTES + count * ADDRESS_BYTES)
            }
            _ => return Ok(None),
        };
        if !fits {
            return Err(RemoteError::BadControl(kind));
        }
        Ok(Some(match kind {
            FIN if be(body) >= OFFSET_LIMIT => return Err(RemoteError::BadFin),
            STATUS if be(&body[4..]) > u64::from(MAX_PRIORITY) => {
                return Err(RemoteError::BadPriority(be(&body[4..]) as u32))
            }
            FIN => Self::Fin {
                total_bytes: be(body),
            },
            ACK => Self::Ack {
                received: be(&body[..8]),
                limit: be(&body[8..16]),
                streams: counts(&body[ACK_FIXED_BYTES..]),
            },
            CONFIRM => Self::Confirm(std::array::from_fn(|place| body[place])),
            SEEN => Self::Seen(counts(body)),
            GONE => Self::Gone(be(body) as u32),
            STATUS => Self::Status {
                id: be(&body[..4]) as u32,
                priority: be(&body[4..]) as u32,
            },
            LAST => Self::Last,
            CLOSE => Self::Close {
                code: be(&body[..2]) as u16,
                reason: String::from_utf8_lossy(&body[2..]).into_owned(),
            },
            PING => Self::Ping(be(body)),
            ADDRESSES => Self::Addresses {
                number: be(&body[..NUMBER_BYTES]) as u32,
                addresses: addresses(&body[NUMBER_BYTES..]),
            },
            _ => Self::Pong(be(body)),
        }))
    }
}

fn put_counts(out: &mut Vec<u8>, streams: &[(u32, u64)]) {
    for (id, count) in streams {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&count.to_be_bytes());
    }
}

fn is_counts(body: &[u8]) -> bool {
    body.len() % COUNT_BYTES == 0 && body.len() / COUNT_BYTES <= MAX_STREAMS
}

fn counts(body: &[u8]) -> Vec<(u32, u64)> {
    body.chunks_exact(COUNT_BYTES)
        .map(|entry| (be(&entry[..4]) as u32, be(&entry[4..])))
        .collect()
}

fn addresses(body: &[u8]) -> Vec<SocketAddr> {
    body.chunks_exact(ADDRESS_BYTES)
        .map(|entry| {
            let ip = Ipv6Addr::from(std::array::from_fn::<u8, 16, _>(|place| entry[place]));
            SocketAddr::new(ip.to_canonical(), be(&entry[16..]) as u16)
        })
        .collect()
}
