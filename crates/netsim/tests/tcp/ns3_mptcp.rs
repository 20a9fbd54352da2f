//! Subflows of ns-3's MPTCP model: one segment is sent again for the third duplicate (Chihani and Collange 2011), and what its methods
//! against reordering make of that.

use super::common::script::Script;
use super::plain;
use netsim::tcp::config::{Detection, Ns3MptcpMethod, Repair, Sampling};
use netsim::tcp::{Config, Profile};

fn model(method: Ns3MptcpMethod) -> Config {
    Config {
        limited_transmit: false,
        detection: Detection::Ns3Mptcp(method),
        repair: Repair::First,
        sampling: Sampling::Departures,
        ..plain()
    }
}

#[test]
fn the_third_duplicate_sends_one_segment_again_and_halves_the_window() {
    Script::with_out(model(Ns3MptcpMethod::NoPr), 10).run(
        "+0 write 10000
         # A change of the window makes no difference: all subflows share it.
         100 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 64000
         +0 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # Congestion avoidance from two segments on, whatever the window was.
         +0 ? phase Recovery cwnd 5000 ssthresh 2000
         # Nothing follows from further duplicates, nor from a partial acknowledgement.
         +0 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +10 < . 1:1 ack 2001 win 65535
         +0 ? phase Open",
    );
}

#[test]
fn the_window_may_shrink_to_one_segment() {
    Script::with_out(model(Ns3MptcpMethod::NoPr), 3).run(
        "100 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? cwnd 1500 ssthresh 2000",
    );
}

#[test]
fn duplicates_count_after_a_timeout_too() {
    Script::with_out(model(Ns3MptcpMethod::NoPr), 8).run(
        "100 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 4000
         +10 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery cwnd 2000",
    );
}

#[test]
fn tcp_door_ignores_duplicates() {
    Script::with_out(model(Ns3MptcpMethod::Door), 8).run(
        "100 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +0 < . 1:1 ack 1 win 65535
         +0 ? cwnd 8000
         1000 > . 1:1001 ack 1 again
         +0 ? cwnd 4000",
    );
}

#[test]
fn the_profile_is_that_of_the_model() {
    let config = Config::profile(Profile::Ns3Mptcp);
    assert_eq!(
        (config.detection, config.repair),
        (Detection::Ns3Mptcp(Ns3MptcpMethod::NoPr), Repair::First)
    );
    assert_eq!(config.initial_window_segments, 1);
    assert_eq!(config.initial_ssthresh_bytes, 65_535);
    assert_eq!(config.delayed_ack_segments, 1);
}
