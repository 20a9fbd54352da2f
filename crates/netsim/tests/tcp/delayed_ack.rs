//! When ACKs leave (RFC 5681, 4.2; RFC 1122, 4.2.3.2).

use super::plain;
use super::script::Script;
use netsim::tcp::config::AckRules;
use netsim::tcp::Config;

#[test]
fn each_second_segment_is_acknowledged_and_a_single_one_after_200_ms() {
    Script::connected(plain()).run(
        "10 < . 1:1001 ack 1 win 65535
         20 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001
         30 < . 2001:3001 ack 1 win 65535
         230 > . 1:1 ack 3001
         240 ? readable 3000",
    );
}

#[test]
fn out_of_order_data_and_filled_gaps_are_acknowledged_at_once() {
    Script::connected(plain()).run(
        "10 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 1
         11 < . 3001:4001 ack 1 win 65535
         +0 > . 1:1 ack 1
         # Part of a gap.
         12 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 2001
         # The rest.
         13 < . 2001:3001 ack 1 win 65535
         +0 > . 1:1 ack 4001
         # Old data.
         14 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 4001
         +0 ? readable 4000",
    );
}

#[test]
fn data_carries_the_ack() {
    Script::connected(plain()).run(
        "10 < . 1:1001 ack 1 win 65535
         50 write 100
         +0 > . 1:101 ack 1001
         # The timer is off.
         500 < . 1001:1001 ack 101 win 65535",
    );
}

#[test]
fn delaying_can_be_turned_off_or_stretched() {
    Script::connected(Config {
        delayed_ack_segments: 1,
        ..plain()
    })
    .run(
        "10 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 1001",
    );
    Script::connected(Config {
        delayed_ack_segments: 4,
        delayed_ack_timeout: 40_000_000,
        ..plain()
    })
    .run(
        "10 < . 1:1001 ack 1 win 65535
         11 < . 1001:2001 ack 1 win 65535
         12 < . 2001:3001 ack 1 win 65535
         50 > . 1:1 ack 3001",
    );
}

#[test]
fn the_first_segments_may_be_acknowledged_at_once() {
    Script::connected(Config {
        acks: AckRules {
            quick: 2,
            ..plain().acks
        },
        ..plain()
    })
    .run(
        "10 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 1001
         20 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001
         30 < . 2001:3001 ack 1 win 65535
         230 > . 1:1 ack 3001
         # A pause or old data change nothing.
         5000 < . 3001:4001 ack 1 win 65535
         5010 < . 3001:4001 ack 1 win 65535
         +0 > . 1:1 ack 4001
         5020 < . 4001:5001 ack 1 win 65535
         5220 > . 1:1 ack 5001",
    );
}

/// A client whose stack acknowledges as Linux's does, and which is first sent what its server pushes.
fn linux() -> Script {
    Script::connected(Config {
        acks: AckRules {
            when_read: true,
            ..plain().acks
        },
        receive_buffer_bytes: 65_535,
        ..plain()
    })
}

#[test]
fn linux_acknowledges_what_is_pushed_once_it_is_read() {
    linux().run(
        "10 < P. 1:1001 ack 1 win 65535
         11 read 500
         12 read 500
         +0 > . 1:1 ack 1001
         # More is to come.
         20 < . 1001:2001 ack 1 win 65535
         21 read 1000
         220 > . 1:1 ack 2001",
    );
}

#[test]
fn linux_lets_data_carry_the_ack_where_it_answers_until_the_timer_expires() {
    linux().run(
        "10 < P. 1:1001 ack 1 win 65535
         +0 write 100
         +0 > P. 1:101 ack 1001
         20 < P. 1001:2001 ack 101 win 65535
         21 read 2000
         220 > . 101:101 ack 2001
         300 < P. 2001:3001 ack 101 win 65535
         301 read 1000
         +0 > . 101:101 ack 3001",
    );
}

#[test]
fn linux_acknowledges_segments_at_once_that_begin_or_follow_a_pause_or_old_data() {
    // The window is 4 times two segments.
    Script::connected(Config {
        acks: AckRules {
            quick: 16,
            when_read: true,
            ..plain().acks
        },
        mss_bytes: 1000,
        receive_buffer_bytes: 8_000,
        ..plain()
    })
    .run(
        "10 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 1001
         11 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001
         12 < . 2001:3001 ack 1 win 65535
         +0 > . 1:1 ack 3001
         # Data that leaves carries an ACK, and counts; what follows is answered.
         13 < . 3001:4001 ack 1 win 65535
         +0 > . 1:1 ack 4001
         14 read 4000
         +0 > . 1:1 ack 4001
         20 < . 4001:5001 ack 1 win 65535
         220 > . 1:1 ack 5001
         # After more than the timeout.
         1300 < . 5001:6001 ack 1 win 65535
         +0 > . 1:1 ack 6001
         +0 write 100
         +0 > P. 1:101 ack 6001
         # It answers now, until it gets old data.
         1310 < . 6001:7001 ack 101 win 65535
         1320 < . 5001:6001 ack 101 win 65535
         +0 > . 101:101 ack 7001
         1330 < . 7001:8001 ack 101 win 65535
         +0 > . 101:101 ack 8001",
    );
}

#[test]
fn linux_takes_small_segments_of_one_size_for_full_ones_before_it_knows_them() {
    // 524 bytes and the timestamps are as long as a segment that it expects before it has seen any.
    Script::connected(Config {
        acks: AckRules {
            when_read: true,
            ..plain().acks
        },
        mss_bytes: 1000,
        timestamps: true,
        receive_buffer_bytes: 65_535,
        ..plain()
    })
    .run(
        "10 < P. 1:525 ack 1 win 65535 ts 10 0
         11 read 524
         +0 > . 1:1 ack 525 ts 11 10
         # Pushed, but of the size before: the estimate falls.
         20 < P. 525:1049 ack 1 win 65535 ts 20 11
         21 read 524
         220 > . 1:1 ack 1049 ts 220 20
         300 < P. 1049:1573 ack 1 win 65535 ts 300 220
         301 read 524
         +0 > . 1:1 ack 1573 ts 301 300",
    );
}
