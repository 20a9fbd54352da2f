"""`mstcp-lab run SCENARIO`: a scenario's cases with protocols and seeds; writes a document and a report."""

from __future__ import annotations

import argparse
import time

from experiments import engines, protocols, runner
from experiments.cli.arguments import (
    JOBS,
    MAKING_RUNS,
    OUT,
    RETRIES,
    SET,
    Arguments,
    argument,
    names,
    seeds_argument,
)
from experiments.cli.run_and_report import make_runs
from experiments.engines.base import Clock, Engine
from experiments.errors import ScenarioError
from experiments.model import overrides, scenario
from experiments.model.demands import with_files
from experiments.model.given_paths import check_given_paths
from experiments.model.job import Job
from experiments.model.scenario import Scenario
from experiments.protocols.settings import check_read
from experiments.registry import extension_files
from experiments.workloads.shorthand import parse_workload
from topologies import load as load_network

NAME = "run"
HELP = "run a scenario and write results.json and report.html"
ALL = "all"


ARGUMENTS: Arguments = (
    argument("scenario_file", "SCENARIO", "a built-in scenario (see `mstcp-lab list`) or a TOML file"),
    argument("--engine", "E", ", ".join(engines.ENGINES), None, "live"),
    argument(
        "--protocol",
        "P,…",
        "protocols, separated by commas, or `all` (default: the scenario's; with the simulator, all that it "
        "supports)",
        names,
    ),
    argument(
        "--case", "C,…", "cases, separated by commas (default: all of the scenario)", names, dest="cases"
    ),
    seeds_argument(1),
    RETRIES,
    JOBS,
    argument("--duration", "S", "seconds to measure (default: the scenario's)", float),
    argument("--variant", "V", "variant of the network (default: the scenario's)"),
    argument(
        "--allocation",
        "A",
        f"{', '.join(scenario.OBJECTIVES)}, or an allocation that the scenario defines (default: the case's)",
    ),
    SET,
    argument(
        "--workload",
        "W",
        "workload of all flows: cbr, bulk:size=20MB, onoff:on=1,off=0.5, requests:per_s=20,sizes=30kB",
    ),
    argument(
        "--trace",
        "F,…",
        "simulator: record every packet in DIR/logs/RUN, as csv, pcap (one file per host) or parquet",
        names,
    ),
    argument(
        "--capture",
        "LINK,…",
        "live and virtual: keep every packet of these links in DIR/logs/RUN/LINK.pcapng",
        names,
    ),
    OUT,
    *MAKING_RUNS,
)


def main(args: argparse.Namespace) -> int:
    """Make the runs; returns the exit status."""
    return make_runs(job_from(args, time.time()), args)


def job_from(args: argparse.Namespace, now: float) -> Job:
    """Return the job that the arguments of `run` ask for, all checked."""
    loaded = scenario.load(args.scenario_file)
    cases = args.cases or list(loaded.cases)
    for name in cases:
        loaded.case(name)
    engine = engines.get(args.engine)
    wanted = _protocols(args.protocol, engine, loaded)
    for name in wanted:
        protocols.get(name)
    asked = overrides.parse_assignments(args.assignments)
    options = {"allocation": args.allocation, "duration_s": args.duration, "variant": args.variant}
    changed = {key: value for key, value in options.items() if value is not None}
    if args.workload is not None:
        asked.scenario["workload"] = parse_workload(args.workload)
    if args.trace is not None:
        asked.scenario["sim.trace"] = list(args.trace)
    if args.capture is not None:
        if engine.abilities.clock is Clock.SIMULATED:
            reason = "it captures emulated links; --trace pcap has the simulator's packets"
            raise ScenarioError("--capture", "", reason)
        asked.scenario["live.capture"] = list(args.capture)
    final = overrides.apply(loaded, {**asked.scenario, **changed}, cases)
    check_read({**asked.scenario, **changed}, wanted)
    network = load_network(final.network, variant=final.variant, overrides=asked.network or None)
    scenario.check_network(final, cases, network)
    check_given_paths(final, cases, network)
    final = with_files(final, scenario.path_of(args.scenario_file).parent, network.hosts, cases)
    recorded = asked.recorded() | ({"allocation": args.allocation} if args.allocation else {})
    out = args.out or runner.default_output(final.name, now)
    return Job(
        engine=args.engine,
        scenario=final,
        network=network,
        variant=final.variant,
        overrides=recorded,
        cases=tuple(cases),
        protocols=tuple(wanted),
        seeds=tuple(range(1, args.seeds + 1)),
        duration_s=final.duration_s,
        out=out.absolute(),
        retries=args.retries,
        parallel=args.jobs,
        extensions=tuple(extension_files()),
    )


def _protocols(asked: tuple[str, ...] | None, engine: Engine, loaded: Scenario) -> list[str]:
    """Return the protocols asked for; by default all that an engine has and the scenario tells enough for."""
    if asked == (ALL,):
        return list(engine.abilities.protocols or protocols.usual())
    if asked:
        return list(asked)
    names = engine.abilities.protocols or loaded.protocols
    return [name for name in names if loaded.second_links or not protocols.get(name).uses_second_interfaces]
