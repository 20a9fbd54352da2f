"""The agents of a run whose flows have several protocols, as one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from experiments import protocols
from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.model.evidence import Evidence
from experiments.model.results import PathAllocation
from experiments.protocols.base import FlowPlan


def agent_of(lab: Lab) -> Agent:
    """Return the agent of a run: that of its protocol, or one for all that its flows have."""
    parts = lab.plan.parts()
    agents = {
        name: protocols.get(name).agent(lab if part is lab.plan else replace(lab, plan=part))
        for name, part in parts.items()
    }
    if len(agents) == 1:
        return next(iter(agents.values()))
    return Agents(lab, {flow: agents[lab.plan.protocol_of(flow)] for flow in lab.plan.case.flows})


class Agents(Agent):
    """Has each flow's agent do what is to be done for it; they are entered together."""

    def __init__(self, lab: Lab, by_flow: Mapping[str, Agent]) -> None:
        super().__init__(lab)
        self._by_flow = by_flow
        self._stack = ExitStack()

    def __enter__(self) -> Agent:
        for agent in self._each():
            self._stack.enter_context(agent)
        return self

    def _each(self) -> Iterator[Agent]:
        return iter(dict.fromkeys(self._by_flow.values()))

    def prepare(self) -> None:
        """Set the hosts up."""
        for agent in self._each():
            agent.prepare()

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Prepare a flow."""
        return self._by_flow[flow.name].connecting(flow, port)

    def connected(self) -> Mapping[str, float]:
        """Return the rates that sources have to keep to."""
        return {flow: rate_bps for agent in self._each() for flow, rate_bps in agent.connected().items()}

    def sample(self, now_ns: int) -> None:
        """Read counters."""
        for agent in self._each():
            agent.sample(now_ns)

    def look(self, counting: bool = True) -> None:
        """Read the state of the connections."""
        for agent in self._each():
            agent.look(counting)

    def finish(self) -> None:
        """Read what outlives the connections."""
        for agent in self._each():
            agent.finish()

    def streams(self, flow: str) -> list[CarriedPath] | None:
        """Return a connected flow's allocated paths."""
        return self._by_flow[flow].streams(flow)

    def counted_bytes(self, flow: str) -> list[int] | None:
        """Return what each path of a flow had carried at the last sample."""
        return self._by_flow[flow].counted_bytes(flow)

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return a flow's paths."""
        return self._by_flow[flow].carried(flow)

    def paths_now(self) -> dict[str, list[PathAllocation]]:
        """Return the paths that flows have at the moment."""
        return {flow: paths for agent in self._each() for flow, paths in agent.paths_now().items()}

    def evidence(self) -> Evidence:
        """Return what shows that each protocol did what its name says."""
        each = [agent.evidence() for agent in self._each()]
        return Evidence(
            flows={flow: told for evidence in each for flow, told in evidence.flows.items()},
            hosts={host: counters for evidence in each for host, counters in evidence.hosts.items()},
            further={name: told for evidence in each for name, told in evidence.further.items()},
        )

    def problems(self) -> list[str]:
        """Return a sentence for each thing that makes the run invalid."""
        return [reason for agent in self._each() for reason in agent.problems()]

    def close(self) -> None:
        """Take back what would outlive the run."""
        self._stack.close()
