//! TCP-DOOR: packet numbers, and the window held and given back by what they show (Wang and Zhang 2002); no fast retransmit at all.

use super::plain;
use super::script::Script;
use netsim::tcp::config::{Detection, SpuriousHandling};
use netsim::tcp::Config;

fn with_door() -> Config {
    Config {
        limited_transmit: false,
        spurious: SpuriousHandling::Door,
        ..plain()
    }
}

#[test]
fn a_receiver_tells_that_data_came_late_but_not_that_it_was_lost() {
    let mut script = Script::server(with_door());
    script.run(
        "0 < S 0:0 win 65535 <mss 1000> number 1
         +0 > S. 0:0 ack 1 number 1
         +0 < . 1:1001 ack 1 win 65535 number 2
         # 1001:2001, number 3, is missing: late or lost.
         +10 < . 2001:3001 ack 1 win 65535 number 4
         +0 > . 1:1 ack 1001 number 2
         # Sent again it has a number of its own, and nothing came late.
         +10 < . 1001:2001 ack 1 win 65535 number 5
         +0 > . 1:1 ack 3001
         +10 < . 4001:5001 ack 1 win 65535 number 7
         +0 > . 1:1 ack 3001
         # The original: it left before what has arrived.
         +10 < . 3001:4001 ack 1 win 65535 number 6
         +0 > . 1:1 ack 5001 disorder",
    );
}

#[test]
fn a_recent_reduction_is_taken_back_and_none_follows_for_a_while() {
    Script::with_out(with_door(), 10).run(
        "+0 write 10000
         100 < . 1:1 ack 1 win 65535 number 11
         +0 < . 1:1 ack 1 win 65535 number 12
         +0 < . 1:1 ack 1 win 65535 number 13
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery cwnd 5000 ssthresh 5000
         # Instant recovery (section 3.3.2).
         +10 < . 1:1 ack 4001 win 65535 number 14 disorder
         +0 ? phase Open undone 1
         +0 > . 10001:15001 ack 1 each 1000
         # The old window, and growth by this ACK.
         +0 ? cwnd 11000 pipe 11000
         +10 < . 1:1 ack 11001 win 65535 number 15
         +0 > . 15001:20001 ack 1 each 1000
         # Within T1 (section 3.3.1) what is lost is sent again, and the window stays.
         +10 < . 1:1 ack 11001 win 65535 number 16
         +0 < . 1:1 ack 11001 win 65535 number 17
         +0 < . 1:1 ack 11001 win 65535 number 18
         +0 > . 11001:12001 ack 1 again
         +0 ? phase Recovery cwnd 12000",
    );
}

#[test]
fn an_acknowledgement_that_comes_late_tells_of_disorder_too() {
    Script::with_out(with_door(), 10).run(
        "+0 write 10000
         100 < . 1:1 ack 1 win 65535 number 11
         +0 < . 1:1 ack 1 win 65535 number 12
         +0 < . 1:1 ack 1 win 65535 number 14
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery undone 0
         +0 < . 1:1 ack 1 win 65535 number 13
         +0 ? undone 1 cwnd 10000",
    );
}

#[test]
fn a_reduction_of_long_ago_stands() {
    Script::with_out(with_door(), 10).run(
        "100 < . 1:1 ack 1 win 65535 number 11
         +0 < . 1:1 ack 1 win 65535 number 12
         +0 < . 1:1 ack 1 win 65535 number 13
         +0 > . 1:1001 ack 1 again
         110 < . 1:1 ack 10001 win 65535 number 14
         +0 ? phase Open cwnd 2000 ssthresh 5000 rto 1000
         # T2 is the timeout.
         1200 < . 1:1 ack 10001 win 65535 number 15 disorder
         +0 ? undone 0 ssthresh 5000",
    );
}

#[test]
fn a_timeout_is_taken_back_and_while_the_window_is_held_none_changes_anything() {
    Script::with_out(with_door(), 4).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000 rto 2000
         1500 < . 1:1 ack 1001 win 65535 number 12 disorder
         +0 ? undone 1 phase Open cwnd 5000
         # From then on it is held for 2 s, and the timer does not back off.
         2500 < . 1:1 ack 1001 win 65535 number 13 disorder
         3500 > . 1001:4001 ack 1 again each 1000
         +0 ? phase Loss timeouts 2 cwnd 5000 rto 2000",
    );
}

#[test]
fn without_fast_retransmit_duplicates_change_nothing() {
    let config = Config {
        detection: Detection::TimerOnly,
        ..plain()
    };
    Script::with_out(config, 4).run(
        "+0 write 4000
         100 4x < . 1:1 ack 1 win 65535
         +0 ? phase Disorder cwnd 4000 retransmits 0
         1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000",
    );
}
