"""`mstcp-lab`: list what there is, check the machine, run scenarios, report, browse, export, solve, sweep."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from controller.errors import InvalidProblem, SolverError
from experiments import (
    compare,
    completion,
    demands,
    demo,
    doctor,
    engines,
    export,
    methods,
    overrides,
    protocols,
    reproduce,
    runner,
    scenario,
    scheduling,
    shell,
    solve,
)
from experiments.engines.base import Engine
from experiments.errors import ExperimentError, ExtensionError, Interrupted, ScenarioError, UnknownName
from experiments.given_paths import check_given_paths
from experiments.job import PARALLEL_LIMIT, RETRY_LIMIT, Job, begun
from experiments.reading import read_results
from experiments.registry import extend, extension_files
from experiments.run_and_report import report, run_and_report
from experiments.scenario import Scenario
from experiments.sweep import command as sweep
from experiments.web import command as web
from experiments.workloads.shorthand import parse_workload
from topologies import TopologyError, builtin_names
from topologies import load as load_network

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130
ALL = "all"
JSON_HELP = "print the results document on standard output"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0 done, 1 failed, 2 wrong arguments, 130 stopped)."""
    try:
        extensions, rest = _extensions(sys.argv[1:] if argv is None else argv)
        extend(extensions)
        args = _parser().parse_args(rest)
        status: int = args.command(args)
    except Interrupted as error:
        return _complain(error, EXIT_INTERRUPTED)
    except KeyboardInterrupt:
        return _complain("Stopped.", EXIT_INTERRUPTED)
    except (ScenarioError, ExtensionError, UnknownName, TopologyError, InvalidProblem, _UsageError) as error:
        return _complain(error, EXIT_USAGE)
    except (ExperimentError, SolverError) as error:
        return _complain(error, EXIT_FAILED)
    return status


class _UsageError(Exception):
    """An argument that argparse cannot check."""


def _complain(what: object, status: int) -> int:
    text = str(what)
    print(f"mstcp-lab: {text}" + ("" if text.endswith((".", "!", "?")) else "."), file=sys.stderr)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mstcp-lab",
        description="Experiments with globally optimal multipath routing and Multi-Stream TCP.",
    )
    _add_extend(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="list networks, scenarios, protocols and engines")
    listing.set_defaults(command=_list)
    checking = commands.add_parser(
        "doctor", help="check what this machine can run, and how to fix what is missing"
    )
    doctor.add_arguments(checking)
    checking.set_defaults(command=doctor.main)
    _add_run(commands.add_parser("run", help="run a scenario and write results.json and report.html"))
    resuming = commands.add_parser(
        "resume", help="rerun those of a results folder that are missing or were not valid"
    )
    resuming.add_argument("folder", type=Path, help="a folder that `run --out` wrote to")
    _add_retries(resuming)
    scheduling.add_argument(resuming)
    resuming.add_argument("--json", action="store_true", help=JSON_HELP)
    web.add_watch_arguments(resuming)
    resuming.set_defaults(command=_resume)
    shell.add_arguments(
        commands.add_parser("shell", help="bring a network up and open Mininet's prompt in it (needs root)")
    )
    reporting = commands.add_parser("report", help="rewrite the report of a results folder")
    reporting.add_argument("folder", type=Path, help="a folder with results.json")
    reporting.set_defaults(command=_report)
    web.add_browse_arguments(
        commands.add_parser("browse", help="look at results in a browser: choose, compare, replay, export")
    )
    comparing = commands.add_parser(
        "compare", help="compare results folders: what differs, and whether it matters"
    )
    compare.add_arguments(comparing)
    comparing.set_defaults(command=compare.main)
    export.add_arguments(
        commands.add_parser("export", help="write a results document as tables: CSV or Parquet")
    )
    reproduce.add_arguments(
        commands.add_parser("reproduce", help="reproduce a paper's tables in the simulator, claim by claim")
    )
    methods.add_arguments(
        commands.add_parser("methods", help="compare schedulers, congestion controls or responses")
    )
    solve.add_arguments(
        commands.add_parser("solve", help="route demands over a network by GOMR, with the certificate")
    )
    demo.add_arguments(
        commands.add_parser("demo", help="Table I simulated, then the butterfly live or in virtual time")
    )
    sweep.add_arguments(
        commands.add_parser("sweep", help="simulate a network under rising load, each protocol in turn")
    )
    completion.add_arguments(
        commands.add_parser("completion", help="print the script by which a shell completes these commands"),
        _parser,
    )
    return parser


