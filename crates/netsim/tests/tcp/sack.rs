//! Selective acknowledgements (RFC 2018, RFC 6675).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

fn with_sack() -> Config {
    Config {
        sack: true,
        mss_bytes: 1000,
        ..plain()
    }
}

#[test]
fn the_receiver_reports_what_it_has_the_newest_first() {
    Script::connected(Config {
        mss_bytes: 536,
        ..with_sack()
    })
    .run(
        "10 < . 101:201 ack 1 win 65535
         +0 > . 1:1 ack 1 sack 101 201
         +0 < . 301:401 ack 1 win 65535
         +0 > . 1:1 ack 1 sack 301 401 sack 101 201
         +0 < . 501:601 ack 1 win 65535
         +0 > . 1:1 ack 1 sack 501 601 sack 301 401 sack 101 201
         # Joined ranges are one block.
         +0 < . 201:301 ack 1 win 65535
         +0 > . 1:1 ack 1 sack 101 401 sack 501 601
         +0 < . 1:101 ack 1 win 65535
         +0 > . 1:1 ack 401 sack 501 601
         +0 < . 401:501 ack 1 win 65535
         +0 > . 1:1 ack 601 nosack",
    );
}

#[test]
fn timestamps_leave_room_for_three_blocks() {
    Script::connected(Config {
        timestamps: true,
        mss_bytes: 536,
        ..with_sack()
    })
    .run(
        "10 < . 101:201 ack 1 win 65535 ts 10 0
         +0 > . 1:1 ack 1 sack 101 201
         +0 < . 301:401 ack 1 win 65535 ts 10 0
         +0 > . 1:1 ack 1 sack 301 401 sack 101 201
         +0 < . 501:601 ack 1 win 65535 ts 10 0
         +0 > . 1:1 ack 1 sack 501 601 sack 301 401 sack 101 201
         +0 < . 701:801 ack 1 win 65535 ts 10 0
         +0 > . 1:1 ack 1 sack 701 801 sack 501 601 sack 301 401",
    );
}

/// Eight segments of 536 bytes out of 30.
fn eight_out(config: Config) -> Script {
    let config = Config {
        mss_bytes: 536,
        limited_transmit: false,
        ..config
    };
    let mut script = Script::with_out(config, 8);
    script.run("+0 write 10720");
    script
}

#[test]
fn holes_are_filled_in_one_round_trip() {
    // Segments 1 and 4 are lost.
    eight_out(with_sack()).run(
        "100 < . 1:1 ack 1 win 65535 sack 537 1073
         +0 < . 1:1 ack 1 win 65535 sack 537 1609
         +0 ? phase Disorder
         +0 < . 1:1 ack 1 win 65535 sack 2145 2681 sack 537 1609
         +0 > . 1:537 ack 1 again
         +0 ? phase Recovery ssthresh 2144 cwnd 2144 pipe 2680
         +0 < . 1:1 ack 1 win 65535 sack 2145 3217 sack 537 1609
         # Segment 4 has three above it now: lost. Under way: 1 and 8; there is room for it and for new data.
         +0 < . 1:1 ack 1 win 65535 sack 2145 3753 sack 537 1609
         +0 > . 1609:2145 ack 1 again
         +0 > . 4289:4825 ack 1
         +0 < . 1:1 ack 1 win 65535 sack 2145 4289 sack 537 1609
         +0 > . 4825:5361 ack 1
         200 < . 1:1 ack 1609 win 65535 sack 2145 4289
         +0 > . 5361:5897 ack 1
         +0 ? phase Recovery retransmits 2
         +0 < . 1:1 ack 5361 win 65535
         +0 > . 5897:6433 ack 1
         +0 ? phase Open cwnd 1072",
    );
}

#[test]
fn a_sender_without_the_peers_permission_ignores_blocks() {
    let mut script = Script::client(Config {
        mss_bytes: 1000,
        initial_window_segments: 2,
        ..with_sack()
    });
    script.run(
        "0 > S 0:0 <mss 1000,sackOK>
         +0 < S. 0:0 ack 1 win 65535 <mss 1000>
         +0 > . 1:1 ack 1
         +0 < . 1001:2001 ack 1 win 65535
         +0 > . 1:1 ack 1 nosack",
    );
}

#[test]
fn blocks_survive_a_timeout() {
    eight_out(with_sack()).run(
        "100 < . 1:1 ack 1 win 65535 sack 537 1609
         1000 > . 1:537 ack 1 again
         # What was SACKed is not sent again (RFC 6675, 5.1).
         1100 < . 1:1 ack 1609 win 65535
         +0 > . 1609:2681 ack 1 again each 536
         +0 ? phase Loss",
    );
}
