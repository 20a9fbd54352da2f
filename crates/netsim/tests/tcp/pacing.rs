//! Streams paced at a rate, as Linux paces packets (`tcp_update_skb_after_send`).

use super::plain;
use super::script::Script;
use netsim::tcp::config::Pacing;
use netsim::tcp::Config;

/// Eight segments of 1000 bytes, unpaced as Linux's first ones; then one is 1 ms.
fn paced() -> Script {
    let rate_bps = 8_000_000;
    Script::with_out(
        Config {
            pacing: Pacing::Rate { rate_bps },
            ..plain()
        },
        8,
    )
}

#[test]
fn a_write_leaves_as_a_packet_and_what_waits_as_one() {
    let mut script = paced();
    // The first is the ninth, the last that is not paced. What leaves late, as the fourth, halves the gap behind it.
    script.run(
        "5 < . 1:1 ack 8001 win 65535
         +0 write 600
         +0 > . 8001:8601 ack 1
         +0 write 600
         +0 > . 8601:9201 ack 1
         +0 write 700
         +0.6 > . 9201:9901 ack 1
         20 write 600
         +0 > . 9901:10501 ack 1
         +0 write 600
         +0 write 900
         +0.3 > . 10501:11501 ack 1
         +0 > . 11501:12001 ack 1",
    );
}

/// `tcp_tso_autosize`: the nearer the peer has been, the handshake's round trip included, the more leaves at once.
#[test]
fn bursts_are_sized_by_the_handshake_too() {
    for (handshake_ms, is_larger) in [(1, true), (100, false)] {
        let mut script = Script::client(Config {
            pacing: Pacing::Rate { rate_bps: 80_000 },
            initial_window_segments: 10,
            ..plain()
        });
        script.run(&format!(
            "0 > S 0:0
             {handshake_ms} < S. 0:0 ack 1 win 65535 <mss 1000>
             +0 > . 1:1 ack 1"
        ));
        let sent = |script: &mut Script, now, bytes| {
            script.endpoint.write(now, bytes);
            std::iter::from_fn(|| script.endpoint.poll_transmit(now)).count()
        };
        let unpaced = sent(&mut script, 200_000_000, 10_000);
        assert_eq!(unpaced, 10);
        script.run("300 < . 1:1 ack 10001 win 65535");
        let burst = sent(&mut script, 2_000_000_000, 8_000);
        assert_eq!(burst > 2, is_larger, "{burst} segments");
    }
}
