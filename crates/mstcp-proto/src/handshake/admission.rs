//! The server's side: which streams may open a connection or join one.

use std::collections::{HashMap, HashSet, VecDeque};

use super::ended::{EndedConnection, EndedConnections};
use super::{connection_key, first_key, hmac, is_proved, record_keys, Proof};
use crate::control::{code, Control};
use crate::error::RemoteError;
use crate::frame::encode_control;
use crate::hello::{self, Hello, NONCE_BYTES, PROOF_BYTES, VERSION};
use crate::records::{RecordKeys, RecordWriter};
use crate::MAX_STREAMS;

/// Streams that may join one connection in its life.
const MAX_STREAM_IDS: usize = 1 << 16;
/// First hellos of one connection, each on another path.
const MAX_FIRST_HELLOS: usize = 64;
/// Connections whose first hello is known again after they ended.
const MAX_RECENT_IDS: usize = 1 << 16;

type ConnectionId = [u8; 16];

/// A stream that is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// What its hello says.
    pub hello: Hello,
    /// What to send: answer and proof.
    pub answer: Vec<u8>,
    /// The proof that the client's CONFIRM must have. Before it came nothing of the stream may be used.
    pub confirm: Proof,
    /// The keys of the stream's records, if its bytes are in records after the answer.
    pub record_keys: Option<RecordKeys>,
}

impl Admitted {
    /// Whether the stream opens a connection.
    pub fn opens(&self) -> bool {
        self.hello.stream_id == 0
    }
}

/// Why a stream is not admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotAdmitted {
    /// It is told so: a code of [`crate::code`], the sentence, and the bytes to send before its end.
    Refused {
        /// Error code.
        code: u16,
        /// For people.
        reason: String,
        /// Answer and CLOSE.
        answer: Vec<u8>,
    },
    /// Its connection was closed with everything delivered, and the stream is told so: the bytes to send before its end. What
    /// comes on it is discarded.
    Ended {
        /// Answer, ACK and LAST.
        answer: Vec<u8>,
    },
    /// What came is no hello: it is reset.
    Malformed(RemoteError),
}

#[derive(Debug)]
struct KnownConnection {
    key: Proof,
    frame_payload_bytes: u32,
    records: u32,
    used_ids: HashSet<u32>,
    /// Its first hello may come again: see [`Admission::admit_again`].
    is_open_again: bool,
    /// Nonces of the first hellos that came.
    nonces: Vec<[u8; NONCE_BYTES]>,
}

/// The connections of a server by their ids, and which streams it admits.
#[derive(Debug)]
pub struct Admission {
    secret: Vec<u8>,
    most_connections: usize,
    requires_records: bool,
    known: HashMap<ConnectionId, KnownConnection>,
    ended: EndedConnections,
    plain: usize,
    /// So that a first hello that was overheard opens no second connection where there is no secret.
    recent: HashSet<ConnectionId>,
    recent_order: VecDeque<ConnectionId>,
}

impl Admission {
    /// Let at most `most_connections` in at a time, plain TCP connections included. `secret` is what both sides know
    /// beforehand, or empty.
    pub fn new(secret: &[u8], most_connections: usize) -> Self {
        Self {
            secret: secret.to_vec(),
            most_connections,
            requires_records: false,
            known: HashMap::new(),
            ended: EndedConnections::default(),
            plain: 0,
            recent: HashSet::new(),
            recent_order: VecDeque::new(),
        }
    }

    /// Let only streams in whose bytes are in records; see [`crate::records`].
    #[must_use]
    pub fn requiring_records(self) -> Self {
        Self {
            requires_records: true,
            ..self
        }
    }

    /// Whether a first hello alone opens a connection: everybody may open one, so CONFIRM proves nothing more.
    pub fn is_open_to_all(&self) -> bool {
        self.secret.is_empty()
    }

    /// Look at a whole hello. `alive` tells how many streams a connection has, none if it takes no more; `nonce` is random.
    pub fn admit(
        &mut self,
        now_ns: u64,
        opening: &[u8],
        nonce: [u8; NONCE_BYTES],
        alive: impl FnOnce(&ConnectionId) -> Option<usize>,
    ) -> Result<Admitted, NotAdmitted> {
        let (proved, body, proof) = hello::split(opening).map_err(NotAdmitted::Malformed)?;
        let hello = Hello::decode_body(body).map_err(not_decoded)?;
        if hello.refusal > 0 {
            let error = RemoteError::BadHello("a client refuses a stream");
            return Err(NotAdmitted::Malformed(error));
        }
        if let Some(ended) = self.ended.get(now_ns, &hello.connection_id) {
            if hello.stream_id > 0 && is_proved(&ended.key, &[b"hello", proved], proof) {
                return Err(ended.tell(&hello, proved, nonce));
            }
        }
        let problem = match hello.stream_id {
            0 => self.check_first(&hello, proved, proof),
            _ => self.check_join(&hello, proved, proof, alive),
        };
        if let Some((code, reason)) = problem {
            return Err(refused(&hello, nonce, code, reason));
        }
        let mut answer = unproved_answer(&hello, nonce, 0);
        let key = match self.known.get_mut(&hello.connection_id) {
            Some(known) if hello.stream_id > 0 => {
                known.used_ids.insert(hello.stream_id);
                known.key
            }
            _ => self.know(&hello, connection_key(&self.secret, proved, &answer)),
        };
        let confirm = hmac(&key, &[b"confirm", proved, &answer]);
        let record_keys = prove(&key, &hello, proved, &mut answer);
        Ok(Admitted {
            hello,
            answer,
            confirm,
            record_keys,
        })
    }

