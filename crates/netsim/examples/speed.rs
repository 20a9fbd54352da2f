//! Speed on the butterfly: scenario 2 for 120 s. `speed [mstcp|ppfs|ospf] [runs]`

#[path = "../tests/common/butterfly.rs"]
#[allow(dead_code)]
mod butterfly;

use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let protocol = arguments.next().unwrap_or_else(|| "mstcp".to_owned());
    let runs: u64 = arguments
        .next()
        .map_or(3, |text| text.parse().expect("a number"));
    for seed in 1..=runs {
        let description = butterfly::butterfly('a', 2, &protocol, seed);
        let began = Instant::now();
        let results = butterfly::run(&description);
        let wall_s = began.elapsed().as_secs_f64();
        let events = results.counters.events as f64;
        println!(
            "{protocol}: {:.2} M events in {wall_s:.2} s, {:.2} M/s; {} packets",
            events / 1e6,
            events / wall_s / 1e6,
            results.counters.packets_sent
        );
    }
    if let Ok(status) = std::fs::read_to_string("/proc/self/status") {
        status
            .lines()
            .filter(|line| line.starts_with("VmHWM"))
            .for_each(|line| println!("{line}"));
    }
}
