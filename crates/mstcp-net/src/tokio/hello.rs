//! The hellos of a stream, over its socket.

use std::io;
use std::time::Duration;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::time::timeout;
use mstcp_proto::handshake::{Client, Greeting, CONFIRM_BYTES};
use mstcp_proto::hello::{self, NONCE_BYTES, PREFIX_BYTES};

use super::wire::Wire;
use crate::{sys, RecordLayer};

/// How long a hello, or the answer to one, may take.
pub(super) const HELLO: Duration = Duration::from_secs(10);

/// Random bytes of the system.
pub(super) fn random<const SIZE: usize>() -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    sys::fill_random(&mut bytes);
    bytes
}

/// A nonce.
pub(super) fn nonce() -> [u8; NONCE_BYTES] {
    random()
}

fn malformed(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// Read a whole hello with its proof, and not a byte more.
pub(super) async fn read(wire: &mut Wire) -> io::Result<Vec<u8>> {
    let reading = async {
        let mut prefix = [0; PREFIX_BYTES];
        wire.read_exact(&mut prefix).await?;
        let rest = hello::rest_bytes(&prefix).map_err(malformed)?;
        let mut opening = prefix.to_vec();
        opening.resize(PREFIX_BYTES + rest, 0);
        wire.read_exact(&mut opening[PREFIX_BYTES..]).await?;
        Ok(opening)
    };
    timeout(HELLO, reading).await?
}

/// Say a hello, and read its answer.
pub(super) async fn exchange(wire: &mut Wire, greeting: &Greeting) -> io::Result<Vec<u8>> {
    wire.write_all(&greeting.bytes).await?;
    wire.flush().await?;
    read(wire).await
}

/// The CONFIRM that answers an answer, and the stream's records if its bytes are in records.
pub(super) type Confirmed = (Vec<u8>, Option<RecordLayer>);

/// Take the answer to a hello.
pub(super) fn take_answer(
    client: &mut Client,
    greeting: &Greeting,
    answer: &[u8],
) -> io::Result<Confirmed> {
    let confirm = client.on_answer(greeting, answer).map_err(malformed)?;
    if greeting.hello.records == 0 {
        return Ok((confirm, None));
    }
    let keys = client.record_keys(greeting, answer).map_err(malformed)?;
    Ok((confirm, Some(RecordLayer::of_client(&keys))))
}

/// Confirm an answer: then the stream carries frames.
pub(super) async fn confirm(
    wire: &mut Wire,
    (confirm, mut layer): Confirmed,
) -> io::Result<Option<RecordLayer>> {
    match &mut layer {
        None => wire.write_all(&confirm).await?,
        Some(layer) => {
            layer.write(&confirm);
            wire.write_all(&layer.take_unsent()).await?;
        }
    }
    wire.flush().await?;
    Ok(layer)
}

/// Read the CONFIRM that a client sends first; also return what came behind it in its record.
pub(super) async fn read_confirm(
    wire: &mut Wire,
    layer: Option<&mut RecordLayer>,
) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let reading = async {
        let mut came = vec![0; CONFIRM_BYTES];
        let Some(layer) = layer else {
            wire.read_exact(&mut came).await?;
            return Ok((came, Vec::new()));
        };
        came.clear();
        let mut piece = [0; CONFIRM_BYTES];
        while came.len() < CONFIRM_BYTES {
            let count = wire.read(&mut piece).await?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            layer.take(&piece[..count], &mut came).map_err(malformed)?;
        }
        let behind = came.split_off(CONFIRM_BYTES);
        Ok((came, behind))
    };
    timeout(HELLO, reading).await?
}

/// Make the hello of the next stream.
pub(super) fn greet(client: &mut Client) -> io::Result<Greeting> {
    client.greet(nonce(), 0, &[]).map_err(super::invalid)
}
