"""What a protocol is to the experiments: how a source connects, and what each engine does for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from experiments.apps.config import Connection
from experiments.model.results import FlowResult, LinkResult
from experiments.model.scenario import Case, Flow, Scenario
from experiments.protocols.look import Look

if TYPE_CHECKING:  # engines import protocols
    from collections.abc import Mapping

    from experiments.engines.live.agent import Agent, Lab
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan


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


class ProtocolSpec:
    """A protocol under comparison; by itself, plain TCP on the shortest paths by delay.

    A subclass says what is different, in one file, and an instance of it is given to
    `experiments.protocols.register` (docs/extensions.md).
    """

    name: str
    description: str
    look: Look | None = None
    """None: one that no other protocol of the report has."""
    header_bytes: int = 0
    """What the protocol takes of each full segment's payload."""
    default_routing: Literal["shortest", "ecmp"] = "shortest"
    """How the controller routes what it was asked nothing for."""
    set_apart: str | None = None
    """Why its results stand beside the others' and are not ranked with them; None if they are."""
    programs_ports: bool = False
    """Whether switches' ports carry XDP programs of its own: Open vSwitch cannot have AF_XDP beside them."""
    uses_second_interfaces: bool = False
    """Whether its hosts have the second interfaces that a scenario may give them (`second_links`)."""
    reads: tuple[str, ...] = ()
    """Keys of a scenario, or tables of keys, that not all protocols read; `KEY=VALUE` for one value alone."""
    writes_at_assigned_rate: bool = False
    """Whether sources write no faster than the controller assigned, since their connections know no rates."""
    simulated_as: Literal["tcp", "mptcp", "mstcp"] | None = "tcp"
    """The simulator's sender that it has; None: the simulator does not have the protocol."""
    kernel_protocol: Literal["tcp", "mptcp"] = "tcp"
    """What the kernel has to have for its sockets."""
    kernel_settings: tuple[str, ...] = ()
    """Sysctls that the kernel has to have."""
    most_paths: int | None = None
    """How many paths a flow can have with real switches and kernels; None: as many as are allocated."""
    drain_advice: str = "allow more: --set drain_s=60"
    """What may help where a receiver has not read everything in time."""

    # --- the live and the virtual engine
    def connection(self, plan: FlowPlan) -> Connection:
        """Return how the flow's source connects."""
        del plan
        return Connection()

    def agent(self, lab: Lab) -> Agent:
        """Return what the engine does for the protocol beside its sources and sinks."""
        from experiments.engines.live.agent import Agent

        return Agent(lab)

    def check_live(self, plan: RunPlan) -> None:
        """Refuse what real switches and kernels cannot do; MissingRequirement has the remedy."""

    # --- the simulator
    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the way of each flow by its name, as the controller would route or allocate it."""
        return routing.shortest_routes(plan)

    def simulated_settings(self, scenario: Scenario) -> dict[str, Any]:
        """Return what a flow's description has beside its sender, as netsim takes it."""
        del scenario
        return {}

    # --- all engines
    def further_evidence(self, flows: Sequence[FlowResult], links: Sequence[LinkResult]) -> dict[str, Any]:
        """Return what shows that the protocol did what its name says, beyond what engines look at."""
        del flows, links
        return {}
