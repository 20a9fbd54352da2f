"""Checks the paths that a scenario gives itself, against the network that they are to be pinned in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from experiments.errors import ScenarioError
from experiments.model.scenario import Scenario
from topologies.model import Network


def check_given_paths(checked: Scenario, cases: Sequence[str], network: Network) -> None:
    """Refuse given paths that no packet could take.

    Raises:
        ScenarioError: with the place of the first path that does not lead over links that are there, through
            switches alone and through each at most once. That it has its flow's ends, the schema checks.
    """
    joined = {(arc.tail, arc.head) for arc in network.arcs()}
    for case in cases:
        for name, flow in checked.case(case).flows.items():
            for allocation, by_protocol in flow.given.items():
                for protocol, paths in by_protocol.items():
                    for index, given in enumerate(paths):
                        reason = _problem(given.path, joined, network.hosts)
                        if reason:
                            place = f"cases.{case}.flows.{name}.given.{allocation}.{protocol}.{index}.path"
                            raise ScenarioError(checked.name, place, reason)


def _problem(path: Sequence[str], joined: set[tuple[str, str]], hosts: Sequence[str]) -> str | None:
    """Return what is wrong with a path; None if nothing is."""
    for tail, head in pairwise(path):
        if (tail, head) not in joined:
            return f"no link leads from {tail} to {head}"
    for index, node in enumerate(path):
        if node in path[:index]:
            return f"it passes {node} twice: leave the loop out"
        if node in hosts and 0 < index < len(path) - 1:
            return f"it leads through the host {node}, which does not forward"
    return None
