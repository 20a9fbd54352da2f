"""The arguments of `solve` and `sweep` that say which demands are routed over which network."""

from __future__ import annotations

import argparse

from experiments.cli.argument_types import delay_unit, rate, rate_unit, whole
from topologies.formats.raw import ReadOptions


def add_network_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which demands are routed over which network."""
    parser.add_argument(
        "network",
        metavar="NETWORK",
        help="a file (.graphml, .gml, .json, .toml, SNDlib's or REPETITA's), a built-in network, or a "
        "generator: waxman:50:seed=1",
    )
    parser.add_argument(
        "--demands",
        default="gravity",
        metavar="D",
        help="gravity, uniform, bimodal, all-pairs (a whole matrix by gravity) or a file: CSV, JSON, .npy, "
        ".npz, pickled NumPy, SNDlib's or REPETITA's (default gravity)",
    )
    parser.add_argument("--flows", type=whole, metavar="N", help="number of flows to generate (default 100)")
    parser.add_argument(
        "--capacity",
        type=rate,
        metavar="RATE",
        help="capacity of links without one in the file: 1e9, 10Gbit/s (default 1 Gbit/s)",
    )


def add_format_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say what a network's or demands' file leaves open."""
    parser.add_argument(
        "--rate-unit", type=rate_unit, metavar="U", help="unit of rates without one in the file: Mbit/s"
    )
    parser.add_argument(
        "--delay-unit", type=delay_unit, metavar="U", help="unit of delays without one in the file: ms"
    )
    parser.add_argument(
        "--links",
        choices=("both-ways", "one-way"),
        help="direction of the links of an SNDlib file (default: both ways, unless every link has "
        "its reverse)",
    )
    parser.add_argument(
        "--ignore-planned", action="store_true", help="leave links out that are only planned (Topology Zoo)"
    )
    parser.add_argument(
        "--largest-part", action="store_true", help="of a network of several parts take the largest alone"
    )


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