    /// Let the first hello of a connection come again, on another path, or no more. For as long as no stream of it is confirmed:
    /// the client then chose another path before an answer came, and nobody but who knows the secret could have said that hello.
    pub fn admit_again(&mut self, connection_id: &ConnectionId, is_unconfirmed: bool) {
        if let Some(known) = self.known.get_mut(connection_id) {
            known.is_open_again = is_unconfirmed;
        }
    }

    /// Let no more streams join a connection.
    pub fn forget(&mut self, connection_id: &ConnectionId) {
        self.known.remove(connection_id);
    }

    /// As [`Admission::forget`], for a connection that was never opened: its client may say the first hello on another path.
    pub fn withdraw(&mut self, connection_id: &ConnectionId) {
        self.known.remove(connection_id);
        if self.is_open_to_all() {
            self.recent.remove(connection_id);
        }
    }

    /// As [`Admission::forget`], for a connection that was closed with everything delivered: a client that does not know yet asks
    /// again by a stream that joins, and is told `farewell`. See [`crate::Connection::farewell`].
    pub fn remember(&mut self, now_ns: u64, connection_id: &ConnectionId, farewell: Vec<u8>) {
        if let Some(known) = self.known.remove(connection_id) {
            let ended = EndedConnection {
                key: known.key,
                farewell,
            };
            self.ended.insert(now_ns, *connection_id, ended);
        }
    }

    /// Count a plain TCP connection, until [`Admission::forget_plain`]; the sentence says why none is admitted.
    pub fn admit_plain(&mut self) -> Result<(), String> {
        if let Some(full) = self.full() {
            return Err(full);
        }
        self.plain += 1;
        Ok(())
    }

    /// Count a plain TCP connection no more.
    pub fn forget_plain(&mut self) {
        self.plain = self.plain.saturating_sub(1);
    }

    /// Turn a hello down for a reason of the shell's, as a limit of its own.
    pub fn refuse(
        &self,
        opening: &[u8],
        nonce: [u8; NONCE_BYTES],
        code: u16,
        reason: &str,
    ) -> NotAdmitted {
        let hello = hello::split(opening).and_then(|(_, body, _)| Hello::decode_body(body));
        match hello {
            Ok(hello) => refused(&hello, nonce, code, reason.to_owned()),
            Err(error) => not_decoded(error),
        }
    }

    fn know(&mut self, hello: &Hello, key: Proof) -> Proof {
        let before = self.known.remove(&hello.connection_id);
        let mut nonces = before.map_or(Vec::new(), |known| known.nonces);
        nonces.push(hello.nonce);
        let known = KnownConnection {
            key,
            frame_payload_bytes: hello.frame_payload_bytes,
            records: hello.records,
            used_ids: HashSet::from([0]),
            is_open_again: false,
            nonces,
        };
        self.known.insert(hello.connection_id, known);
        self.recent.insert(hello.connection_id);
        self.recent_order.push_back(hello.connection_id);
        if self.recent_order.len() > MAX_RECENT_IDS {
            if let Some(oldest) = self.recent_order.pop_front() {
                self.recent.remove(&oldest);
            }
        }
        key
    }

    fn full(&self) -> Option<String> {
        let is_full = self.known.len() + self.plain >= self.most_connections;
        is_full.then(|| format!("the server has {} connections", self.most_connections))
    }

