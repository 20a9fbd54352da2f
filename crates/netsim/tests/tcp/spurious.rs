//! Reductions without cause, and none at all: Eifel (RFC 3522, RFC 4015), F-RTO (RFC 5682), PR-R.

use super::plain;
use super::script::Script;
use netsim::tcp::config::{Reduction, SpuriousHandling};
use netsim::tcp::Config;

/// Ten segments out and ten more written, with timestamps of 0; three duplicates at 100 ms send the first again.
fn fast_retransmit(spurious: SpuriousHandling) -> Script {
    let config = Config {
        timestamps: true,
        limited_transmit: false,
        spurious,
        ..plain()
    };
    let mut script = Script::with_out(config, 10);
    script.run(
        "+0 write 10000
         100 3x < . 1:1 ack 1 win 65535 ts 100 0
         +0 > . 1:1001 ack 1 again ts 100 100
         +0 ? phase Recovery ssthresh 5000 cwnd 5000",
    );
    script
}

#[test]
fn eifel_takes_a_fast_retransmit_back_when_the_original_is_acknowledged() {
    fast_retransmit(SpuriousHandling::Eifel).run(
        "# The echo is of time 0, before the retransmission (RFC 3522, 3.2 step 5).
         +10 < . 1:1 ack 1001 win 65535 ts 110 0
         # cwnd = FlightSize + min(bytes acknowledged, IW) (RFC 4015, 3.2), and the rest is under way after all.
         +0 ? phase Open cwnd 10000 pipe 10000
         +0 > . 10001:11001 ack 1",
    );
}

#[test]
fn eifel_leaves_a_reduction_alone_when_the_retransmission_is_acknowledged() {
    for spurious in [SpuriousHandling::Eifel, SpuriousHandling::Ignored] {
        fast_retransmit(spurious).run(
            "+10 < . 1:1 ack 10001 win 65535 ts 110 100
             +0 ? phase Open cwnd 2000 ssthresh 5000
             +0 > . 10001:12001 ack 1 each 1000",
        );
    }
}

#[test]
fn eifel_takes_a_timeout_back() {
    let config = Config {
        timestamps: true,
        spurious: SpuriousHandling::Eifel,
        ..plain()
    };
    Script::with_out(config, 4).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000
         1020 < . 1:1 ack 1001 win 65535 ts 1020 0
         # Nothing more is sent again.
         +0 ? phase Open cwnd 4000 pipe 3000",
    );
}

#[test]
fn linux_goes_back_to_the_window_before() {
    fast_retransmit(SpuriousHandling::Linux).run(
        "+10 < . 1:1 ack 1001 win 65535 ts 110 0
         +0 ? phase Open cwnd 10000 ssthresh 18446744073709551615 undone 1
         +0 > . 10001:11001 ack 1",
    );
    fast_retransmit(SpuriousHandling::Linux).run(
        "+10 < . 1:1 ack 10001 win 65535 ts 110 100
         +0 ? phase Open cwnd 2000 ssthresh 5000 undone 0
         +0 > . 10001:12001 ack 1 each 1000",
    );
}

#[test]
fn linux_takes_a_reduction_back_once_all_that_was_sent_again_is_reported() {
    let config = Config {
        sack: true,
        dsack: true,
        spurious: SpuriousHandling::Linux,
        ..plain()
    };
    Script::with_out(config, 4).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000
         1020 < . 1:1 ack 4001 win 65535
         +0 ? phase Open undone 0
         1030 < . 1:1 ack 4001 win 65535 sack 1 1001
         +0 ? cwnd 4000 undone 1",
    );
}

#[test]
fn eifel_needs_timestamps() {
    let config = Config {
        spurious: SpuriousHandling::Eifel,
        ..plain()
    };
    let error = config.validate().expect_err("refused");
    assert!(
        error.starts_with("TCP setting timestamps must be"),
        "{error}"
    );
}

/// Four segments out whose timer expires.
fn timeout(written_bytes: u32) -> Script {
    let config = Config {
        spurious: SpuriousHandling::FRto,
        ..plain()
    };
    let mut script = Script::with_out(config, 4);
    if written_bytes > 0 {
        script.run(&format!("+0 write {written_bytes}"));
    }
    script.run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000",
    );
    script
}

#[test]
fn frto_sends_new_data_and_takes_the_timeout_back_if_that_goes_on() {
    timeout(4000).run(
        "# RFC 5682, 2.1 step 2b: two new segments.
         1050 < . 1:1 ack 1001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         # Step 3b: what was not sent again is acknowledged too.
         1060 < . 1:1 ack 2001 win 65535
         +0 ? phase Open cwnd 4000 pipe 4000",
    );
}

#[test]
fn frto_goes_back_to_sending_again_at_a_duplicate() {
    timeout(4000).run(
        "1050 < . 1:1 ack 1001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         # Step 3a.
         1060 < . 1:1 ack 1001 win 65535
         +0 ? phase Loss
         1070 < . 1:1 ack 3001 win 65535
         +0 > . 3001:4001 ack 1 again",
    );
}

#[test]
fn frto_sends_again_when_there_is_nothing_new() {
    timeout(0).run(
        "1050 < . 1:1 ack 1001 win 65535
         +0 > . 1001:3001 ack 1 again each 1000
         +0 ? phase Loss",
    );
}

#[test]
fn frto_takes_an_ack_of_everything_for_no_sign() {
    timeout(4000).run(
        "1050 < . 1:1 ack 4001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         +0 ? phase Open ssthresh 2000 cwnd 2000",
    );
}

#[test]
fn pr_r_sends_again_and_keeps_the_window() {
    let config = Config {
        limited_transmit: false,
        reduction: Reduction::Keep,
        ..plain()
    };
    Script::with_out(config, 10).run(
        "+0 write 3000
         100 3x < . 1:1 ack 1 win 65535
         +0 > . 1:1001 ack 1 again
         # Three are known to have left, and the window is what it was.
         +0 > . 10001:13001 ack 1 each 1000
         +0 ? phase Recovery cwnd 10000
         # The ACK of the lost segment opens it further.
         200 < . 1:1 ack 10001 win 65535
         +0 ? phase Open cwnd 11000",
    );
}

#[test]
fn pr_r_leaves_timeouts_as_they_are() {
    let config = Config {
        reduction: Reduction::Keep,
        ..plain()
    };
    Script::with_out(config, 4).run(
        "1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000",
    );
}
