//! Set-up and close (RFC 9293, 3.5 and 3.6).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

#[test]
fn a_client_opens_and_both_close() {
    Script::client(plain()).run(
        "0 > S 0:0 <mss 1000>
         +0 ? state SynSent
         30 < S. 0:0 ack 1 win 65535 <mss 1000>
         +0 > . 1:1 ack 1
         +0 ? state Established srtt 30
         +0 write 500
         +0 > . 1:501 ack 1
         +0 close
         +0 > F. 501:501 ack 1
         +0 ? state FinWait1
         +30 < . 1:1 ack 502 win 65535
         +0 ? state FinWait2
         +0 < F. 1:1 ack 502 win 65535
         +0 > . 502:502 ack 2
         +0 ? state TimeWait
         # The peer has missed the last ACK.
         +500 < F. 1:1 ack 502 win 65535
         +0 > . 502:502 ack 2
         +240000 ? state Closed failed false",
    );
}

#[test]
fn a_server_opens_and_closes_second() {
    Script::server(plain()).run(
        "0 < S 0:0 win 65535 <mss 536>
         +0 > S. 0:0 ack 1 <mss 1000>
         +20 < . 1:1 ack 1 win 65535
         +0 ? state Established srtt 20
         # The smaller segment size of the two rules.
         +0 write 1072
         +0 > . 1:1073 ack 1 each 536
         +20 < F. 1:1 ack 1073 win 65535
         +0 > . 1073:1073 ack 2
         +0 ? state CloseWait
         +0 close
         +0 > F. 1073:1073 ack 2
         +0 ? state LastAck
         +20 < . 2:2 ack 1074 win 65535
         +0 ? state Closed failed false",
    );
}

#[test]
fn data_carries_the_fin_and_both_may_close_at_once() {
    Script::connected(plain()).run(
        "10 write 300
         +0 > . 1:301 ack 1
         +0 close
         +0 > F. 301:301 ack 1
         +5 < F. 1:1 ack 301 win 65535
         +0 > . 302:302 ack 2
         +0 ? state Closing
         +5 < . 2:2 ack 302 win 65535
         +0 ? state TimeWait",
    );
    let config = Config {
        initial_window_segments: 1,
        ..plain()
    };
    Script::connected(config).run(
        "10 write 1500
         +0 > . 1:1001 ack 1
         +0 close
         +10 < . 1:1 ack 1001 win 65535
         +0 > F. 1001:1501 ack 1",
    );
}

#[test]
fn a_syn_is_sent_again_after_1_3_7_seconds() {
    Script::client(Config {
        syn_retries: 2,
        ..plain()
    })
    .run(
        "0 > S 0:0
         1000 > S 0:0 again
         3000 > S 0:0 again
         7000 ? state Closed failed true",
    );
}

#[test]
fn a_lost_syn_ack_is_sent_again_by_timer_or_for_a_second_syn() {
    Script::server(plain()).run(
        "0 < S 0:0 win 65535 <mss 1000>
         +0 > S. 0:0 ack 1
         1000 > S. 0:0 ack 1 again
         1100 < S 0:0 win 65535 <mss 1000>
         +0 > S. 0:0 ack 1 again
         +10 < . 1:1 ack 1 win 65535
         # Karn: which SYN-ACK this answers is not known.
         +0 ? state Established srtt none",
    );
}

#[test]
fn what_is_written_before_the_handshake_waits_for_it() {
    Script::client(plain()).run(
        "0 > S 0:0
         1 write 700
         2 close
         30 < S. 0:0 ack 1 win 65535 <mss 1000>
         +0 > F. 1:701 ack 1
         +0 ? state FinWait1",
    );
}

#[test]
fn resets_end_a_connection() {
    Script::connected(plain()).run("10 < R 1:1\n+0 ? state Closed failed true");
    // An ACK of a SYN that was never sent (RFC 9293, 3.10.7.3).
    Script::client(plain()).run("0 > S 0:0\n10 < . 0:0 ack 77 win 0\n+0 > R 1:1");
}
