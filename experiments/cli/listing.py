"""`mstcp-lab list`: the networks, scenarios, protocols and engines that there are."""

from __future__ import annotations

import argparse

from experiments import engines, protocols
from experiments.cli.arguments import Arguments
from experiments.model import scenario
from topologies import builtin_names
from topologies import load as load_network

NAME = "list"
HELP = "list networks, scenarios, protocols and engines"


ARGUMENTS: Arguments = ()


def main(args: argparse.Namespace) -> int:
    """Print the names with what they are; returns the exit status."""
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
    for name, engine in engines.ENGINES.items():
        print(f"  {name:15} {engine.description}")
    return 0
