"""The arguments of commands as data, how their texts are read, and those that several commands have."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from experiments.model.job import PARALLEL_LIMIT, RETRY_LIMIT
from experiments.runner import SEED_LIMIT
from topologies.formats.raw import ReadOptions
from topologies.units import UnitError, parse_rate_bps, rate_unit_bps, time_unit_us

MAX_LOAD = 1e6
DAY_S = 86_400.0
MTU_LIMITS = (68, 65535)
"""RFC 791: every host forwards 68 bytes; the longest IPv4 packet."""

Item = TypeVar("Item")


Argument: TypeAlias = tuple[str, dict[str, Any]]
"""Its name as on the command line, and what `ArgumentParser.add_argument` is told of it."""
Arguments: TypeAlias = tuple[Argument, ...]


def argument(
    name: str, metavar: str, text: str, kind: Any = None, default: str | float | None = None, **further: Any
) -> Argument:
    """Return an argument with a value, which `kind` reads; its help names the default."""
    if default is not None:
        text += f" (default {default if isinstance(default, str) else format(default, 'g')})"
        further["default"] = default
    return name, {"metavar": metavar, "help": text, "type": kind, **further}


def flag(name: str, text: str, **further: Any) -> Argument:
    """Return an option without a value."""
    return name, {"help": text, "action": "store_true", **further}


def repeatable(name: str, metavar: str, text: str, kind: Any = None, **further: Any) -> Argument:
    """Return an option that can be given several times; its values are a list."""
    given = {"action": "append", "default": [], **further}
    return name, {"metavar": metavar, "help": f"{text}; repeatable", "type": kind, **given}


# --- how texts are read; each says what an argument must be


def between(least: int, most: int) -> Callable[[str], int]:
    """Return a reader of whole numbers within limits."""

    def read(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text} is not between {least} and {most}")
        return number

    read.__name__ = "int"  # in argparse's sentence on what is no number
    return read


def whole(text: str) -> int:
    """Read a whole number of at least 1."""
    number = int(text) if text.strip().isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return number


def mtu_bytes(text: str) -> int:
    """Read an MTU in bytes."""
    least, most = MTU_LIMITS
    number = whole(text)
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{text} is not an MTU of {least} to {most} bytes")
    return number


def _number(what: str, most: float = math.inf, *, or_0: bool = False) -> Callable[[str], float]:
    """Return a reader of finite numbers above 0, or from 0 on."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not (0 < number <= most and number < math.inf) and not (or_0 and number == 0):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return number

    return read


positive = _number("a number above 0")
seconds = _number("a number of seconds, 0 or more", or_0=True)
simulated_seconds = _number(f"a number of seconds above 0, {DAY_S:g} at most", DAY_S)


def load_number(text: str) -> float:
    """Read a load."""
    load = positive(text)
    if load > MAX_LOAD:
        raise argparse.ArgumentTypeError(f"{text} is beyond the largest load of {MAX_LOAD:g}")
    return load


def _with_unit(parse: Callable[[str], float]) -> Callable[[str], float]:
    """Return a reader of what has a unit."""

    def read(text: str) -> float:
        try:
            return parse(text)
        except UnitError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def rate(text: str) -> float:
    """Read a rate above 0, with or without its unit; returns bit/s."""
    value_bps = _with_unit(parse_rate_bps)(text)
    if not value_bps > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate above 0")
    return value_bps


def names(text: str) -> tuple[str, ...]:
    """Read names separated by commas."""
    listed = [name.strip() for name in text.split(",")]
    if not all(listed):
        raise argparse.ArgumentTypeError(f"{text!r} has an empty name; write names separated by commas")
    return _distinct(listed, text)


def loads(text: str) -> tuple[float, ...]:
    """Read loads separated by commas."""
    return _distinct([positive(part) for part in text.split(",")], text)


def _distinct(values: list[Item], text: str) -> tuple[Item, ...]:
    if len(set(values)) < len(values):
        raise argparse.ArgumentTypeError(f"{text!r} names one twice")
    return tuple(values)


# --- what several commands have

JSON = flag("--json", "print the document as JSON on standard output and nothing else")
OUT = argument("--out", "DIR", "folder for the results (default results/NAME-TIME)", Path)
RETRIES = argument(
    "--retries",
    "N",
    "rerun invalid runs (the machine was too busy) up to N times",
    between(0, RETRY_LIMIT),
    0,
)
JOBS = argument(
    "--jobs",
    "N",
    "virtual engine and simulator: number of runs at once (default: one per core)",
    between(1, PARALLEL_LIMIT),
)
SCHEDULER = argument(
    "--scheduler",
    "ADDRESS",
    "simulate on the Dask cluster with this scheduler: tcp://HOST:8786 (default: on this machine)",
)
PORT = between(1, 65535)
NO_REPORT = flag(
    "--no-report",
    "write results.json alone, without report.html and plots; `mstcp-lab report` makes them later",
    dest="has_report",
    action="store_false",
)
WATCH = (
    flag("--watch", "show the progress of the runs on a web page; its address is printed"),
    argument("--watch-port", "PORT", "port of the page on 127.0.0.1 (default: a free one)", PORT),
)
MAKING_RUNS = (SCHEDULER, JSON, NO_REPORT, *WATCH)
"""Options of all commands that make runs as `run` does."""
SET = repeatable(
    "--set",
    "KEY=VALUE",
    "override a value of the scenario or network: tcp.sack=true, flows.1.requested_bps=5e6, "
    "links.S0-S4.rate_bps=8e6",
    dest="assignments",
)
NETWORK = (
    argument(
        "network",
        "NETWORK",
        "a file (.graphml, .gml, .json, .toml, SNDlib's or REPETITA's), a built-in network, or a "
        "generator: waxman:50:seed=1",
    ),
    argument(
        "--demands",
        "D",
        "gravity, uniform, bimodal, all-pairs (a whole matrix by gravity) or a file: CSV, JSON, .npy, "
        ".npz, pickled NumPy, SNDlib's or REPETITA's",
        default="gravity",
    ),
    argument("--flows", "N", "number of flows to generate (default 100)", whole),
    argument(
        "--capacity",
        "RATE",
        "capacity of links without one in the file: 1e9, 10Gbit/s (default 1 Gbit/s)",
        rate,
    ),
)
"""Which demands are routed over which network."""
FORMAT = (
    argument("--rate-unit", "U", "unit of rates without one in the file: Mbit/s", _with_unit(rate_unit_bps)),
    argument("--delay-unit", "U", "unit of delays without one in the file: ms", _with_unit(time_unit_us)),
    argument(
        "--links",
        "W",
        "direction of the links of an SNDlib file: both-ways or one-way (default: both ways, unless every "
        "link has its reverse)",
        choices=("both-ways", "one-way"),
    ),
    flag("--ignore-planned", "leave links out that are only planned (Topology Zoo)"),
    flag("--largest-part", "of a network of several parts take the largest alone"),
)
"""What a network's or demands' file leaves open."""


def seeds_argument(default: int) -> Argument:
    """Return the option that says how many seeds there are."""
    return argument("--seeds", "N", "repeat each run with the seeds 1 to N", between(1, SEED_LIMIT), default)


def read_options(args: argparse.Namespace) -> ReadOptions:
    """Return what the arguments say of the network's file."""
    return ReadOptions(
        default_rate_bps=args.capacity,
        rate_unit_bps=args.rate_unit,
        delay_unit_us=args.delay_unit,
        both_ways=None if args.links is None else args.links == "both-ways",
        ignore_planned=args.ignore_planned,
        largest_part=args.largest_part,
    )
