//! D-SACK: reports of what arrives twice (RFC 2883), and reductions taken back by them (RFC 3708).

use super::plain;
use super::script::Script;
use netsim::tcp::config::SpuriousHandling;
use netsim::tcp::Config;

fn with_dsack() -> Config {
    Config {
        sack: true,
        dsack: true,
        spurious: SpuriousHandling::DSack,
        limited_transmit: false,
        ..plain()
    }
}

/// A server that has got 1:1001 and 3001:4001.
fn receiver() -> Script {
    let mut script = Script::server(with_dsack());
    script.run(
        "0 < S 0:0 win 65535 <mss 1000,sackOK>
         +0 > S. 0:0 ack 1
         +0 < . 1:1001 ack 1 win 65535
         +10 < . 3001:4001 ack 1 win 65535
         +0 > . 1:1 ack 1001 sack 3001 4001",
    );
    script
}

#[test]
fn what_lies_below_the_acknowledgement_is_reported_once() {
    receiver().run(
        "# RFC 2883, 4.1: the duplicate first, then the blocks as ever.
         +10 < . 1:1001 ack 1 win 65535
         +0 > . 1:1 ack 1001 sack 1 1001 sack 3001 4001
         +10 < . 5001:6001 ack 1 win 65535
         +0 > . 1:1 ack 1001 sack 5001 6001 sack 3001 4001",
    );
}

#[test]
fn what_lies_within_a_block_is_reported_with_the_block_after_it() {
    receiver().run(
        "+10 < . 4001:5001 ack 1 win 65535
         +0 > . 1:1 ack 1001 sack 3001 5001
         # RFC 2883, 4.1.2.
         +10 < . 4001:5001 ack 1 win 65535
         +0 > . 1:1 ack 1001 sack 4001 5001 sack 3001 5001",
    );
}

/// Ten segments out and five more written; SACKs of the third to fifth send the first two again.
fn two_sent_again() -> Script {
    let mut script = Script::with_out(with_dsack(), 10);
    script.run(
        "+0 write 5000
         100 < . 1:1 ack 1 win 65535 sack 2001 3001
         +0 < . 1:1 ack 1 win 65535 sack 2001 4001
         +0 < . 1:1 ack 1 win 65535 sack 2001 5001
         +0 > . 1:1001 ack 1 again
         +0 ? phase Recovery cwnd 5000 ssthresh 5000
         +0 < . 1:1 ack 1 win 65535 sack 2001 6001
         +0 < . 1:1 ack 1 win 65535 sack 2001 7001
         +0 > . 1001:2001 ack 1 again",
    );
    script
}

#[test]
fn a_reduction_is_taken_back_once_all_that_was_sent_again_is_reported() {
    two_sent_again().run(
        "# The originals arrive late, then the first copy.
         110 < . 1:1 ack 7001 win 65535
         +0 > . 10001:12001 ack 1 each 1000
         +0 ? phase Recovery cwnd 5000
         120 < . 1:1 ack 10001 win 65535 sack 1 1001
         +0 ? phase Open undone 0
         +0 > . 12001:13001 ack 1
         130 < . 1:1 ack 10001 win 65535 sack 1001 2001
         # Slow start leads back to the window before (Blanton and Allman 2002).
         +0 ? undone 1 cwnd 3000 ssthresh 10000 phase Open
         140 < . 1:1 ack 11001 win 65535
         +0 > . 13001:15001 ack 1 each 1000
         +0 ? cwnd 4000 ssthresh 10000",
    );
}

#[test]
fn a_reduction_stands_while_a_copy_is_not_reported() {
    two_sent_again().run(
        "110 < . 1:1 ack 10001 win 65535 sack 1 1001
         +0 ? undone 0 ssthresh 5000
         +0 > . 10001:12001 ack 1 each 1000
         # Of what was sent once the network has made a copy: it tells nothing (RFC 3708, 3 step A).
         120 < . 1:1 ack 10001 win 65535 sack 2001 3001
         +0 ? undone 0 ssthresh 5000",
    );
}

#[test]
fn a_timeout_without_cause_is_taken_back() {
    Script::with_out(with_dsack(), 4).run(
        "+0 write 4000
         1000 > . 1:1001 ack 1 again
         +0 ? phase Loss cwnd 1000 ssthresh 2000
         1010 < . 1:1 ack 4001 win 65535
         +0 > . 4001:6001 ack 1 each 1000
         +0 ? cwnd 2000
         1020 < . 1:1 ack 4001 win 65535 sack 1 1001
         +0 ? undone 1 ssthresh 4000",
    );
}

#[test]
fn dsack_needs_sack() {
    let config = Config {
        sack: false,
        ..with_dsack()
    };
    let error = config.validate().expect_err("refused");
    assert!(error.starts_with("TCP setting sack must be"), "{error}");
    assert!(error.contains("RFC 2883"), "{error}");
}
