//! RACK-TLP (RFC 8985): losses by time, the window for reordering, probes of the tail.

use super::plain;
use super::script::Script;
use netsim::tcp::config::{Detection, TimeoutRule};
use netsim::tcp::Config;

fn with_rack() -> Config {
    Config {
        sack: true,
        dsack: true,
        detection: Detection::Rack,
        ..plain()
    }
}

/// A client whose handshake took 100 ms, with this many segments out that left at 100 ms.
fn with_out(segments: u32) -> Script {
    let mut script = Script::client(Config {
        initial_window_segments: segments,
        ..with_rack()
    });
    script.run(
        "0 > S 0:0
         100 < S. 0:0 ack 1 win 65535 <mss 1000,sackOK>
         +0 > . 1:1 ack 1",
    );
    let bytes = segments * 1000;
    script.run(&format!(
        "+0 write {bytes}\n+0 > . 1:{} ack 1 each 1000",
        1 + bytes
    ));
    script
}

/// Six segments out, of which the first is acknowledged after 100 ms, and two more that left then.
fn established() -> Script {
    let mut script = with_out(6);
    script.run(
        "+0 write 2000
         200 < . 1:1 ack 1001 win 65535
         +0 > . 6001:8001 ack 1 each 1000
         +0 ? cwnd 7000 phase Open",
    );
    script
}

#[test]
fn three_segments_that_left_later_make_one_lost_at_once_where_nothing_was_ever_reordered() {
    established().run(
        "210 < . 1:1 ack 1001 win 65535 sack 2001 3001
         +0 < . 1:1 ack 1001 win 65535 sack 2001 4001
         # 6.2 step 4: three are SACKed, so there is no window, and the round trip of 110 ms is over.
         +0 < . 1:1 ack 1001 win 65535 sack 2001 5001
         +0 > . 1001:2001 ack 1 again
         +0 ? phase Recovery ssthresh 3500",
    );
}

#[test]
fn a_quarter_of_the_least_round_trip_is_waited_for_one_that_fewer_have_overtaken() {
    established().run(
        "210 < . 1:1 ack 1001 win 65535 sack 2001 3001
         +0 ? phase Disorder retransmits 0
         # 100 + 110 + 100 / 4.
         235 > . 1001:2001 ack 1 again
         +0 ? phase Recovery",
    );
}

#[test]
fn once_segments_were_reordered_the_window_is_kept_however_many_overtake() {
    with_out(8).run(
        "200 < . 1:1 ack 1001 win 65535
         210 < . 1:1 ack 1001 win 65535 sack 2001 3001
         # Late, and never sent again: reordering (6.2 step 3).
         230 < . 1:1 ack 3001 win 65535
         +0 ? phase Open retransmits 0
         240 < . 1:1 ack 3001 win 65535 sack 4001 5001
         +0 < . 1:1 ack 3001 win 65535 sack 4001 6001
         +0 < . 1:1 ack 3001 win 65535 sack 4001 7001
         +0 ? retransmits 0
         # 100 + 140 + 100 / 4.
         265 > . 3001:4001 ack 1 again",
    );
}

#[test]
fn a_probe_of_the_tail_sends_the_last_segment_again_after_two_round_trips() {
    with_out(3).run(
        "200 < . 1:1 ack 2001 win 65535
         +0 ? srtt 100
         # 7.2: 2 * SRTT, and 200 ms for an ACK that is delayed, since one segment is out; it is sent again (7.3).
         600 > . 2001:3001 ack 1 again
         +0 ? phase Open timeouts 0
         # It was not lost: both copies have arrived (7.4).
         700 < . 1:1 ack 3001 win 65535 sack 2001 3001
         800 < . 1:1 ack 3001 win 65535
         +0 ? phase Open ssthresh 18446744073709551615",
    );
}

#[test]
fn a_probe_that_makes_a_loss_good_shrinks_the_window() {
    with_out(3).run(
        "200 < . 1:1 ack 2001 win 65535
         600 > . 2001:3001 ack 1 again
         +0 write 1000
         +0 > . 3001:4001 ack 1
         # An ACK beyond the probe, and no report of a duplicate (7.4).
         700 < . 1:1 ack 4001 win 65535
         +0 ? phase Open ssthresh 2000 cwnd 2000",
    );
}

#[test]
fn a_probe_is_new_data_where_there_is_any() {
    with_out(3).run(
        "200 < . 1:1 ack 1001 win 65535
         +0 write 3000
         +0 > . 3001:5001 ack 1 each 1000
         # Two round trips and 8 ms later, beyond the window of four.
         408 > . 5001:6001 ack 1
         +0 ? phase Open timeouts 0",
    );
}

#[test]
fn a_probe_that_is_due_with_the_timeout_leaves_in_its_place() {
    let mut script = Script::client(Config {
        timeout: TimeoutRule::LeastMargin,
        rto: Config::linux().rto,
        ..with_rack()
    });
    script.run(
        "0 > S 0:0
         100 < S. 0:0 ack 1 win 65535 <mss 1000,sackOK>
         +0 > . 1:1 ack 1
         +0 write 1000
         +0 > . 1:1001 ack 1
         # The timeout is 300 ms, two round trips and 200 ms are 400.
         400 > . 1:1001 ack 1 again
         +0 ? phase Open timeouts 0
         # It begins again with the probe.
         700 > . 1:1001 ack 1 again
         +0 ? phase Loss timeouts 1",
    );
}

#[test]
fn what_an_ack_acknowledges_beside_its_blocks_is_no_reordering() {
    with_out(8).run(
        "200 < . 1:1 ack 1001 win 65535
         # The second segment's ACK waited for another; the fourth came, the third is lost.
         210 < . 1:1 ack 2001 win 65535 sack 3001 4001
         +0 < . 1:1 ack 2001 win 65535 sack 3001 5001
         +0 < . 1:1 ack 2001 win 65535 sack 3001 6001
         +0 > . 2001:3001 ack 1 again
         +0 ? phase Recovery",
    );
}

#[test]
fn rack_needs_sack() {
    let config = Config {
        sack: false,
        dsack: false,
        ..with_rack()
    };
    let error = config.validate().expect_err("refused");
    assert!(error.starts_with("TCP setting sack must be"), "{error}");
    assert!(error.contains("RFC 8985"), "{error}");
}
