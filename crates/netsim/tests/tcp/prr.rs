//! Proportional rate reduction (RFC 6937).

use super::plain;
use super::script::Script;
use netsim::tcp::config::Reduction;
use netsim::tcp::Config;

/// Twenty segments of 1000 bytes, the first lost; acknowledged one by one.
fn recover(reduction: Reduction) -> Vec<u64> {
    let config = Config {
        initial_window_segments: 20,
        reduction,
        limited_transmit: false,
        ..plain()
    };
    let mut script = Script::connected(config);
    let mut text = String::from("0 write 60000\n");
    for number in 0..20 {
        text += &format!(
            "+0 > . {}:{} ack 1\n",
            number * 1000 + 1,
            number * 1000 + 1001
        );
    }
    script.run(&text);
    let mut sent = Vec::new();
    for number in 1..20u64 {
        script.inject("+1 < . 1:1 ack 1 win 65535");
        let segments = script.take_sent();
        if number >= 3 {
            sent.push(segments.len() as u64);
        } else {
            assert!(segments.is_empty());
        }
    }
    sent
}

#[test]
fn the_window_shrinks_in_step_with_what_is_delivered() {
    let sent = recover(Reduction::Prr);
    // One for every second delivery from the fast retransmit on; 20 -> 10 out at the end (RFC 6937, 3.1).
    assert_eq!(sent[0], 1);
    let total: u64 = sent.iter().sum();
    assert!((8..=10).contains(&total), "{sent:?}");
    assert!(sent.iter().all(|&count| count <= 1), "no bursts: {sent:?}");
    // Classic recovery is silent for half of the round trip and then sends one for each.
    let classic = recover(Reduction::Classic);
    assert!(
        classic[1..5].iter().sum::<u64>() == 0 && sent[1..5].iter().sum::<u64>() >= 1,
        "{classic:?} {sent:?}"
    );
}

#[test]
fn the_window_is_ssthresh_after_it() {
    let config = Config {
        initial_window_segments: 10,
        reduction: Reduction::Prr,
        limited_transmit: false,
        ..plain()
    };
    let mut script = Script::connected(config);
    script.inject("0 write 40000");
    assert_eq!(script.take_sent().len(), 10);
    for _ in 0..9 {
        script.inject("+1 < . 1:1 ack 1 win 65535");
    }
    script.take_sent();
    let edge = script.endpoint.statistics();
    assert_eq!(edge.ssthresh_bytes, 5000);
    script.inject("+50 < . 1:1 ack 10001 win 65535");
    script.inject("+0 ? phase Open cwnd 5000");
}
