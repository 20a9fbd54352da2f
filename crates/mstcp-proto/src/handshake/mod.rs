//! Who may open a connection or join one: hello, answer, CONFIRM, and the proofs in them.
//!
//! Let C and S be the hello and the answer of a stream as they were sent, from the magic to the end of the message, and C0
//! and S0 those of stream 0. Both carry nonces, so nothing that was recorded proves anything another time.
//!
//! | proof | made of |
//! |---|---|
//! | of the hello on stream 0 | HMAC(HMAC(secret, "mstcp 3 first"), "hello" C0) |
//! | the connection's key K | HMAC(secret, "mstcp 3 connection" C0 S0) |
//! | of the hello on another stream | HMAC(K, "hello" C) |
//! | of an answer | HMAC(K, "answer" C S) |
//! | CONFIRM, the client's first frame on every stream | HMAC(K, "confirm" C S) |
//! | the keys of a stream's records, if it has any | HMAC(K, "client records" C S), HMAC(K, "server records" C S) |
//!
//! HMAC is that of RFC 2104 with SHA-256. Proofs are compared in constant time.

mod admission;
mod client;
mod ended;

use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::control::Control;
use crate::frame::{encode_control, HEADER_BYTES};
use crate::hello::PROOF_BYTES;
use crate::records::RecordKeys;

pub use admission::{Admission, Admitted, NotAdmitted};
pub use client::{ClientHandshake, ClientHello};

/// The bytes of a CONFIRM frame.
pub const CONFIRM_BYTES: usize = HEADER_BYTES + PROOF_BYTES;

/// A key or a proof.
pub type Proof = [u8; PROOF_BYTES];

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    // A key of any length is allowed.
    let mut mac = match Hmac::<Sha256>::new_from_slice(key) {
        Ok(mac) => mac,
        Err(_) => unreachable!("HMAC takes keys of any length"),
    };
    for part in parts {
        mac.update(part);
    }
    mac
}

/// HMAC-SHA256 of the parts.
pub(crate) fn hmac(key: &[u8], parts: &[&[u8]]) -> Proof {
    mac(key, parts).finalize().into_bytes().into()
}

fn record_keys(key: &Proof, hello: &[u8], answer: &[u8]) -> RecordKeys {
    RecordKeys {
        client: hmac(key, &[b"client records", hello, answer]),
        server: hmac(key, &[b"server records", hello, answer]),
    }
}

fn first_key(secret: &[u8]) -> Proof {
    hmac(secret, &[b"mstcp 3 first"])
}

fn connection_key(secret: &[u8], hello: &[u8], answer: &[u8]) -> Proof {
    hmac(secret, &[b"mstcp 3 connection", hello, answer])
}

/// Whether a proof is right; in constant time.
fn is_proved(key: &[u8], parts: &[&[u8]], proof: &[u8]) -> bool {
    mac(key, parts).verify_slice(proof).is_ok()
}

/// The CONFIRM frame of a stream with this proof.
pub fn confirm_frame(proof: &Proof) -> Vec<u8> {
    let mut frame = Vec::with_capacity(CONFIRM_BYTES);
    encode_control(&mut frame, &Control::Confirm(*proof));
    frame
}

/// Whether two proofs are the same; in constant time.
pub(crate) fn is_same(one: &Proof, other: &Proof) -> bool {
    is_same_tag(one, other)
}

/// Whether two tags of the same length are the same; in constant time.
pub(crate) fn is_same_tag(one: &[u8], other: &[u8]) -> bool {
    let differ = one
        .iter()
        .zip(other)
        .fold(0, |differ, (a, b)| differ | (a ^ b));
    std::hint::black_box(differ) == 0
}
