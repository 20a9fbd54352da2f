//! Subflows of ns-3's MPTCP model: one segment is sent again for the third duplicate (Chihani and Collange 2011).

use super::common::script::Script;
use super::plain;
use netsim::tcp::config::{Detection, Repair};
use netsim::tcp::{Config, Profile};

#[test]
fn the_third_duplicate_sends_one_segment_again_and_halves_the_window() {
    let config = Config {
        limited_transmit: false,
        detection: Detection::Ns3Mptcp,
        repair: Repair::First,
        ..plain()
    };
    Script::with_out(config, 10).run(
        "+0 write 10000
         # A change of the window makes no difference: all subflows share it.
         100 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 64000
         +0 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery cwnd 5000 ssthresh 5000
         # Nothing follows from further duplicates, nor from a partial acknowledgement.
         +0 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +10 < . 1:1 ack 2001 win 65535
         +0 ? phase Open",
    );
}

#[test]
fn the_profile_is_that_of_the_model() {
    let config = Config::profile(Profile::Ns3Mptcp);
    assert_eq!(
        (config.detection, config.repair),
        (Detection::Ns3Mptcp, Repair::First)
    );
    assert_eq!(config.initial_ssthresh_bytes, 65_535);
    assert_eq!(config.delayed_ack_segments, 1);
}
