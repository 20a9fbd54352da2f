//! The kernels' integer arithmetic of coupled controls (switch/tcp/coupled.h) gives what the simulator's rules do.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use netsim::random::{RngCore, SeedableRng, SplitMix64};
use netsim::tcp::congestion::coupled::{
    Balia, CouplingRule, FullyCoupled, Lia, Olia, SubflowState,
};

const MAX_FLOWS: u64 = 9;
const STATES: usize = 2000;
/// One segment of growth in the kernels' fixed point.
const SEGMENT: f64 = (1_u64 << 32) as f64;

/// Reads states, one a line: how many flows, then window, round-trip time and deliveries of each. Prints growth and what a loss leaves, by
/// rule.
const PROGRAM: &str = r#"
#include <inttypes.h>
#include <stdio.h>
typedef uint32_t u32; typedef int32_t s32; typedef uint64_t u64; typedef int64_t s64;
#define COUPLED_FUNCTION static
#include "coupled.h"
int main(void) {
    u32 count, window, rtt_us, delivered;
    while (scanf("%" SCNu32, &count) == 1) {
        struct coupled all = { 0 };
        while (count--) {
            if (scanf("%" SCNu32 "%" SCNu32 "%" SCNu32, &window, &rtt_us, &delivered) != 3) return 1;
            coupled_add(&all, window, rtt_us, delivered);
        }
        for (u32 rule = 0; rule < COUPLED_RULES; rule++)
            printf("%" PRId64 " %" PRIu32 "\n", coupled_increase(&all, rule), coupled_decrease(&all, rule));
    }
    return 0;
}
"#;

struct Random(SplitMix64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }

    /// Flows whose paths differ by their losses more than the kernels' fractions are apart.
    fn flows(&mut self) -> Vec<[u32; 3]> {
        loop {
            let flow = |random: &mut Self| {
                [
                    1 + random.below(2000),
                    500 + random.below(500_000),
                    random.below(100_000),
                ]
                .map(|value| value as u32)
            };
            let count = 1 + self.below(MAX_FLOWS);
            let flows: Vec<_> = (0..count).map(|_| flow(self)).collect();
            let mut qualities: Vec<_> = flows
                .iter()
                .map(|[_, rtt_us, delivered]| f64::from(*delivered).powi(2) / f64::from(*rtt_us))
                .collect();
            qualities.sort_by(f64::total_cmp);
            if qualities.windows(2).all(|pair| pair[1] > 1.01 * pair[0]) {
                return flows;
            }
        }
    }
}

fn in_c(input: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("coupled-main.c"), folder.join("coupled-main"));
    std::fs::write(&source, PROGRAM).expect("the source is written");
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../switch/tcp");
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"])
        .args([&headers, &source])
        .args([Path::new("-o"), &program])
        .status();
    assert!(compiled.expect("there is a C compiler").success());
    let mut running = Command::new(&program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = running.stdin.take().expect("a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = running.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("all is read");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("numbers")
}

#[test]
fn kernels_grow_and_shrink_windows_as_the_simulator_does() {
    let mut random = Random(SplitMix64::seed_from_u64(1));
    let states: Vec<_> = (0..STATES).map(|_| random.flows()).collect();
    let line = |flows: &Vec<[u32; 3]>| {
        let numbers: Vec<_> = flows.iter().flatten().map(u32::to_string).collect();
        format!("{} {}\n", flows.len(), numbers.join(" "))
    };
    let answers = in_c(&states.iter().map(line).collect::<String>());
    let mut answers = answers.lines();
    let rules: [&dyn CouplingRule; 4] = [&Lia, &Olia, &Balia, &FullyCoupled];
    for state in &states {
        let flows: Vec<_> = state
            .iter()
            .map(|&[window, rtt_us, delivered]| SubflowState {
                window: f64::from(window),
                smoothed_window: f64::from(window),
                rtt: f64::from(rtt_us) * 1e-6,
                between_losses: [f64::from(delivered), 0.0],
            })
            .collect();
        for rule in rules {
            let answer = answers.next().expect("an answer for each rule");
            let (grown, left) = answer.split_once(' ').expect("two numbers");
            let grown = grown.parse::<f64>().expect("a number") / SEGMENT;
            let wanted = rule.increase(&flows, 0);
            // Of OLIA it is a difference of two terms, each of one segment a window at the most.
            let tolerance = 0.01 * wanted.abs() + 1e-3 / flows[0].window;
            assert!(
                (grown - wanted).abs() < tolerance,
                "{rule:?} grows by {grown}, not {wanted}: {state:?}"
            );
            let left = left.parse::<f64>().expect("a number");
            let wanted = rule.decrease(&flows, 0).max(2.0);
            assert!(
                (left - wanted).abs() <= 1.0 + 0.01 * wanted,
                "{rule:?} leaves {left}, not {wanted}: {state:?}"
            );
        }
    }
}
