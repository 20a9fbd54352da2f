//! Fast retransmit and fast recovery without SACK (RFC 5681, 3.2; RFC 6582).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

/// Ten segments out, all the data written.
fn ten_out(config: Config) -> Script {
    let config = Config {
        limited_transmit: false,
        ..config
    };
    let mut script = Script::with_out(config, 10);
    script.run("+0 write 20000");
    script
}

#[test]
fn three_duplicates_send_the_first_segment_again_and_halve_the_window() {
    ten_out(plain()).run(
        "100 < . 1:1 ack 1 win 65535
         +1 < . 1:1 ack 1 win 65535
         +0 ? phase Disorder cwnd 10000
         +1 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # ssthresh = FlightSize / 2; the window of 5 plus 3 duplicates is below the 10 that are out.
         +0 ? phase Recovery ssthresh 5000 cwnd 5000
         +1 < . 1:1 ack 1 win 65535
         +1 < . 1:1 ack 1 win 65535
         # 5 + 6 duplicates exceed 10: one new segment for each from here (RFC 5681, 3.2 step 5).
         +1 < . 1:1 ack 1 win 65535
         +0 > . 10001:11001 ack 1
         +1 < . 1:1 ack 1 win 65535
         +0 > . 11001:12001 ack 1
         # Full acknowledgement: cwnd = min(ssthresh, FlightSize + SMSS) (RFC 6582, 3.2 step 3 option 1).
         +80 < . 1:1 ack 10001 win 65535
         +0 ? phase Open cwnd 3000
         +0 > . 12001:13001 ack 1",
    );
}

#[test]
fn partial_acks_send_the_next_hole_and_deflate() {
    ten_out(plain()).run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 3x < . 1:1 ack 1 win 65535
         +0 > . 10001:11001 ack 1
         +0 < . 1:1 ack 1 win 65535
         +0 > . 11001:12001 ack 1
         +0 < . 1:1 ack 1 win 65535
         +0 > . 12001:13001 ack 1
         # Segments 1 and 6 were lost: 5 segments acknowledged, the window deflates by 5 and grows by 1 (RFC 6582, 3.2 step 3).
         200 < . 1:1 ack 5001 win 65535
         +0 > . 5001:6001 ack 1 again
         +0 > . 13001:14001 ack 1
         +0 ? phase Recovery cwnd 5000 pipe 5000
         # The first partial ACK has restarted the timer, the second one does not.
         900 < . 1:1 ack 7001 win 65535
         +0 > . 7001:8001 ack 1 again
         +0 > . 14001:15001 ack 1
         +0 ? phase Recovery
         1200 > . 7001:8001 ack 1 again
         +0 ? phase Loss timeouts 1",
    );
}

#[test]
fn patience_restarts_the_timer_at_each_partial_ack() {
    let config = Config {
        impatient: netsim::tcp::config::Impatient::Never,
        ..plain()
    };
    ten_out(config).run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         200 < . 1:1 ack 1001 win 65535
         +0 > . 1001:2001 ack 1 again
         900 < . 1:1 ack 2001 win 65535
         +0 > . 2001:3001 ack 1 again
         1899 ? timeouts 0
         1900 > . 2001:3001 ack 1 again
         +0 ? timeouts 1",
    );
}

#[test]
fn duplicates_of_a_finished_recovery_do_not_begin_another() {
    ten_out(plain()).run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 < . 1:1 ack 10001 win 65535
         +0 ? phase Open cwnd 2000
         +0 > . 10001:12001 ack 1 each 1000
         # `recover` is not yet exceeded (RFC 6582, 3.2 step 2).
         +1 < . 1:1 ack 10001 win 65535
         +1 < . 1:1 ack 10001 win 65535
         +1 < . 1:1 ack 10001 win 65535
         +1 < . 1:1 ack 10001 win 65535
         +0 ? phase Disorder retransmits 1",
    );
}

#[test]
fn data_and_window_updates_are_no_duplicates() {
    ten_out(plain()).run(
        "100 < . 1:101 ack 1 win 65535
         +0 < . 101:201 ack 1 win 65535
         +0 > . 10001:10001 ack 201
         +0 < . 201:201 ack 1 win 60000
         +0 < . 201:201 ack 1 win 65535
         +0 < . 201:201 ack 1 win 60000
         +0 ? phase Open duplicates 0",
    );
}

#[test]
fn ns3_sends_a_head_again_that_it_took_for_delivered() {
    let config = Config {
        detection: netsim::tcp::config::Detection::Ns3,
        ..plain()
    };
    Script::with_out(config, 6).run(
        "# Two segments overtake the first: segments 2 and 3 are booked as delivered.
         10 2x < . 1:1 ack 1 win 65535
         +0 ? phase Disorder pipe 4000
         # The ACK stops at segment 3, which had been booked: taken for lost, sent again, with no recovery under way.
         +1 < . 1:1 ack 2001 win 65535
         +0 > . 2001:3001 ack 1 again
         +0 ? phase Open",
    );
}
