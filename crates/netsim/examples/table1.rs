//! Table I of the paper: our figures beside ns-3's. `table1 [seeds] [seconds]`

#[path = "../tests/common/butterfly.rs"]
mod butterfly;

use butterfly::{butterfly, run, NS3};
use serde_json::json;
use std::time::Instant;

fn main() {
    let number = |index: usize, default: f64| {
        std::env::args()
            .nth(index)
            .map_or(default, |text| text.parse().expect("a number"))
    };
    let (seeds, seconds) = (number(1, 4.0) as u64, number(2, 120.0));
    println!("variant scenario protocol flow  goodput ns-3    diff   delay [range]            ns-3 [range]         diff");
    for variant in ['a', 'b'] {
        for scenario in [1, 2] {
            for protocol in ["mstcp", "ppfs", "ospf"] {
                let began = Instant::now();
                let runs: Vec<_> = (1..=seeds)
                    .map(|seed| {
                        let mut description = butterfly(variant, scenario, protocol, seed);
                        description["duration_s"] = json!(seconds);
                        run(&description)
                    })
                    .collect();
                let wall = began.elapsed().as_secs_f64();
                let events: u64 = runs.iter().map(|run| run.counters.events).sum();
                for flow in [1, 2] {
                    let reference = NS3
                        .iter()
                        .find(|row| {
                            (row.variant, row.scenario, row.protocol, row.flow)
                                == (variant, scenario, protocol, flow)
                        })
                        .expect("the table is complete");
                    let flows = || runs.iter().map(|run| &run.flows[flow - 1]);
                    let goodput = mean(flows().map(|flow| flow.goodput_bps / 1e6));
                    let delays: Vec<f64> = flows()
                        .filter_map(|flow| flow.delay_s)
                        .map(|delay| delay.mean * 1e3)
                        .collect();
                    let delay = mean(delays.iter().copied());
                    let low = delays.iter().copied().fold(f64::INFINITY, f64::min);
                    let high = delays.iter().copied().fold(0.0, f64::max);
                    println!(
                        "{variant}       {scenario}        {protocol:<8} {flow}    {goodput:7.3} {:6.2} {:+6.2} %  {delay:6.2} [{low:6.2}, {high:6.2}] {:7.2} [{:.2}, {:.2}] {:+6.2} %",
                        reference.goodput_mbps,
                        (goodput / reference.goodput_mbps - 1.0) * 100.0,
                        reference.delay_ms,
                        reference.range_ms[0],
                        reference.range_ms[1],
                        (delay / reference.delay_ms - 1.0) * 100.0,
                    );
                    for run in runs.iter().take(1) {
                        let flow = &run.flows[flow - 1];
                        let streams: Vec<String> = flow
                            .streams
                            .iter()
                            .map(|s| {
                                format!(
                                    "data {} again {} timeouts {} recoveries {} dupacks {} cwnd {} ssthresh {:?}",
                                    s.data_segments_sent,
                                    s.retransmits,
                                    s.timeouts,
                                    s.fast_retransmits,
                                    s.duplicate_acks,
                                    s.cwnd_bytes,
                                    s.ssthresh_bytes
                                )
                            })
                            .collect();
                        if std::env::var_os("VERBOSE").is_some() {
                            println!(
                                "    {} skipped {} wrong {}",
                                streams.join("; "),
                                flow.ticks_skipped,
                                flow.bytes_wrong
                            );
                        }
                    }
                }
                println!(
                    "    {:.2} s a run, {:.2} M events, {:.2} M events/s",
                    wall / seeds as f64,
                    events as f64 / seeds as f64 / 1e6,
                    events as f64 / wall / 1e6
                );
            }
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<f64> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}
