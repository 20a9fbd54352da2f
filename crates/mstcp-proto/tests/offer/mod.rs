//! The next frame in one piece.

use mstcp_proto::Connection;

/// The stream of the frame that goes next, and the bytes that are left of it.
pub fn offer(connection: &mut Connection, now_ns: u64) -> Option<(usize, Vec<u8>)> {
    let (stream, length) = connection.poll_frame(now_ns)?;
    let mut bytes = Vec::with_capacity(length);
    connection.rest(stream, |piece| bytes.extend_from_slice(piece));
    Some((stream, bytes))
}
