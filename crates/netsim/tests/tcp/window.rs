//! Windows: scaling (RFC 7323, 2), the closed window (RFC 9293, 3.8.6.1), silly windows (3.8.6.2).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

#[test]
fn scaling_is_agreed_on_and_used() {
    let config = Config {
        window_scaling: true,
        ..plain()
    };
    Script::server(config).run(
        "0 < S 0:0 win 65535 <mss 1000,wscale 3>
         # The window of a SYN is not scaled; 131072 needs a shift of 2.
         +0 > S. 0:0 ack 1 win 65535 <mss 1000,wscale 2>
         +10 < . 1:1 ack 1 win 65535
         +0 < . 1:1001 ack 1 win 65535
         +0 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001 win 129072",
    );
}

#[test]
fn without_scaling_the_window_ends_at_65535() {
    Script::server(Config {
        window_scaling: true,
        ..plain()
    })
    .run(
        "0 < S 0:0 win 65535 <mss 1000>
         +0 > S. 0:0 ack 1 win 65535 <mss 1000>
         +10 < . 1:1 ack 1 win 65535
         +0 < . 1:1001 ack 1 win 65535
         +0 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001 win 65535",
    );
}

#[test]
fn a_closed_window_is_probed_ever_more_rarely() {
    Script::with_out(plain(), 4).run(
        "+0 write 2000
         10 < . 1:1 ack 4001 win 0
         1010 > . 4001:4002 ack 1
         1020 < . 1:1 ack 4001 win 0
         3010 > . 4001:4002 ack 1
         3020 < . 1:1 ack 4001 win 0
         7010 > . 4001:4002 ack 1
         # The window opens: the byte is taken and the rest follows.
         7020 < . 1:1 ack 4002 win 65535
         +0 > . 4002:5002 ack 1
         +0 > . 5002:6001 ack 1
         7030 < . 1:1 ack 6001 win 65535
         99999 ? timeouts 0 free 131072",
    );
}

#[test]
fn a_window_update_ends_the_probing() {
    Script::connected(Config {
        initial_window_segments: 1,
        ..plain()
    })
    .run(
        "0 write 2000
         +0 > . 1:1001 ack 1
         10 < . 1:1 ack 1001 win 0
         500 < . 1:1 ack 1001 win 5000
         +0 > . 1001:2001 ack 1",
    );
}

#[test]
fn a_small_window_sends_nothing_until_it_is_worth_it() {
    Script::connected(Config {
        initial_window_segments: 1,
        ..plain()
    })
    .run(
        "0 write 3000
         +0 > . 1:1001 ack 1
         10 < . 1:1 ack 1001 win 400
         # The override: what fits, once the persist timer has expired.
         1010 > . 1001:1401 ack 1
         1020 < . 1:1 ack 1401 win 5000
         +0 > . 1401:2401 ack 1
         +0 > . 2401:3001 ack 1",
    );
}

#[test]
fn a_full_receive_buffer_closes_the_window_and_reading_opens_it() {
    let config = Config {
        receive_buffer_bytes: 4000,
        ..plain()
    };
    Script::connected(config).run(
        "10 < . 1:1001 ack 1 win 65535
         +0 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 2001 win 2000
         +0 < . 2001:3001 ack 1 win 65535
         +0 < . 3001:4001 ack 1 win 65535
         +0 > . 1:1 ack 4001 win 0
         # A probe: not taken, answered.
         +0 < . 4001:4002 ack 1 win 65535
         +0 > . 1:1 ack 4001 win 0
         # Less than a segment is not advertised, a segment is.
         +10 read 600
         +10 read 400
         +0 > . 1:1 ack 4001 win 1000
         +0 ? readable 3000",
    );
}

#[test]
fn the_send_buffer_holds_what_is_not_acknowledged() {
    Script::connected(Config {
        send_buffer_bytes: 5000,
        initial_window_segments: 2,
        ..plain()
    })
    .run(
        "0 write 5000
         +0 > . 1:2001 ack 1 each 1000
         +0 ? free 0
         10 < . 1:1 ack 1001 win 65535
         +0 > . 2001:4001 ack 1 each 1000
         +0 ? free 1000",
    );
}
