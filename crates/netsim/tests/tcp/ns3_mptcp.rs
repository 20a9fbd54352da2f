//! Subflows of ns-3's MPTCP model: one segment is sent again for the third duplicate (Chihani and Collange 2011), and what its methods
//! against reordering make of that.

use super::plain;
use super::script::Script;
use netsim::tcp::config::{Detection, Ns3MptcpMethod, Reduction, RetransmissionScope, RttSampling};
use netsim::tcp::{Config, Profile};
use netsim::time::MILLISECOND;

fn model(method: Ns3MptcpMethod) -> Config {
    Config {
        limited_transmit: false,
        detection: Detection::Ns3Mptcp(method),
        repair: RetransmissionScope::First,
        sampling: RttSampling::Departures,
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
         +0 2x < . 1:1 ack 1 win 65535
         +10 < . 1:1 ack 2001 win 65535
         +0 ? phase Open",
    );
}

#[test]
fn the_window_may_shrink_to_one_segment() {
    Script::with_out(model(Ns3MptcpMethod::NoPr), 3).run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? cwnd 1500 ssthresh 2000",
    );
}

#[test]
fn duplicates_count_after_a_timeout_too() {
    Script::with_out(model(Ns3MptcpMethod::NoPr), 8).run(
        "100 2x < . 1:1 ack 1 win 65535
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
        "100 4x < . 1:1 ack 1 win 65535
         +0 ? cwnd 8000
         1000 > . 1:1001 ack 1 again
         +0 ? cwnd 4000",
    );
}

/// Ten segments of time 0 are out; the third duplicate of time 0 sends the first again at 100 ms.
fn eifel_after_a_fast_retransmit() -> Script {
    let config = Config {
        timestamps: true,
        ..model(Ns3MptcpMethod::Eifel)
    };
    let mut script = Script::with_out(config, 10);
    script.run(
        "100 3x < . 1:1 ack 1 win 65535 ts 100 0
         +0 > . 1:1001 ack 1 again ts 100 100
         +0 ? phase Recovery cwnd 5000 ssthresh 2000",
    );
    script
}

#[test]
fn eifel_takes_the_reduction_back_at_a_duplicate_that_is_older_than_the_retransmission() {
    eifel_after_a_fast_retransmit().run(
        "+10 < . 1:1 ack 1 win 65535 ts 110 0
         +0 ? cwnd 10000
         # It stays so, however many follow: none of them counts.
         +0 3x < . 1:1 ack 1 win 65535 ts 110 0
         +0 ? cwnd 10000",
    );
}

#[test]
fn eifel_leaves_the_reduction_at_a_duplicate_that_the_retransmission_raised() {
    eifel_after_a_fast_retransmit().run(
        "+10 < . 1:1 ack 1 win 65535 ts 110 100
         +0 ? phase Recovery cwnd 5000
         +10 < . 1:1 ack 10001 win 65535 ts 120 100
         # The window grows in congestion avoidance from there.
         +0 ? phase Open cwnd 6000 ssthresh 2000",
    );
}

#[test]
fn eifel_counts_duplicates_of_another_segment_than_was_sent_again() {
    eifel_after_a_fast_retransmit().run(
        "+10 < . 1:1 ack 1001 win 65535 ts 110 0
         # Of the segment after it, each as old as the first: a loss of its own.
         +0 3x < . 1:1 ack 1001 win 65535 ts 110 0
         +0 > . 1001:2001 ack 1 again
         +0 ? phase Recovery ssthresh 2000",
    );
}

#[test]
fn eifel_takes_a_timeout_back_too() {
    let config = Config {
        timestamps: true,
        ..model(Ns3MptcpMethod::Eifel)
    };
    Script::with_out(config, 8).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 4000
         +10 < . 1:1 ack 1 win 65535 ts 1010 0
         +0 ? cwnd 8000",
    );
}

#[test]
fn frto_ignores_duplicates_until_a_timeout_is_answered_and_then_opens_the_window_by_each() {
    Script::with_out(model(Ns3MptcpMethod::FRto), 8).run(
        "+0 write 4000
         100 4x < . 1:1 ack 1 win 65535
         +0 ? cwnd 8000
         # The window is halved, and is not reduced to a segment as by RFC 5681.
         1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 4000 ssthresh 2000
         # Answered, duplicates open the window: Reno counts bytes here, and an ACK may be one that is ignored.
         +10 4x < . 1:1 ack 1 win 65535
         +0 ? cwnd 4000
         +0 < . 1:1 ack 1 win 65535
         +0 ? cwnd 5000",
    );
}

#[test]
fn a_sample_is_of_the_oldest_acknowledged_segment_that_was_sent_once() {
    let mut script = Script::with_out(model(Ns3MptcpMethod::NoPr), 4);
    script.run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +50 < . 1:1 ack 1001 win 65535",
    );
    assert_eq!(script.endpoint.path().srtt, 0);
    let mut script = Script::with_out(model(Ns3MptcpMethod::NoPr), 4);
    script.run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # The second segment left at 0.
         +50 < . 1:1 ack 3001 win 65535",
    );
    assert_eq!(script.endpoint.path().srtt, 150 * MILLISECOND);
}

fn pr_r() -> Config {
    Config {
        reduction: Reduction::Keep,
        ..model(Ns3MptcpMethod::NoPr)
    }
}

#[test]
fn pr_r_sends_the_third_duplicates_segment_again_and_reduces_nothing() {
    Script::with_out(pr_r(), 10).run(
        "100 2x < . 1:1 ack 1 win 65535
         +0 ? phase Disorder cwnd 10000
         +0 < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery cwnd 10000
         # Once: the fourth sends nothing.
         +0 < . 1:1 ack 1 win 65535
         +0 ? cwnd 10000",
    );
}

#[test]
fn pr_r_reduces_for_a_timeout_as_the_model_does() {
    Script::with_out(pr_r(), 8).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 4000 ssthresh 2000",
    );
}

#[test]
fn pr_r_repairs_one_segment_after_the_other() {
    Script::with_out(pr_r(), 10).run(
        "100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # The next hole needs three duplicates of its own.
         +10 4x < . 1:1 ack 2001 win 65535
         +0 > . 2001:3001 ack 1 again
         +0 ? phase Recovery",
    );
}

#[test]
fn the_profile_is_that_of_the_model() {
    let config = Config::profile(Profile::Ns3Mptcp);
    assert_eq!(
        (config.detection, config.repair),
        (
            Detection::Ns3Mptcp(Ns3MptcpMethod::NoPr),
            RetransmissionScope::First
        )
    );
    assert_eq!(config.initial_window_segments, 1);
    assert_eq!(config.initial_ssthresh_bytes, 65_535);
    assert_eq!(config.delayed_ack_segments, 1);
}
