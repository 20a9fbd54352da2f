//! TCP: scripted packet sequences, one file a topic, and endpoints over a path.

mod bbr;
mod congestion;
mod delayed_ack;
mod dsack;
mod fast_retransmit;
mod handshake;
mod limited_transmit;
mod nagle;
mod ns3_bbr;
mod ns3_mptcp;
mod pacing;
mod path;
mod pipe;
mod prr;
mod rack;
mod sack;
mod script;
mod spurious;
mod tcp_door;
mod tcp_pr;
mod throughput;
mod timeout;
mod timestamps;
mod window;

use netsim::tcp::Config;

/// RFC behaviour without the options, an initial window of four segments of 1000 bytes.
fn plain() -> Config {
    Config {
        mss_bytes: 1000,
        sack: false,
        timestamps: false,
        window_scaling: false,
        initial_window_segments: 4,
        ..Config::rfc()
    }
}
