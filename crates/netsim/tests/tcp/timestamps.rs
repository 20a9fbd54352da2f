//! Timestamps and Karn's rule (RFC 7323; RFC 6298, 3).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

#[test]
fn timestamps_are_agreed_on_and_echoed() {
    let config = Config {
        timestamps: true,
        ..plain()
    };
    Script::client(config).run(
        "0 > S 0:0 ts 0 0
         40 < S. 0:0 ack 1 win 65535 <mss 1000,ts 900 0>
         +0 > . 1:1 ack 1 ts 40 900
         +0 ? srtt 40
         # Two segments, one ACK: the echo is of the first, so that the delay of the ACK counts (RFC 7323, 4.3).
         50 < . 1:1001 ack 1 win 65535 ts 910 40
         52 < . 1001:2001 ack 1 win 65535 ts 912 40
         +0 > . 1:1 ack 2001 ts 52 910
         # Out of order: the timestamp is not taken.
         60 < . 3001:4001 ack 1 win 65535 ts 920 40
         +0 > . 1:1 ack 2001 ts 60 910",
    );
}

#[test]
fn the_clock_ticks_in_milliseconds() {
    Script::connected(Config {
        timestamps: true,
        ..plain()
    })
    .run(
        "10.7 write 1000
         +0 > . 1:1001 ack 1 ts 10 0
         15.2 < . 1:1 ack 1001 win 65535 ts 5 10
         +0 ? srtt 0.625875",
    );
}

#[test]
fn without_timestamps_what_was_sent_twice_is_not_timed() {
    let text = "0 write 1000
         +0 > . 1:1001 ack 1
         1000 > . 1:1001 ack 1 again
         1050 < . 1:1 ack 1001 win 65535
         +0 ? srtt 0 rto 2000";
    Script::connected(plain()).run(text);
}

#[test]
fn with_timestamps_what_was_sent_twice_is_timed_by_its_echo() {
    Script::connected(Config {
        timestamps: true,
        ..plain()
    })
    .run(
        "0 write 2000
         +0 > . 1:2001 ack 1 each 1000
         100 3x < . 1:1 ack 1 win 65535 ts 100 0
         +0 > . 1:1001 ack 1 again ts 100 100
         180 < . 1:1 ack 2001 win 65535 ts 180 100
         # 1/8 of 80 ms beside the handshake's microsecond.
         +0 ? srtt 10.000875",
    );
}

#[test]
fn with_timestamps_what_left_before_a_timeout_is_timed_by_its_echo() {
    Script::with_out(
        Config {
            timestamps: true,
            ..plain()
        },
        1,
    )
    .run(
        "1000 > . 1:1001 ack 1 again
         # The first copy, late: else each segment after it would be sent again too.
         1160 < . 1:1 ack 1001 win 65535 ts 1160 0
         +0 ? timeouts 1 srtt 145.000875",
    );
}
