"""One run, planned: what an engine is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from pydantic import Field

from experiments.model.data import Data
from experiments.model.dynamics import NetworkChange, changes_of
from experiments.model.programs import Program
from experiments.model.scenario import Case, Scenario
from topologies.model import Network


class RunPlan(Data):
    """One run: a case of a scenario on its network with one protocol and one seed."""

    scenario: Scenario
    network: Network
    case_name: str
    protocol: str
    seed: Annotated[int, Field(ge=0, lt=1 << 32)]
    duration_s: Annotated[float, Field(gt=0)]

    @property
    def case(self) -> Case:
        """The case that is run."""
        return self.scenario.case(self.case_name)

    @property
    def programs(self) -> list[Program]:
        """The programs of the case."""
        return [each for each in self.scenario.programs if not each.cases or self.case_name in each.cases]

    def protocol_of(self, flow: str) -> str:
        """Return the protocol of a flow: its own, or the run's."""
        return self.case.flows[flow].protocol or self.protocol

    def congestion_control_of(self, flow: str) -> str:
        """Return the congestion control of a flow: its own, or the run's."""
        return self.case.flows[flow].congestion_control or self.scenario.tcp.congestion_control

    def kernel_control_of(self, flow: str) -> str:
        """Return what a flow's sockets are told in kernels: its own control, the run's, or its response."""
        return self.case.flows[flow].congestion_control or self.scenario.tcp.kernel_control

    def requested_bps(self, flow: str) -> float:
        """Return the goodput that a flow asks for with its protocol."""
        return self.case.flows[flow].requested_for(self.protocol_of(flow))

    def parts(self) -> dict[str, RunPlan]:
        """Return for each protocol of the run a plan of the flows that have it."""
        names: dict[str, list[str]] = {}
        for flow in self.case.flows:
            names.setdefault(self.protocol_of(flow), []).append(flow)
        if list(names) in ([], [self.protocol]):
            return {self.protocol: self}
        return {protocol: self.with_flows(flows, protocol) for protocol, flows in names.items()}

    def with_flows(self, names: Iterable[str], protocol: str | None = None) -> RunPlan:
        """Return a plan of some flows, by a protocol if one is given."""
        case = self.case.model_copy(update={"flows": {name: self.case.flows[name] for name in names}})
        scenario = self.scenario.model_copy(update={"cases": {self.case_name: case}})
        return self.model_copy(update={"scenario": scenario, "protocol": protocol or self.protocol})

    @property
    def changes(self) -> tuple[NetworkChange, ...]:
        """What happens to the network, in the order of time."""
        scenario, case = self.scenario, self.case_name
        return changes_of(scenario.events, scenario.traces, self.network, case, self.seed, self.duration_s)

    @property
    def label(self) -> str:
        """The run's name in sentences, as `case 1 with mstcp, seed 1`."""
        return f"case {self.case_name} with {self.protocol}, seed {self.seed}"

    @property
    def title(self) -> str:
        """The run's name where a sentence begins."""
        return self.label[0].upper() + self.label[1:]

    @property
    def slug(self) -> str:
        """The run's name in file names, as `1-mstcp-s1`."""
        return f"{self.case_name}-{self.protocol}-s{self.seed}"
