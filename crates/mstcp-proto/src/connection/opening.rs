//! A client's hellos and their answers: on the stream that opens the connection, where the application's first bytes go with the
//! hello, and on those that join it, where data follows the hello.

use super::Connection;
use crate::error::{Error, LocalError, RemoteError};
use crate::handshake::{ClientHandshake, ClientHello};
use crate::hello::{self, MAGIC, MAX_EARLY_BYTES, NONCE_BYTES, PREFIX_BYTES};
use crate::slice::Slice;
use crate::state::{Event, Outcome};

/// A connection whose first hello has not been answered.
#[derive(Debug)]
pub(super) struct PendingOpen {
    /// As it is before the hello: another hello opens the same connection.
    client: ClientHandshake,
    /// The hello that was said, and what has come of its answer.
    said: Option<(ClientHandshake, ClientHello)>,
    answer: Vec<u8>,
    /// How many hellos were said.
    hellos: u32,
}

/// A stream that joins, whose hello has not been answered.
#[derive(Debug)]
pub(super) struct PendingJoin {
    pub(super) slot: usize,
    greeting: ClientHello,
    answer: Vec<u8>,
}

impl Connection {
    /// Open a client's connection on stream 0, which is connected, by [`Connection::greet`]. Nothing else is sent
    /// before the answer has come, which [`Event::Opened`] tells.
    pub fn open_by(&mut self, client: ClientHandshake) {
        self.sender.hold();
        self.opening = Some(PendingOpen {
            client,
            said: None,
            answer: Vec::new(),
            hellos: 0,
        });
    }

    /// Say the hello on stream 0, with as many of the bytes that were written as fit into `most_bytes` with it.
    ///
    /// Where the stream ends before the answer another takes its place ([`Connection::add_stream`] with id 0) and says another
    /// hello of the same connection, with the same bytes: a server that has them from before drops them.
    pub fn greet(
        &mut self,
        nonce: [u8; NONCE_BYTES],
        priority: u32,
        most_bytes: usize,
    ) -> Result<(), LocalError> {
        let Some(opening) = &mut self.opening else {
            return Ok(());
        };
        let bare = opening.client.clone().greet(nonce, priority, &[])?;
        // The field's tag and length.
        let beside = bare.bytes.len() + 4;
        let early =
            (self.sender).take_early(most_bytes.saturating_sub(beside).min(MAX_EARLY_BYTES));
        let mut client = opening.client.clone();
        let greeting = client.greet(nonce, priority, &early)?;
        self.sender.say(&greeting.bytes);
        opening.answer.clear();
        opening.hellos += 1;
        opening.said = Some((client, greeting));
        Ok(())
    }

    /// Add a further stream of a client without a secret, whose socket has room, by this hello. Data frames follow the hello at
    /// once, all else its answer, which [`Event::StreamJoined`] or [`Event::StreamRefused`] tells.
    pub fn join(&mut self, greeting: ClientHello, weight: f64) -> Result<usize, LocalError> {
        let slot = self.add_stream(greeting.hello.stream_id, weight)?;
        self.sender.greet(slot, &greeting.bytes);
        self.joining.push(PendingJoin {
            slot,
            greeting,
            answer: Vec::new(),
        });
        Ok(slot)
    }

    /// What makes the hellos of further streams, once the first was answered.
    pub fn client(&self) -> Option<&ClientHandshake> {
        self.client.as_ref()
    }

    /// Take bytes of the answer to the first hello; what follows it are frames.
    pub(super) fn on_answer(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        let Some(opening) = &mut self.opening else {
            return Ok(());
        };
        let Some(rest) = split_answer(&mut opening.answer, data)? else {
            return Ok(());
        };
        let Some((mut client, greeting)) = opening.said.take() else {
            return Err(RemoteError::NotMstcp.into());
        };
        let confirm = match client.on_answer(&greeting, &opening.answer) {
            // The server knew the connection by an earlier hello, and it is over.
            Err(RemoteError::Refused(_)) if opening.hellos > 1 => {
                self.finish(Outcome::Lost);
                return Ok(());
            }
            confirm => confirm?,
        };
        self.opening = None;
        self.client = Some(client);
        let ack = self.receiver.make_ack();
        self.sender.release(confirm, &ack);
        self.events.push_back(Event::Opened);
        match rest.is_empty() {
            true => Ok(()),
            false => self.receive(stream, &rest, None, out),
        }
    }

    /// Take bytes of the answer to the hello of a stream that joins; what follows it are frames.
    pub(super) fn on_join_answer(
        &mut self,
        at: usize,
        data: &[u8],
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        let PendingJoin {
            slot,
            greeting,
            answer,
        } = &mut self.joining[at];
        let slot = *slot;
        let confirmed = split_answer(answer, data).and_then(|rest| {
            let (Some(rest), Some(client)) = (rest, &mut self.client) else {
                return Ok(None);
            };
            Ok(Some((client.on_answer(greeting, answer)?, rest)))
        });
        match confirmed {
            Ok(None) => Ok(()),
            Ok(Some((confirm, rest))) => {
                self.joining.remove(at);
                self.sender.confirm(slot, confirm);
                self.events.push_back(Event::StreamJoined { slot });
                match rest.is_empty() {
                    true => Ok(()),
                    false => self.receive(slot, &rest, None, out),
                }
            }
            Err(error) => {
                self.give_up_by(slot, Event::StreamRefused { slot, error });
                Ok(())
            }
        }
    }
}

/// Append bytes to what came of an answer; once that is whole, what follows it.
fn split_answer(came: &mut Vec<u8>, data: &[u8]) -> Result<Option<Vec<u8>>, RemoteError> {
    came.extend_from_slice(data);
    let length = answer_bytes(came)?;
    Ok(length.map(|length| came.split_off(length)))
}

/// How long an answer is that has come as a whole.
fn answer_bytes(came: &[u8]) -> Result<Option<usize>, RemoteError> {
    if !came.starts_with(&MAGIC[..MAGIC.len().min(came.len())]) {
        return Err(RemoteError::NotMstcp);
    }
    let prefix = came.get(..PREFIX_BYTES);
    let Some(prefix) = prefix.and_then(|prefix| prefix.try_into().ok()) else {
        return Ok(None);
    };
    let length = PREFIX_BYTES + hello::rest_bytes(prefix)?;
    Ok((came.len() >= length).then_some(length))
}
