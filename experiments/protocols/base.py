"""What a protocol is to the experiments: how a source connects, and what shows that it was used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from experiments.apps.config import Connection
from experiments.results import FlowResult, LinkResult
from experiments.scenario import Case, Flow, Scenario


@dataclass(frozen=True)
class FlowPlan:
    """One flow as a protocol needs to know it."""

    name: str
    scenario: Scenario
    case: Case
    flow: Flow
    seed: int
    controller: str
    """`address:port` of the controller's gRPC service, as the hosts reach it."""


class ProtocolSpec(Protocol):
    """A protocol under comparison. Implementations are registered in `experiments.protocols`."""

    name: str
    description: str
    header_bytes: int
    """What the protocol takes of each full segment's payload."""
    default_routing: Literal["shortest", "ecmp"]
    """How the controller routes what it was asked nothing for."""

    def connection(self, plan: FlowPlan) -> Connection:
        """Return how the flow's source connects."""

    def check(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, object]:
        """Return what shows that the protocol did what its name says."""
