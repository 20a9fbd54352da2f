//! What a side does that hears nothing more, though it waits for nothing itself.

use super::*;

/// When a side that has acknowledged what came on stream 1 asks on stream 0, in ms, if nothing comes any more and TCP says this
/// of stream 1.
fn asked_ms(unanswered: Unanswered) -> Vec<u64> {
    let mut connection = connection(&[1.0, 1.0]);
    bring_data(&mut connection, 1);
    let (mut now_ns, mut asked) = (1, Vec::new());
    let mut token = 0;
    while now_ns < 10_000 * MS {
        for stream in connection.streams_to_query(now_ns).iter() {
            let said = match stream {
                1 => unanswered,
                _ => Unanswered::Nothing,
            };
            connection.on_unanswered(now_ns, stream, said);
        }
        for frame in sent(&mut connection, now_ns) {
            if frame == (0, encoded(&Control::Ping(token + 1))) {
                token += 1;
                asked.push(now_ns / MS);
            }
        }
        let Some(next_ns) = connection.timeout_ns() else {
            break;
        };
        now_ns = next_ns.max(now_ns);
    }
    asked
}

#[test]
fn a_receiver_whose_acknowledgement_no_kernel_answers_asks_on_every_stream_for_half_a_second() {
    let often: Vec<u64> = (300..800).step_by(50).collect();
    assert_eq!(asked_ms(Unanswered::Sent), often);
    assert!(asked_ms(Unanswered::Nothing).is_empty());
}

#[test]
fn the_first_stream_that_answers_takes_at_once_what_tcp_still_sends_again_on_others() {
    for (said, taken) in [
        (Unanswered::SentAgain, 2 * PAYLOAD_BYTES),
        (Unanswered::Sent, 0),
    ] {
        let mut connection = connection(&[1.0, 1.0]);
        connection.write(&[0; 4 * PAYLOAD_BYTES]).unwrap();
        assert_eq!(
            send(&mut connection, 1),
            [2 * PAYLOAD_BYTES, 2 * PAYLOAD_BYTES]
        );
        for now_ms in (300..500).step_by(50) {
            for stream in connection.streams_to_query(now_ms * MS).iter() {
                connection.on_unanswered(now_ms * MS, stream, said);
            }
            send(&mut connection, now_ms * MS);
        }
        acknowledge(&mut connection, 1 << 18, &[(0, 2)]);
        assert_eq!(send(&mut connection, 500 * MS), [taken, 0]);
    }
}
