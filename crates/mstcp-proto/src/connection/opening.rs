//! A client's first hello and its answer, on the stream that opens the connection: the application writes meanwhile, and its
//! first bytes go with the hello.

use super::Connection;
use crate::error::{Error, LocalError, RemoteError};
use crate::handshake::{Client, Greeting};
use crate::hello::{self, MAGIC, MAX_EARLY_BYTES, NONCE_BYTES, PREFIX_BYTES};
use crate::slice::Slice;
use crate::state::{Event, Outcome};

/// A connection whose first hello has not been answered.
#[derive(Debug)]
pub(super) struct Opening {
    /// As it is before the hello: another hello opens the same connection.
    client: Client,
    /// The hello that was said, and what has come of its answer.
    said: Option<(Client, Greeting)>,
    answer: Vec<u8>,
    /// How many hellos were said.
    hellos: u32,
}

impl Connection {
    /// Of a client whose stream 0 is connected: have the connection opened on it by [`Connection::greet`]. Nothing else is sent
    /// before the answer has come, which [`Event::Opened`] tells.
    pub fn open_by(&mut self, client: Client) {
        self.sender.hold();
        self.opening = Some(Opening {
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

    /// What makes the hellos of further streams, once the first was answered.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }

    /// Take bytes of the answer; what follows it are frames.
    pub(super) fn on_answer(
        &mut self,
        stream: usize,
        data: &[u8],
        out: &mut Vec<Slice>,
    ) -> Result<(), Error> {
        let Some(opening) = &mut self.opening else {
            return Ok(());
        };
        opening.answer.extend_from_slice(data);
        let Some(length) = answer_bytes(&opening.answer)? else {
            return Ok(());
        };
        let rest = opening.answer.split_off(length);
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
