//! Nagle's algorithm (RFC 896).

use super::plain;
use super::script::Script;
use netsim::tcp::Config;

#[test]
fn small_writes_wait_for_the_ack_of_what_is_out() {
    Script::connected(Config {
        nagle: true,
        ..plain()
    })
    .run(
        "0 write 100
         +0 > . 1:101 ack 1
         1 write 100
         2 write 100
         30 < . 1:1 ack 101 win 65535
         +0 > . 101:301 ack 1
         31 write 900
         # A full segment does not wait.
         32 write 100
         +0 > . 301:1301 ack 1
         # Nor does the end of the data.
         33 write 50
         34 close
         +0 > F. 1301:1351 ack 1",
    );
}

#[test]
fn off_each_write_leaves_at_once() {
    Script::connected(plain()).run(
        "0 write 100
         +0 > . 1:101 ack 1
         1 write 100
         +0 > . 101:201 ack 1",
    );
}
