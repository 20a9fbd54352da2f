"""What a protocol is to the experiments: how a source connects, and what each engine does for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from experiments.apps.config import SocketSettings
from experiments.model.scenario import Case, Flow, Scenario
from experiments.protocols.plot_style import PlotStyle
from experiments.registry import Registry

if TYPE_CHECKING:  # engines import protocols
    from contextlib import AsyncExitStack

    from experiments.apps.config import SinkConfig, SourceConfig
    from experiments.apps.transports import Accepting, SharedClients
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
    protocol: str
    controller: str
    """`address:port` of the controller's gRPC service, as the hosts reach it."""


class ProtocolSpec:
    """A protocol under comparison; by itself, plain TCP on the shortest paths by delay.

    A subclass says what is different, in one file, and an instance of it is given to
    `experiments.protocols.register` (docs/extensions.md).
    """

    name: str
    description: str
    plot_style: PlotStyle | None = None
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
    is_named_alone: bool = False
    """Whether `all` leaves it out, since not every machine or scenario can."""
    is_simulated: bool = True
    """Whether the simulator has it."""
    kernel_settings: Mapping[str, str | None] = {}
    """Sysctls that the kernel has to have, and what they have to be; None: whatever they are."""
    has_tcp_sockets: bool = True
    """Whether its connections are TCP sockets of the kernel, which can be looked at."""
    most_paths: int | None = None
    """How many paths a flow can have with real switches and kernels; None: as many as are allocated."""
    drain_advice: str = "allow more: --set drain_s=60"
    """What may help where a receiver has not read everything in time."""

    # --- the ends of a flow, in the hosts of the live and the virtual engine
    def connection(self, plan: FlowPlan) -> Mapping[str, Any]:
        """Return what both ends of a flow are told beside addresses and sizes, as JSON has it."""
        del plan
        return {}

    def sockets(self, scenario: Scenario, congestion_control: str) -> SocketSettings:
        """Return what the sockets at both ends are to have."""
        tcp = scenario.tcp
        return SocketSettings(congestion_control, tcp.send_buffer_bytes, tcp.receive_buffer_bytes)

    async def client(self, config: SourceConfig, ports: Sequence[int], session: SharedClients) -> Any:
        """Connect to the sink, from given ports if there are any; returns a transport.

        `experiments.apps.transports` says what a transport has to have, and wraps those of asyncio.
        """
        from experiments.apps.transports import connect_tcp

        del session
        return await connect_tcp(config, ports)

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Listen until the stack is left; the sink's `connection_made` gets the transport."""
        from experiments.apps.transports import serve

        await serve(config, sink, stack, plain=True)

    # --- the live and the virtual engine
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

    def simulated(self, scenario: Scenario) -> Mapping[str, Any]:
        """Return the simulator's transport: keys of a flow's description (docs/simulator.md)."""
        del scenario
        return {"protocol": "tcp"}


PROTOCOLS: Registry[ProtocolSpec] = Registry("protocol")
register = PROTOCOLS.register
get = PROTOCOLS.find


def usual() -> list[str]:
    """Return the protocols that `all` stands for."""
    return [name for name, each in PROTOCOLS.items() if not each.is_named_alone]
