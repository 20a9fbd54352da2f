//! The hellos of a stream, over its socket.

use std::io;
use std::time::Duration;

use ::tokio::io::{AsyncReadExt, AsyncWriteExt};
use ::tokio::net::TcpStream;
use ::tokio::time::timeout;
use mstcp_core::handshake::{Client, Greeting};
use mstcp_core::hello::{self, NONCE_BYTES, PREFIX_BYTES};

use crate::sys;

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
pub(super) async fn read(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let reading = async {
        let mut prefix = [0; PREFIX_BYTES];
        socket.read_exact(&mut prefix).await?;
        let rest = hello::rest_bytes(&prefix).map_err(malformed)?;
        let mut opening = prefix.to_vec();
        opening.resize(PREFIX_BYTES + rest, 0);
        socket.read_exact(&mut opening[PREFIX_BYTES..]).await?;
        Ok(opening)
    };
    timeout(HELLO, reading).await?
}

/// Say a hello, and read its answer.
pub(super) async fn exchange(socket: &mut TcpStream, greeting: &Greeting) -> io::Result<Vec<u8>> {
    socket.write_all(&greeting.bytes).await?;
    read(socket).await
}

/// Take the answer to a hello, and confirm it: then the stream carries frames.
pub(super) async fn confirm(
    socket: &mut TcpStream,
    greeting: &Greeting,
    answer: &[u8],
    take: impl FnOnce(&Greeting, &[u8]) -> Result<Vec<u8>, mstcp_core::RemoteError>,
) -> io::Result<()> {
    let confirm = take(greeting, answer).map_err(malformed)?;
    socket.write_all(&confirm).await
}

/// Make the hello of the next stream.
pub(super) fn greet(client: &mut Client) -> io::Result<Greeting> {
    client.greet(nonce(), 0, &[]).map_err(super::invalid)
}
