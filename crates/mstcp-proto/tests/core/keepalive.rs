//! Signs of life that an application asks for.

use mstcp_proto::{Connection, Control, Event, Outcome, Unanswered};

use super::{config, encoded, events, outcome, sent};

const IDLE_NS: u64 = 1_000_000_000;
/// The shell's timer is late by so much.
const LATE_NS: u64 = 2_000_000;

fn connection() -> Connection {
    let mut connection = super::connection("weighted", config(2, 1000));
    connection.set_keepalive(Some(IDLE_NS), 3);
    connection
}

/// Send what is due; returns whether there was a PING.
fn send(connection: &mut Connection, now_ns: u64) -> bool {
    let frames = sent(connection, now_ns);
    frames.iter().any(|(_, data)| data[0] == 0x85)
}

/// An idle minute whose every PING is answered, or none; returns the PINGs and the streams that were given up.
fn idle_minute(answered: bool) -> (usize, usize) {
    let mut connection = connection();
    let (mut now_ns, mut pings, mut lost) = (0, 0, 0);
    while now_ns < 60 * IDLE_NS {
        if send(&mut connection, now_ns) {
            pings += 1;
            if answered {
                // The path takes much less time than the timer is late by.
                now_ns += LATE_NS / 10;
                let pong = encoded(&Control::Pong(1));
                connection.on_received(0, &pong, &mut Vec::new()).unwrap();
                send(&mut connection, now_ns);
            }
        }
        let gone = |event: &&Event| matches!(event, Event::StreamGone { .. });
        lost += events(&mut connection).iter().filter(gone).count();
        now_ns = match connection.timeout_ns() {
            Some(at_ns) if lost == 0 => at_ns.max(now_ns) + LATE_NS,
            _ => break,
        };
    }
    (pings, lost)
}

#[test]
fn a_peer_that_answers_at_once_is_never_given_up_however_late_the_timer_is() {
    let (pings, lost) = idle_minute(true);
    assert_eq!(lost, 0);
    assert!((50..=60).contains(&pings), "{pings}");
}

#[test]
fn a_peer_that_answers_nothing_is_given_up_after_the_probes() {
    assert_eq!(idle_minute(false), (3, 2));
}

/// When a connection ends, and how, whose peer is gone and whose streams cannot be opened again. TCP sends again what was written;
/// where nothing was, only keepalive finds out.
fn end_of_vanished(written: &[u8], has_keepalive: bool) -> Option<(u64, Outcome)> {
    let mut connection = connection();
    if !has_keepalive {
        connection.set_keepalive(None, 3);
    }
    connection.write(written).unwrap();
    let mut now_ns = IDLE_NS;
    loop {
        send(&mut connection, now_ns);
        for stream in connection.streams_to_query(now_ns).iter() {
            let unanswered = match written {
                b"" => Unanswered::Nothing,
                _ => Unanswered::SentAgain,
            };
            connection.on_unanswered(now_ns, stream, unanswered);
        }
        if let Some(outcome) = outcome(&mut connection) {
            return Some((now_ns, outcome));
        }
        now_ns = connection.timeout_ns()?.max(now_ns) + LATE_NS;
    }
}

#[test]
fn a_connection_ends_as_lost_when_its_peer_vanishes_and_all_streams_stall() {
    // What TCP has sent again waits for as long as TCP would; PINGs only as long as for a lost stream to come back.
    for (written, has_keepalive, seconds) in [
        (&b"x"[..], false, 30..35),
        (b"x", true, 30..35),
        (b"", true, 9..12),
    ] {
        let (end_ns, outcome) = end_of_vanished(written, has_keepalive).expect("it ends");
        assert_eq!(outcome, Outcome::Lost);
        assert!(seconds.contains(&(end_ns / 1_000_000_000)), "{end_ns}");
    }
    // Nothing is awaited, as with TCP.
    assert_eq!(end_of_vanished(b"", false), None);
}
