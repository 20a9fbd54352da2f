//! Limited transmit (RFC 3042).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

const THREE_OUT: &str = "0 write 10000
     +0 > . 1:2001 ack 1 each 1000
     +0 > . 2001:3001 ack 1";

#[test]
fn the_first_two_duplicates_each_let_a_new_segment_out() {
    Script::connected(Config {
        initial_window_segments: 3,
        ..plain()
    })
    .run(THREE_OUT)
    .run(
        "100 < . 1:1 ack 1 win 65535
         +0 > . 3001:4001 ack 1
         +1 < . 1:1 ack 1 win 65535
         +0 > . 4001:5001 ack 1
         +0 ? phase Disorder cwnd 3000
         # What they let out is no part of the flight: ssthresh = max(3000 / 2, 2 * 1000).
         +1 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery ssthresh 2000",
    );
}

#[test]
fn off_they_let_nothing_out() {
    Script::connected(Config {
        initial_window_segments: 3,
        limited_transmit: false,
        ..plain()
    })
    .run(THREE_OUT)
    .run(
        "100 < . 1:1 ack 1 win 65535
         +1 < . 1:1 ack 1 win 65535
         +1 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # In recovery the window of 2 and the two duplicates that can be told apart let one out.
         +0 > . 3001:4001 ack 1",
    );
}

#[test]
fn the_peers_window_holds() {
    Script::connected(Config {
        initial_window_segments: 3,
        ..plain()
    })
    .run("0 < . 1:1 ack 1 win 3000")
    .run(THREE_OUT)
    .run("100 < . 1:1 ack 1 win 3000\n+1 < . 1:1 ack 1 win 3000\n+0 ? phase Disorder");
}
