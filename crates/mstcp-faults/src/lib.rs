//! The MSTCP core in virtual time, over paths that break in every way.
//!
//! Both ends are the library's own core with its handshake and its rules for opening streams again; sockets, paths, relays
//! and hosts are modelled. A seed decides everything, so that what goes wrong once goes wrong again.
#![forbid(unsafe_code)]

pub mod path;
pub mod pipe;
pub mod report;
pub mod world;

use mstcp_proto::scheduler;
use mstcp_proto::SplitMix64;

use path::{Fault, Path};
use world::{Transfer, World};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;
/// Nothing takes longer than this, in virtual time, unless it hangs.
const MAX_NS: u64 = 600 * SECOND;

/// What a transfer came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Every byte arrived once and in order, and both sides ended properly.
    pub is_equal: bool,
    /// The longest time without a delivery while a path worked in each direction and no application held it up, in seconds.
    pub longest_pause_s: f64,
    /// The longest time that a repaired path brought nothing, in seconds.
    pub longest_unused_repaired_path_s: f64,
    /// The longest time from close to the end, in seconds.
    pub longest_close_s: f64,
    /// How long it took, in virtual seconds.
    pub duration_s: f64,
    /// Bytes that were sent again.
    pub resent_bytes: u64,
}

impl Report {
    fn of(world: &World) -> Self {
        let seconds = |ns: u64| ns as f64 * 1e-9;
        Self {
            is_equal: world.is_equal(),
            longest_pause_s: seconds(world.pauses.longest_pause_ns()),
            longest_unused_repaired_path_s: seconds(world.pauses.longest_unused_ns(world.now_ns)),
            longest_close_s: seconds(world.longest_close_ns()),
            duration_s: seconds(world.now_ns),
            resent_bytes: world.resent_bytes(),
        }
    }
}

/// Transfer `mib` MiB in each direction over 2 to 8 paths; every 0.2 to 2 s something happens to one.
pub fn run(seed: u64, mib: u64) -> Report {
    run_seed(seed, mib, false)
}

/// As [`run`], and say on standard error what happens.
pub fn trace(seed: u64, mib: u64) -> Report {
    run_seed(seed, mib, true)
}

fn run_seed(seed: u64, mib: u64, is_traced: bool) -> Report {
    let mut rng = SplitMix64::new(seed);
    let mut below = |bound: u64| rng.next_u64() % bound;
    let count = 2 + below(7) as usize;
    // Some seconds' worth, so that there is time for faults.
    let rate_bps = (mib << 23) as f64 / 6.0 / count as f64;
    let paths: Vec<Path> = (0..count)
        .map(|_| {
            let factor = 0.5 + below(1000) as f64 / 1000.0;
            Path::new(rate_bps * factor, (1 + below(40)) * MS)
        })
        .map(|path| path.with_relay(relay_bytes(seed)))
        .collect();
    let transfer = Transfer {
        bytes: [mib << 20; 2],
        window_bytes: 1 << (20 + below(4)),
        scheduler: scheduler::NAMES[below(scheduler::NAMES.len() as u64) as usize],
    };
    let mut world = World::new(paths, transfer, seed);
    world.is_traced = is_traced;
    while !world.is_over() && world.now_ns < MAX_NS {
        let wait_ns = (200 + below(1800)) * MS;
        world.run_until(world.now_ns + wait_ns);
        if world.is_through() {
            world.run_until(MAX_NS);
            break;
        }
        let path = below(count as u64) as usize;
        let fault = match below(10) {
            0 => Fault::Reset,
            1 => Fault::Blackhole,
            2 => Fault::StopOneWay(below(2) as usize),
            3 => Fault::Swallow,
            4 => Fault::HalfClose(below(2) as usize),
            5 => Fault::Slow,
            6 => {
                let (side, until_ns) =
                    (below(2) as usize, world.now_ns + (1200 + below(1800)) * MS);
                world.block(side, until_ns);
                continue;
            }
            7 => {
                let (side, until_ns) = (below(2) as usize, world.now_ns + below(3000) * MS);
                world.read_late(side, until_ns);
                continue;
            }
            _ => Fault::Repair,
        };
        strike(&mut world, path, fault);
    }
    Report::of(&world)
}

/// On every third connection's paths relays end TCP, and keep 16 KiB to 1 MiB.
fn relay_bytes(seed: u64) -> usize {
    match seed % 3 {
        2 => 1 << (14 + seed / 3 % 7),
        _ => 0,
    }
}

/// Strike a path, and repair another if none were left that works.
fn strike(world: &mut World, path: usize, fault: Fault) {
    world.strike(path, fault);
    let carries = |direction: usize| world.paths.iter().any(|path| path.carries(direction));
    if !(carries(0) && carries(1)) {
        let other = (path + 1) % world.paths.len();
        world.strike(other, Fault::Repair);
    }
}

/// What may happen in one of the steps of [`explore`].
pub const CHOICES: u64 = 10;

/// A small transfer over two paths, in steps of 0.4 s; `schedule` says what happens at each, and at the end all is repaired.
pub fn explore(schedule: &[u64]) -> Report {
    let paths = vec![Path::new(2e6, 10 * MS), Path::new(1e6, 25 * MS)];
    let transfer = Transfer {
        bytes: [600_000, 300_000],
        window_bytes: 1 << 18,
        scheduler: "weighted",
    };
    let mut world = World::new(paths, transfer, schedule.iter().sum());
    for choice in schedule {
        world.run_until(world.now_ns + 400 * MS);
        let later_ns = world.now_ns + 900 * MS;
        match choice {
            0 => world.strike(0, Fault::StopOneWay(0)),
            1 => world.strike(0, Fault::StopOneWay(1)),
            2 => world.strike(1, Fault::StopOneWay(0)),
            3 => world.strike(1, Fault::StopOneWay(1)),
            4 => world.strike(0, Fault::Blackhole),
            5 => world.strike(1, Fault::Swallow),
            6 => world.strike(0, Fault::Reset),
            7 => world.read_late(1, later_ns),
            8 => world.block(0, later_ns),
            _ => (0..2).for_each(|path| world.strike(path, Fault::Repair)),
        }
    }
    (0..2).for_each(|path| world.strike(path, Fault::Repair));
    world.run_until(MAX_NS);
    Report::of(&world)
}
