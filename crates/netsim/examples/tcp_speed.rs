//! Speed of TCP alone: two endpoints, segments handed over in order, or every tenth late. `tcp_speed`

use std::time::Instant;

use netsim::tcp::{Config, Endpoint, Segment};

/// Nanoseconds of a data segment with its share of ACKs, over `rounds` exchanges; `late`: each tenth segment comes last.
fn nanoseconds(config: &Config, rounds: u64, late: bool) -> f64 {
    let (mut client, mut server) = (Endpoint::client(config, 0), Endpoint::server(config));
    let mut flight: Vec<Segment> = Vec::new();
    let began = Instant::now();
    for round in 0..rounds {
        let now = round * 1_000_000;
        client.write(now, u32::MAX);
        flight.clear();
        flight.extend(std::iter::from_fn(|| client.poll_transmit(now)));
        let order = |index: &usize| late && index % 10 == 0;
        let late_ones: Vec<usize> = (0..flight.len()).filter(order).collect();
        let in_time = (0..flight.len()).filter(|index| !order(index));
        for index in in_time.chain(late_ones) {
            server.on_segment(now, &flight[index]);
            server.read(now, u32::MAX);
            while let Some(answer) = server.poll_transmit(now) {
                client.on_segment(now, &answer);
            }
        }
        for end in [&mut client, &mut server] {
            end.on_timer(now);
        }
    }
    began.elapsed().as_nanos() as f64 / client.statistics().data_segments_sent as f64
}

fn main() {
    for (name, config) in [
        (
            "ns3",
            Config {
                sack: false,
                ..Config::ns3()
            },
        ),
        ("ns3 SACK", Config::ns3()),
        ("rfc SACK", Config::rfc()),
    ] {
        println!(
            "{name:9} in order {:4.0} ns, a tenth late {:4.0} ns a data segment",
            nanoseconds(&config, 20_000, false),
            nanoseconds(&config, 20_000, true)
        );
    }
}
