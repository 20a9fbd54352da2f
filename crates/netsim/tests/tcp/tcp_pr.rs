//! TCP-PR (Bohacek et al. 2003): duplicates tell nothing, and what is out for three of the greatest round trips is lost.

use super::plain;
use super::script::Script;
use netsim::tcp::config::{Detection, RtoSettings};
use netsim::tcp::Config;
use netsim::time::SECOND;

fn with_delay() -> Config {
    Config {
        detection: Detection::Delay,
        rto: RtoSettings {
            min: 10 * SECOND,
            ..plain().rto
        },
        ..plain()
    }
}

#[test]
fn duplicates_change_nothing_and_delay_does() {
    Script::with_out(with_delay(), 4).run(
        "+0 write 4000
         100 < . 1:1 ack 1001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         150 4x < . 1:1 ack 1001 win 65535
         +0 ? retransmits 0 cwnd 5000
         # What left at 0 ms has had 3 * 100 ms, all three at once; the window halves.
         300 > . 1001:2001 ack 1 again
         +0 ? phase Recovery ssthresh 2500 cwnd 2500",
    );
}

#[test]
fn what_comes_in_time_is_not_sent_again_however_late() {
    Script::with_out(with_delay(), 4).run(
        "100 < . 1:1 ack 1001 win 65535
         290 < . 1:1 ack 4001 win 65535
         600 ? retransmits 0 phase Open",
    );
}

#[test]
fn the_greatest_round_trip_is_what_counts() {
    let mut script = Script::with_out(with_delay(), 2);
    script.run(
        "200 < . 1:1 ack 2001 win 65535
         +0 write 1000
         +0 > . 2001:3001 ack 1
         210 < . 1:1 ack 3001 win 65535
         +0 write 1000
         +0 > . 3001:4001 ack 1
         # One sample of 10 ms lowers it by a third of half a per cent: 3 * 199.7 ms.
         808 ? retransmits 0",
    );
    script.inject("810 ? retransmits 1 phase Recovery");
}