def _extensions(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part `--extend PATH`, wherever it stands, from the others: it adds names that these may have."""
    parser = argparse.ArgumentParser(prog="mstcp-lab", add_help=False, allow_abbrev=False)
    _add_extend(parser)
    known, rest = parser.parse_known_args(argv)
    return known.extend, rest


def _add_extend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--extend",
        action="append",
        default=[],
        metavar="PATH",
        help="a Python file that adds protocols, workloads, metrics or engines, or a folder of such files; "
        "repeatable",
    )


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "scenario_file", metavar="SCENARIO", help="a built-in scenario (butterfly) or a TOML file"
    )
    parser.add_argument(
        "--engine", default="live", help=f"one of {', '.join(engines.ENGINES)} (default live)"
    )
    parser.add_argument(
        "--protocol",
        metavar="P,…",
        help="protocols, by commas, or `all` (default: the scenario's; with the simulator, all that it has)",
    )
    parser.add_argument(
        "--case", dest="cases", metavar="C,…", help="cases, by commas (default: all of the file)"
    )
    # What `--case` was called before.
    parser.add_argument("--scenario", dest="cases", help=argparse.SUPPRESS)
    parser.add_argument(
        "--seeds", type=int, default=1, metavar="N", help="run each with seeds 1 to N (default 1)"
    )
    _add_retries(parser)
    parser.add_argument(
        "--jobs",
        type=int,
        metavar="N",
        help="virtual engine and simulator: runs made at once (default: one per core)",
    )
    scheduling.add_argument(parser)
    parser.add_argument(
        "--duration", type=float, metavar="S", help="seconds to measure (default: the scenario's)"
    )
    parser.add_argument("--variant", help="variant of the network (default: the scenario's)")
    parser.add_argument(
        "--allocation",
        metavar="A",
        help=f"{', '.join(scenario.OBJECTIVES)}, or one that the scenario gives (default: the case's)",
    )
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="override a value of the scenario or network, as tcp.sack=true, flows.1.requested_bps=5e6, "
        "links.S0-S4.rate_bps=8e6; repeatable",
    )
    parser.add_argument(
        "--workload",
        metavar="W",
        help="what all flows send: cbr, bulk:size=20MB, onoff:on=1,off=0.5, requests:per_s=20,sizes=30kB",
    )
    parser.add_argument(
        "--trace",
        metavar="F,…",
        help="simulator: files of every packet in DIR/logs/RUN: csv, pcap (of each host), parquet",
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where the results go (default results/NAME-TIME)"
    )
    parser.add_argument("--json", action="store_true", help=JSON_HELP)
    web.add_watch_arguments(parser)
    parser.set_defaults(command=_run)


def _add_retries(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--retries",
        type=int,
        default=0,
        metavar="N",
        help="rerun a run that is not valid (the machine was too busy), up to N times (default 0)",
    )


def _exit_status(failures: Sequence[str]) -> int:
    for failure in failures:
        _complain(failure, EXIT_FAILED)
    return EXIT_FAILED if failures else 0


def _retries(args: argparse.Namespace) -> int:
    retries: int = args.retries
    if not 0 <= retries <= RETRY_LIMIT:
        raise ScenarioError("--retries", "", f"{retries} is not between 0 and {RETRY_LIMIT}")
    return retries


def _list(args: argparse.Namespace) -> int:
    del args
    print("Networks (also a .toml, .json or .graphml file, or a generator as ring:6):")
    for name in builtin_names():
        print(f"  {name:15} {load_network(name).description}")
    print("Scenarios:")
    for name in scenario.available():
        loaded = scenario.load(name)
        print(f"  {name:15} {loaded.description}")
        for case_name, case in loaded.cases.items():
            print(f"    {case_name:13} {case.description}")
    print("Protocols:")
    for name, protocol in protocols.PROTOCOLS.items():
        print(f"  {name:15} {protocol.description}")
    print("Engines:")
    for name in engines.ENGINES:
        print(f"  {name:15} {engines.get(name).description}")
    return 0


def _run(args: argparse.Namespace) -> int:
    job = job_from(args, time.time())
    with web.watching(job, args) as watch:
        return _exit_status(run_and_report(job, json=args.json, scheduler=args.scheduler, watch=watch))


def _resume(args: argparse.Namespace) -> int:
    job = begun(args.folder).model_copy(update={"retries": _retries(args)})
    if not job.pending():
        print(f"Every run in {args.folder} is there and valid.", file=sys.stderr)
        return 0
    with web.watching(job, args) as watch:
        return _exit_status(
            run_and_report(job, json=args.json, resume=True, scheduler=args.scheduler, watch=watch)
        )


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
    final = overrides.apply(loaded, {**asked.scenario, **changed}, cases)
    network = load_network(final.network, variant=final.variant, overrides=asked.network or None)
    scenario.check_flows(final, cases, network.hosts)
    check_given_paths(final, cases, network)
    final = demands.expand(final, scenario.path_of(args.scenario_file).parent, network.hosts, cases)
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
        retries=_retries(args),
        parallel=_parallel(args),
        extensions=tuple(extension_files()),
    )


def _parallel(args: argparse.Namespace) -> int | None:
    jobs: int | None = args.jobs
    if jobs is not None and not 1 <= jobs <= PARALLEL_LIMIT:
        raise ScenarioError("--jobs", "", f"{jobs} is not between 1 and {PARALLEL_LIMIT}")
    return jobs


def _default_protocols(engine: Engine, loaded: Scenario) -> list[str]:
    """Return all that an engine has, without what needs more than the scenario tells."""
    names = engine.abilities.protocols or loaded.protocols
    return [name for name in names if loaded.second_links or not protocols.get(name).uses_second_interfaces]


def _protocols(text: str | None, engine: Engine) -> list[str]:
    names = _names(text, "--protocol")
    return list(engine.abilities.protocols or protocols.PROTOCOLS) if names == [ALL] else names


def _names(text: str | None, option: str) -> list[str]:
    if text is None:
        return []
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise _UsageError(f"{option}: {text!r} has an empty name; write names separated by commas")
    if len(set(names)) < len(names):
        raise _UsageError(f"{option}: {text!r} names one twice")
    return names


def _report(args: argparse.Namespace) -> int:
    results = read_results(args.folder)
    report(results, args.folder, table=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
