//! Where acknowledgements go, and what is asked before more data.

use super::*;

#[test]
fn a_stream_that_is_full_gets_an_answer_before_more_data() {
    let mut connection = connection(&[1.0, 1.0]);
    acknowledge(&mut connection, 1 << 30, &[]);
    connection.write(&vec![0; 100 * PAYLOAD_BYTES]).unwrap();
    // Stream 1 is slow and always full; stream 0 takes everything.
    let full = |connection: &mut Connection, now_ns: u64| {
        while let Some((stream, size)) = connection.poll_frame(now_ns) {
            connection
                .on_sent(stream, if stream == 1 { 0 } else { size })
                .unwrap();
        }
    };
    full(&mut connection, MS);
    tell(&mut connection, &Control::Ping(1));
    full(&mut connection, 100 * MS);
    connection.write(&vec![0; 100 * PAYLOAD_BYTES]).unwrap();
    connection.on_writable(1).unwrap();
    let (stream, frame) = offer(&mut connection, 101 * MS).unwrap();
    assert_eq!((stream, frame[0] >> 6), (1, 2), "a control frame");
}

#[test]
fn an_acknowledgement_goes_also_over_a_much_quicker_path() {
    for (delay_ns, carriers) in [(205 * MS, vec![0, 1]), (12 * MS, vec![1])] {
        let mut connection = connection(&[1.0, 1.0]);
        connection.set_delay(0, 5 * MS).unwrap();
        connection.set_delay(1, delay_ns).unwrap();
        bring_data(&mut connection, 1);
        let frames = [0, 50 * MS].map(|now_ns| sent(&mut connection, now_ns));
        let mut acks: Vec<_> = frames.concat().iter().map(|(stream, _)| *stream).collect();
        acks.sort_unstable();
        assert_eq!(acks, carriers, "{delay_ns}");
    }
}

#[test]
fn the_acknowledgement_before_the_last_frame_may_be_seen() {
    let mut connection = connection(&[1.0, 1.0]);
    acknowledge_up_to(&mut connection, 0, 1 << 20, &[]);
    connection.shut();
    let mut acks = [0u64; 2];
    let mut count_acks = |connection: &mut Connection, now_ns: u64| {
        for (stream, bytes) in sent(connection, now_ns) {
            let mut rest = &bytes[..];
            while rest.len() >= 8 {
                acks[stream] += u64::from(rest[0] == 0x82);
                rest = &rest[8 + usize::from(u16::from_be_bytes([rest[6], rest[7]]))..];
            }
        }
        acks
    };
    count_acks(&mut connection, MS);
    acknowledge_up_to(&mut connection, 1, 1 << 20, &[]);
    let acks = count_acks(&mut connection, 2 * MS);
    assert_eq!(connection.state(), mstcp_proto::ConnectionState::Ending);
    assert!(acks.iter().all(|count| *count >= 1), "{acks:?}");
    // The first of stream 0 went before.
    tell(
        &mut connection,
        &Control::Seen(vec![(0, acks[0] + 1), (1, acks[1])]),
    );
}
