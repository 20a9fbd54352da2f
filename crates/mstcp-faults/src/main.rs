//! `mstcp-faults [--seeds N] [--first SEED] [--mib N]`: run seeds, print what they came to as JSON.
//! `mstcp-faults --trace SEED [--mib N]`: run one, and say on standard error what happens.

use std::process::ExitCode;

use serde_json::json;

/// Seeds with longer pauses are named.
const MAX_PAUSE_S: f64 = 1.5;

fn main() -> ExitCode {
    let (mut seeds, mut first, mut mib, mut traced) = (1000, 0, 4, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--seeds", Some(value)) => seeds = value,
            ("--first", Some(value)) => first = value,
            ("--mib", Some(value)) => mib = value,
            ("--trace", Some(value)) => traced = Some(value),
            _ => {
                eprintln!(
                    "mstcp-faults: {name}: use --seeds N, --first SEED, --mib N or --trace SEED"
                );
                return ExitCode::from(2);
            }
        }
    }
    if let Some(seed) = traced {
        println!("{:#?}", mstcp_faults::trace(seed, mib));
        return ExitCode::SUCCESS;
    }
    let (mut equal, mut failed) = (0u64, Vec::new());
    let (mut pause_s, mut unused_s, mut close_s) = ((0.0, 0), (0.0, 0), (0.0, 0));
    let (mut virtual_s, mut resent) = (0.0, 0);
    let mut slow = Vec::new();
    for seed in first..first + seeds {
        let report = mstcp_faults::run(seed, mib);
        match report.is_equal {
            true => equal += 1,
            false => failed.push(seed),
        }
        for (worst, value) in [
            (&mut pause_s, report.longest_pause_s),
            (&mut unused_s, report.longest_unused_repaired_path_s),
            (&mut close_s, report.longest_close_s),
        ] {
            if value > worst.0 {
                *worst = (value, seed);
            }
        }
        if report.longest_pause_s > MAX_PAUSE_S {
            slow.push(seed);
        }
        virtual_s += report.duration_s;
        resent += report.resent_bytes;
    }
    let result = json!({
        "seeds": seeds,
        "mib": mib,
        "digests_equal": equal,
        "failed_seeds": failed,
        "seeds_with_pauses_above_1.5_s": slow,
        "longest_pause_s": pause_s.0,
        "longest_unused_repaired_path_s": unused_s.0,
        "longest_close_s": close_s.0,
        "seeds_of_the_longest": [pause_s.1, unused_s.1, close_s.1],
        "virtual_s": virtual_s,
        "resent_ratio": resent as f64 / ((seeds * mib) << 21) as f64,
    });
    println!("{result}");
    ExitCode::SUCCESS
}