    fn check_first(
        &self,
        hello: &Hello,
        proved: &[u8],
        proof: &[u8; PROOF_BYTES],
    ) -> Option<(u16, String)> {
        if !is_proved(&first_key(&self.secret), &[b"hello", proved], proof) {
            return Some(unproved());
        }
        let known = self.known.get(&hello.connection_id);
        let is_same = |known: &KnownConnection| {
            let is_new =
                !known.nonces.contains(&hello.nonce) && known.nonces.len() < MAX_FIRST_HELLOS;
            let same_frames = known.frame_payload_bytes == hello.frame_payload_bytes;
            known.is_open_again && is_new && same_frames && known.records == hello.records
        };
        let may_come = known.map_or(!self.recent.contains(&hello.connection_id), is_same);
        if !may_come {
            return Some((code::NOT_AUTHORISED, "a first hello came again".to_owned()));
        }
        if self.requires_records && hello.records == 0 {
            let reason = "this server takes authenticated frames alone";
            return Some((code::NOT_AUTHORISED, reason.to_owned()));
        }
        let full = self.full().filter(|_| known.is_none());
        full.map(|full| (code::LIMIT_EXCEEDED, full))
    }

    fn check_join(
        &self,
        hello: &Hello,
        proved: &[u8],
        proof: &[u8; PROOF_BYTES],
        alive: impl FnOnce(&ConnectionId) -> Option<usize>,
    ) -> Option<(u16, String)> {
        let known = self.known.get(&hello.connection_id);
        let alive = known.and_then(|_| alive(&hello.connection_id));
        let (Some(known), Some(alive)) = (known, alive) else {
            let reason = "a stream wants to join a connection that is not here";
            return Some((code::UNKNOWN_CONNECTION, reason.to_owned()));
        };
        if !is_proved(&known.key, &[b"hello", proved], proof) {
            return Some(unproved());
        }
        if known.used_ids.contains(&hello.stream_id) {
            let reason = format!("stream {} of the connection came twice", hello.stream_id);
            return Some((code::NOT_AUTHORISED, reason));
        }
        if (hello.frame_payload_bytes, hello.records) != (known.frame_payload_bytes, known.records)
        {
            let reason = "the hello contradicts the first of its connection";
            return Some((code::NOT_AUTHORISED, reason.to_owned()));
        }
        if known.used_ids.len() >= MAX_STREAM_IDS {
            let reason = format!("the connection had {MAX_STREAM_IDS} streams");
            return Some((code::LIMIT_EXCEEDED, reason));
        }
        (alive >= MAX_STREAMS).then(|| {
            let reason = format!("the connection has {MAX_STREAMS} streams");
            (code::LIMIT_EXCEEDED, reason)
        })
    }
}

impl EndedConnection {
    /// Tell a stream that everything has come.
    fn tell(&self, hello: &Hello, proved: &[u8], nonce: [u8; NONCE_BYTES]) -> NotAdmitted {
        let mut answer = unproved_answer(hello, nonce, 0);
        match prove(&self.key, hello, proved, &mut answer) {
            Some(keys) => RecordWriter::new(keys.server).write(&self.farewell, &mut answer),
            None => answer.extend_from_slice(&self.farewell),
        }
        NotAdmitted::Ended { answer }
    }
}

/// Put the proof behind an answer; returns the keys of the stream's records, if it has any.
fn prove(key: &Proof, hello: &Hello, proved: &[u8], answer: &mut Vec<u8>) -> Option<RecordKeys> {
    let keys = (hello.records > 0).then(|| record_keys(key, proved, answer));
    let proof = hmac(key, &[b"answer", proved, answer]);
    answer.extend_from_slice(&proof);
    keys
}

/// The answer to a hello, without its proof; the refusal of one that is taken is 0.
fn unproved_answer(hello: &Hello, nonce: [u8; NONCE_BYTES], refusal: u32) -> Vec<u8> {
    let answer = Hello {
        version: VERSION,
        least_version: VERSION,
        nonce,
        early_data: Vec::new(),
        refusal,
        priority: 0,
        ..*hello
    };
    answer.encode()
}

fn unproved() -> (u16, String) {
    let reason = "the hello does not prove that its sender knows the shared secret";
    (code::NOT_AUTHORISED, reason.to_owned())
}

fn not_decoded(error: RemoteError) -> NotAdmitted {
    match error {
        RemoteError::UnsupportedVersion { .. } => {
            let answer = hello::encode_version_refusal();
            with_close(answer, code::UNSUPPORTED_VERSION, error.to_string())
        }
        error => NotAdmitted::Malformed(error),
    }
}

fn refused(hello: &Hello, nonce: [u8; NONCE_BYTES], code: u16, reason: String) -> NotAdmitted {
    let mut answer = unproved_answer(hello, nonce, u32::from(code) + 1);
    answer.extend_from_slice(&[0; PROOF_BYTES]);
    with_close(answer, code, reason)
}

/// A refusal whose answer says why.
fn with_close(mut answer: Vec<u8>, code: u16, reason: String) -> NotAdmitted {
    let close = Control::Close {
        code,
        reason: reason.clone(),
    };
    encode_control(&mut answer, &close);
    NotAdmitted::Refused {
        code,
        reason,
        answer,
    }
}
