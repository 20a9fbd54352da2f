"""`mstcp-lab run SCENARIO`: a scenario's cases with protocols and seeds; writes a document and a report."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from experiments import engines, protocols, runner
from experiments.cli.argument_types import names
from experiments.cli.run_and_report import make_runs
from experiments.cli.run_arguments import add_jobs, add_output, add_retries, add_scheduler, jobs, retries
from experiments.cli.watch import add_watch_arguments
from experiments.engines.base import Clock, Engine
from experiments.errors import ScenarioError
from experiments.model import overrides, scenario
from experiments.model.files import with_files
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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `run` to a parser."""
    parser.add_argument(
        "scenario_file", metavar="SCENARIO", help="a built-in scenario (see `mstcp-lab list`) or a TOML file"
    )
    parser.add_argument(
        "--engine", default="live", metavar="E", help=f"{', '.join(engines.ENGINES)} (default live)"
    )
    parser.add_argument(
        "--protocol",
        metavar="P,…",
        help="protocols, separated by commas, or `all` (default: the scenario's; with the "
        "simulator, all that it "
        "supports)",
    )
    parser.add_argument(
        "--case",
        dest="cases",
        metavar="C,…",
        help="cases, separated by commas (default: all of the scenario)",
    )
    # What `--case` was called before.
    parser.add_argument("--scenario", dest="cases", help=argparse.SUPPRESS)
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="repeat each run with the seeds 1 to N (default 1)"
    )
    add_retries(parser)
    add_jobs(parser)
    add_scheduler(parser)
    parser.add_argument(
        "--duration", type=float, metavar="S", help="seconds to measure (default: the scenario's)"
    )
    parser.add_argument("--variant", help="variant of the network (default: the scenario's)")
    parser.add_argument(
        "--allocation",
        metavar="A",
        help=f"{', '.join(scenario.OBJECTIVES)}, or an allocation that the scenario defines "
        "(default: the case's)",
    )
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the scenario or network: tcp.sack=true, flows.1.requested_bps=5e6, "
        "links.S0-S4.rate_bps=8e6; repeatable",
    )
    parser.add_argument(
        "--workload",
        metavar="W",
        help="workload of all flows: cbr, bulk:size=20MB, onoff:on=1,off=0.5, requests:per_s=20,sizes=30kB",
    )
    parser.add_argument(
        "--trace",
        metavar="F,…",
        help="simulator: record every packet in DIR/logs/RUN, as csv, pcap (one file per host) or parquet",
    )
    parser.add_argument(
        "--capture",
        metavar="LINK,…",
        help="live and virtual: keep every packet of these links in DIR/logs/RUN/LINK.pcapng",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for the results (default results/NAME-TIME)"
    )
    add_output(parser)
    add_watch_arguments(parser)


def main(args: argparse.Namespace) -> int:
    """Make the runs; returns the exit status.

    Raises:
        ExperimentError: an argument does not fit, the machine lacks something, or the user stopped.
    """
    return make_runs(job_from(args, time.time()), args)


def job_from(args: argparse.Namespace, now: float) -> Job:
    """Return the job that the arguments of `run` ask for, all checked.

    Raises:
        ScenarioError, UnknownName, TopologyError: an argument that does not fit, with what would.
    """
    loaded = scenario.load(args.scenario_file)
    cases = _names(args.cases, "--case") or list(loaded.cases)
    for name in cases:
        loaded.case(name)
    engine = engines.get(args.engine)
    wanted = _protocols(args.protocol, engine) or _default_protocols(engine, loaded)
    for name in wanted:
        protocols.get(name)
    seeds = runner.seeds_up_to(args.seeds)
    asked = overrides.parse_assignments(args.assignments)
    options = {"allocation": args.allocation, "duration_s": args.duration, "variant": args.variant}
    changed = {key: value for key, value in options.items() if value is not None}
    if args.workload is not None:
        asked.scenario["workload"] = parse_workload(args.workload)
    if args.trace is not None:
        asked.scenario["sim.trace"] = _names(args.trace, "--trace")
    if args.capture is not None:
        if engine.abilities.clock is Clock.SIMULATED:
            reason = "it captures emulated links; --trace pcap has the simulator's packets"
            raise ScenarioError("--capture", "", reason)
        asked.scenario["live.capture"] = _names(args.capture, "--capture")
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
        seeds=seeds,
        duration_s=final.duration_s,
        out=out.absolute(),
        retries=retries(args),
        parallel=jobs(args),
        extensions=tuple(extension_files()),
    )


def _default_protocols(engine: Engine, loaded: Scenario) -> list[str]:
    """Return all that an engine has, without what needs more than the scenario tells."""
    names = engine.abilities.protocols or loaded.protocols
    return [name for name in names if loaded.second_links or not protocols.get(name).uses_second_interfaces]


def _protocols(text: str | None, engine: Engine) -> list[str]:
    wanted = _names(text, "--protocol")
    return list(engine.abilities.protocols or protocols.usual()) if wanted == [ALL] else wanted


def _names(text: str | None, option: str) -> list[str]:
    try:
        return [] if text is None else list(names(text))
    except argparse.ArgumentTypeError as error:
        raise ScenarioError(option, "", str(error)) from None
