//! The retransmission timer (RFC 6298).

use super::plain;
use super::script::Script;
use netsim::tcp::config::BackoffEnd;
use netsim::tcp::Config;

const FOUR_OUT: &str = "0 write 8000
     +0 > . 1:3001 ack 1 each 1000
     +0 > . 3001:4001 ack 1";

#[test]
fn the_timeout_doubles_and_one_segment_is_sent() {
    Script::connected(plain()).run(FOUR_OUT).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000 rto 2000
         3000 > . 1:1001 ack 1 again
         # ssthresh is held for the same segment (RFC 5681, 3.1).
         +0 ? ssthresh 2000 rto 4000
         7000 > . 1:1001 ack 1 again
         +0 ? timeouts 3 rto 8000",
    );
}

#[test]
fn after_a_timeout_slow_start_repairs_from_the_left_edge() {
    Script::connected(plain()).run(FOUR_OUT).run(
        "1000 > . 1:1001 ack 1 again
         1100 < . 1:1 ack 1001 win 65535
         +0 > . 1001:3001 ack 1 again each 1000
         +0 ? phase Loss cwnd 2000
         # Duplicates tell nothing now (RFC 6582, 4.1).
         1110 3x < . 1:1 ack 1001 win 65535
         # The rest had arrived: the recovery is over; what follows is new.
         1200 < . 1:1 ack 4001 win 65535
         +0 > . 4001:7001 ack 1 each 1000
         +0 ? phase Open cwnd 3000",
    );
}

#[test]
fn the_backoff_stays_until_a_new_sample() {
    let to_backoff = "1000 > . 1:1001 ack 1 again
         1100 < . 1:1 ack 1001 win 65535
         +0 > . 1001:2001 ack 1 again
         +0 > . 2001:3001 ack 1 again";
    Script::connected(plain())
        .run(FOUR_OUT)
        .run(to_backoff)
        .run("+0 ? rto 2000");
    let backoff_end = BackoffEnd::Progress;
    Script::connected(Config {
        backoff_end,
        ..plain()
    })
    .run(FOUR_OUT)
    .run(to_backoff)
    .run("+0 ? rto 1000");
}

#[test]
fn the_timer_follows_the_measured_round_trip() {
    let rto = netsim::tcp::config::RtoSettings {
        min: 200_000_000,
        ..plain().rto
    };
    Script::client(Config { rto, ..plain() }).run(
        "0 > S 0:0
         100 < S. 0:0 ack 1 win 65535 <mss 1000>
         +0 > . 1:1 ack 1
         # SRTT = R, RTTVAR = R / 2, RTO = SRTT + 4 RTTVAR (RFC 6298, 2.2).
         +0 ? srtt 100 rto 300
         +0 write 1000
         +0 > . 1:1001 ack 1
         +180 < . 1:1 ack 1001 win 65535
         # RTTVAR = 3/4 * 50 + 1/4 * 80 = 57.5, SRTT = 7/8 * 100 + 1/8 * 180 = 110 (RFC 6298, 2.3).
         +0 ? srtt 110 rto 340
         +0 write 1000
         +0 > . 1001:2001 ack 1
         +340 > . 1001:2001 ack 1 again
         +0 ? rto 680",
    );
}

#[test]
fn an_ack_of_new_data_restarts_it_and_the_last_stops_it() {
    Script::connected(plain()).run(FOUR_OUT).run(
        "900 < . 1:1 ack 1001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         1900 < . 1:1 ack 6001 win 65535
         +0 > . 6001:8001 ack 1 each 1000
         2000 < . 1:1 ack 8001 win 65535
         99999 ? timeouts 0",
    );
}

#[test]
fn a_silent_peer_is_given_up() {
    Script::connected(Config {
        data_retries: 2,
        initial_window_segments: 1,
        ..plain()
    })
    .run(
        "0 write 1000
         +0 > . 1:1001 ack 1
         1000 > . 1:1001 ack 1 again
         3000 > . 1:1001 ack 1 again
         7000 > R 1001:1001
         +0 ? state Closed failed true",
    );
}
