//! The client's side: hellos on new streams, and what their answers must be.

use super::{confirm_frame, connection_key, first_key, hmac, is_proved, record_keys, Proof};
use crate::error::{LocalError, RemoteError};
use crate::hello::{self, Hello, MAX_EARLY_BYTES, NONCE_BYTES, VERSION};
use crate::records::RecordKeys;

/// What a client needs to open the streams of one connection.
#[derive(Debug, Clone)]
pub struct ClientHandshake {
    secret: Vec<u8>,
    connection_id: [u8; 16],
    stream_count: u32,
    frame_payload_bytes: u32,
    /// Known from the answer on stream 0 on.
    key: Option<Proof>,
    next_id: u32,
    records: u32,
}

/// A client's hello for one stream.
#[derive(Debug, Clone)]
pub struct ClientHello {
    /// What to send: hello and proof.
    pub bytes: Vec<u8>,
    /// What it says.
    pub hello: Hello,
}

impl ClientHandshake {
    /// A client of a connection to be opened. `connection_id` is random; `secret` is what both sides know, or empty.
    pub fn new(
        secret: &[u8],
        connection_id: [u8; 16],
        stream_count: u32,
        frame_payload_bytes: u32,
    ) -> Self {
        Self {
            secret: secret.to_vec(),
            connection_id,
            stream_count,
            frame_payload_bytes,
            key: None,
            next_id: 0,
            records: 0,
        }
    }

    /// The connection's id.
    pub fn connection_id(&self) -> [u8; 16] {
        self.connection_id
    }

    /// Have the streams' bytes in records: see [`crate::records`]. Without a secret that proves nothing.
    #[must_use]
    pub fn with_records(self) -> Self {
        Self { records: 1, ..self }
    }

    /// Make the hello of the next stream; the first opens the connection, and others can be made once it was answered.
    ///
    /// `nonce` is random; `early_data` goes with the first hello and may reach the application more than once.
    pub fn greet(
        &mut self,
        nonce: [u8; NONCE_BYTES],
        priority: u32,
        early_data: &[u8],
    ) -> Result<ClientHello, LocalError> {
        let opens = self.next_id == 0;
        if !opens && self.key.is_none() {
            return Err(LocalError::NotAnswered);
        }
        if early_data.len() > MAX_EARLY_BYTES || !(opens || early_data.is_empty()) {
            return Err(LocalError::TooMuchEarlyData(early_data.len()));
        }
        let hello = Hello {
            version: VERSION,
            least_version: VERSION,
            connection_id: self.connection_id,
            stream_id: self.next_id,
            stream_count: self.stream_count,
            frame_payload_bytes: self.frame_payload_bytes,
            nonce,
            early_data: early_data.to_vec(),
            priority,
            records: self.records,
            ..Hello::default()
        };
        self.next_id += 1;
        let mut bytes = hello.encode();
        let key = self.key.unwrap_or_else(|| first_key(&self.secret));
        let proof = hmac(&key, &[b"hello", &bytes]);
        bytes.extend_from_slice(&proof);
        Ok(ClientHello { bytes, hello })
    }

    /// Take a whole answer; returns the CONFIRM frame, which goes before all others on the stream.
    ///
    /// After an error the stream is useless; the connection is too if it was stream 0.
    pub fn on_answer(
        &mut self,
        greeting: &ClientHello,
        answer: &[u8],
    ) -> Result<Vec<u8>, RemoteError> {
        let (proved, body, proof) = hello::split(answer)?;
        let said = Hello::decode_body(body)?;
        if said.refusal > 0 {
            return Err(RemoteError::Refused((said.refusal - 1) as u16));
        }
        check_repeated(&greeting.hello, &said)?;
        let (hello, _, _) = hello::split(&greeting.bytes)?;
        let key = self
            .key
            .unwrap_or_else(|| connection_key(&self.secret, hello, proved));
        if !is_proved(&key, &[b"answer", hello, proved], proof) {
            return Err(RemoteError::NotProved);
        }
        self.key = Some(key);
        let proof = hmac(&key, &[b"confirm", hello, proved]);
        Ok(confirm_frame(&proof))
    }

    /// The keys of a stream's records, after its answer was taken.
    pub fn record_keys(
        &self,
        greeting: &ClientHello,
        answer: &[u8],
    ) -> Result<RecordKeys, RemoteError> {
        let (hello, _, _) = hello::split(&greeting.bytes)?;
        let (answer, _, _) = hello::split(answer)?;
        let key = self.key.ok_or(RemoteError::NotProved)?;
        Ok(record_keys(&key, hello, answer))
    }
}

/// Check what an answer must repeat.
fn check_repeated(asked: &Hello, said: &Hello) -> Result<(), RemoteError> {
    let differs = [
        (
            said.version != VERSION,
            "the version is none that was offered",
        ),
        (
            said.least_version != said.version,
            "least_version is not the version",
        ),
        (
            said.priority > 0 || !said.early_data.is_empty(),
            "it has a priority or early_data, which only a client may send",
        ),
        (
            said.connection_id != asked.connection_id,
            "it is for another connection",
        ),
        (
            said.stream_id != asked.stream_id,
            "it is for another stream",
        ),
        (
            said.stream_count != asked.stream_count,
            "stream_count differs",
        ),
        (
            said.frame_payload_bytes != asked.frame_payload_bytes,
            "frame_payload_bytes differs",
        ),
        (said.nonce == asked.nonce, "it has our own nonce"),
        (
            said.records != asked.records,
            "the server does not authenticate frames as asked",
        ),
    ];
    match differs.iter().find(|(differs, _)| *differs) {
        Some((_, problem)) => Err(RemoteError::WrongAnswer(problem)),
        None => Ok(()),
    }
}
