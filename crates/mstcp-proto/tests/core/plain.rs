//! Plain TCP behind the interface of a connection: what may have been a hello, the queue's bound, one stream.

use mstcp_proto::hello::MAGIC;
use mstcp_proto::{Connection, Error, LocalError, RemoteError};

fn plain(send_queue_bytes: usize) -> Connection {
    Connection::plain(1440, send_queue_bytes, false).unwrap()
}

/// What comes of some pieces, and then of the end.
fn taken(pieces: &[&[u8]]) -> Result<Vec<u8>, Error> {
    let (mut connection, mut out) = (plain(1 << 20), Vec::new());
    for piece in pieces {
        connection.on_received(0, piece, &mut out)?;
    }
    let mut late = Vec::new();
    connection.release_opening(&mut late);
    assert!(connection.on_stream_end(0)?);
    out.extend(late.iter().flat_map(|slice| slice.to_vec()));
    Ok(out)
}

#[test]
fn only_a_whole_late_hello_is_kept_from_the_application() {
    for cut in 1..MAGIC.len() {
        let (head, tail) = MAGIC.split_at(cut);
        assert_eq!(taken(&[head, tail]), Err(RemoteError::LateHello.into()));
        assert_eq!(taken(&[head]), Ok(head.to_vec()));
        let other: &[&[u8]] = &[head, b"", b"x", &MAGIC, b" is no hello"];
        assert_eq!(taken(other), Ok(other.concat()));
    }
    assert_eq!(taken(&[&MAGIC]), Err(RemoteError::LateHello.into()));
}

#[test]
fn the_queue_is_bounded_but_an_empty_one_takes_any_write() {
    let mut connection = plain(100);
    connection.write(&[0; 500]).unwrap();
    let full = connection.write(b"x");
    assert!(matches!(full, Err(LocalError::SendQueueFull { .. })));
    connection.end();
    assert_eq!(connection.write(b"x"), Err(LocalError::WriteAfterEnd));
}

#[test]
fn there_is_one_stream() {
    let refused = plain(100).add_stream(1, 1.0);
    assert_eq!(refused, Err(LocalError::PlainHasOneStream));
}
