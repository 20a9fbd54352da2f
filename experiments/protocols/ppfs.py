"""Per-packet flow splitting, the predecessor of MSTCP: one TCP connection whose packets the switch spreads.

The paper's PPFS draws the path of each packet at random, by the ratios of the allocation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from experiments.engines.live.agent import Agent, CarriedPath, Lab
from experiments.errors import MissingRequirement
from experiments.model.evidence import FlowEvidence, PathEvidence
from experiments.model.settings import SPLIT_ACKS
from experiments.protocols.allocated import AllocatedAgent, flow_request
from experiments.protocols.base import FlowPlan, ProtocolSpec, register
from experiments.protocols.plot_style import GREEN, PlotStyle
from switch.ppfs import FlowKey, Splitter

if TYPE_CHECKING:
    from experiments.engines.sim.routing import Route, Routing
    from experiments.model.plan import RunPlan

PINNED_TABLE = 3
_SPLIT_GROUPS = 0x0200_0000
_BUCKET_PACKETS = re.compile(r"bucket\d+:packet_count=(\d+)")
_PACKETS = re.compile(r"\bn_packets=(\d+)")


class SplitAgent(AllocatedAgent):
    """Stands for the source at the controller and for the ingress switch at its port."""

    def __init__(self, lab: Lab, protocol: Ppfs) -> None:
        super().__init__(lab, protocol.request)
        self._protocol = protocol
        self._splitters: dict[str, Splitter] = {}
        self._times_ns: list[int] = []
        self._samples: dict[str, list[list[int]]] = {}

    def connecting(self, flow: FlowPlan, port: int) -> dict[str, Any]:
        """Ask for the flow, and split it from its first packet on."""
        super().connecting(flow, port)
        view = self._flows[flow.name]
        self._samples[flow.name] = []
        self._program(view)
        return {"source_ports": [view["split"]["source_port"]]}

    def connected(self) -> Mapping[str, float]:
        """Take over what later flows have changed of earlier ones."""
        before, rates = self._flows, super().connected()
        for name, view in self._flows.items():
            if view["split"]["shares"] != before[name]["split"]["shares"]:
                self._program(view)
        return rates

    def sample(self, now_ns: int) -> None:
        """Read what each path has got of the payload."""
        if not self._splitters:
            return
        self._times_ns.append(now_ns)
        overhead = self.lab.plan.scenario.overhead_bytes
        for name, view in self._flows.items():
            counted = self._counters(view)
            self._samples[name].append([size - packets * overhead for packets, size in counted])

    def finish(self) -> None:
        """Bring the counters of all rules up to date: they lag behind."""
        super().finish()
        self.lab.ovs.appctl("revalidator/wait")

    def counted_bytes(self, flow: str) -> list[int] | None:
        """Return the payload that the splitter has sent along each path."""
        samples = self._samples[flow]
        return samples[-1] if samples else None

    def carried(self, flow: str) -> list[CarriedPath] | None:
        """Return the allocated paths, with the payload that went along each as far as it was counted."""
        times = np.array(self._times_ns, dtype=np.int64)
        samples = np.array(self._samples[flow], dtype=np.int64)
        view = self._flows[flow]
        paths = self.streams(flow) or []
        if len(samples):
            return [
                replace(path, times_ns=times, counted_bytes=samples[:, index])
                for index, path in enumerate(paths)
            ]
        shares = shares_of(self._forwarded(view))
        if shares is None:
            return paths
        return [replace(path, share=share) for path, share in zip(paths, shares, strict=True)]

    def flow_evidence(self, flow: str) -> FlowEvidence:
        """Return the split that was asked for and the one that came about."""
        view = self._flows[flow]
        split, forwarded = view["split"], self._forwarded(view)
        counted, splitter = forwarded, None
        if self._protocol.splitting == "packets":
            counted = [packets for packets, _ in self._counters(view)]
            program = self._splitter(view)
            splitter = f"{program.interface} {program.mode}"
        realised: Sequence[float | None] = shares_of(counted) or [None] * len(counted)
        columns = zip(view["streams"], split["shares"], realised, counted, forwarded, strict=True)
        return FlowEvidence(
            paths=[
                PathEvidence(
                    path=stream["path"],
                    asked=asked,
                    realised=share,
                    packets=packets,
                    forwarded_packets=passed,
                )
                for stream, asked, share, packets, passed in columns
            ],
            split_by=self._protocol.splitting,
            splitter=splitter,
            ack_rule=split["acks"],
            ack_path=split["ack_path"],
        )

    def problems(self) -> list[str]:
        """Add a sentence for each flow of which a splitter saw no packet."""
        reasons = super().problems()
        if self._protocol.splitting == "group":
            return reasons
        return reasons + [
            f"the splitter saw no packet of flow {name}"
            for name, view in self._flows.items()
            if not sum(packets for packets, _ in self._counters(view))
        ]

    def close(self) -> None:
        """Detach the splitters."""
        while self._splitters:
            self._splitters.popitem()[1].close()

    def _program(self, view: dict[str, Any]) -> None:
        if self._protocol.splitting == "packets":
            split = view["split"]
            self._splitter(view).set(_key(split), split["shares"], split["stamps"])

    def _splitter(self, view: dict[str, Any]) -> Splitter:
        ingress = view["split"]["ingress"]
        interface = self.lab.names.port(ingress["switch"], ingress["port"])
        if interface not in self._splitters:
            self._splitters[interface] = Splitter(interface)
        return self._splitters[interface]

    def _counters(self, view: dict[str, Any]) -> list[tuple[int, int]]:
        return self._splitter(view).counters(_key(view["split"]))

    def _forwarded(self, view: dict[str, Any]) -> list[int]:
        """Return the packets of each path that the ingress has sent by the end."""
        split = view["split"]
        bridge = self.lab.names.bridge(split["ingress"]["switch"])
        if self._protocol.splitting == "group":
            number = _SPLIT_GROUPS + int(split["stamps"][0][9:14].replace(":", ""), 16)
            buckets = self.lab.ovs.ofctl("dump-group-stats", bridge, f"group_id={number}")
            return [int(count) for count in _BUCKET_PACKETS.findall(buckets)]
        return [self._with_stamp(bridge, stamp) for stamp in split["stamps"]]

    def _with_stamp(self, bridge: str, stamp: str) -> int:
        rules = self.lab.ovs.ofctl("dump-flows", bridge, f"table={PINNED_TABLE},dl_src={stamp}")
        return sum(int(count) for count in _PACKETS.findall(rules))


def shares_of(packets: list[int]) -> list[float] | None:
    """Return the share of each path; None where there was no packet."""
    total = sum(packets)
    return [count / total for count in packets] if total else None


def _key(split: Mapping[str, Any]) -> FlowKey:
    return FlowKey(
        split["source_ip"], split["destination_ip"], split["source_port"], split["destination_port"]
    )


class Ppfs(ProtocolSpec):
    """One plain TCP connection per flow, asked for at the controller before the source connects."""

    name = "ppfs"
    description = "plain TCP whose packets the ingress switch spreads over the allocated paths at random"
    plot_style: PlotStyle | None = GREEN
    splitting: Literal["packets", "group"] = "packets"
    programs_ports = True
    reads = ("allocation", "ppfs", "sim.pacing=allocated")
    writes_at_assigned_rate = True

    def request(self, plan: FlowPlan, port: int) -> dict[str, Any]:
        """Return what the controller's REST service is asked for."""
        return {
            **flow_request(plan, self.name, port),
            "splitting": self.splitting,
            "ack_path": plan.scenario.ppfs.ack_path,
        }

    def agent(self, lab: Lab) -> Agent:
        """Return what asks for the flows and programs the splitters."""
        return SplitAgent(lab, self)

    def check_live(self, plan: RunPlan) -> None:
        """Refuse acknowledgements that are split too."""
        if plan.scenario.ppfs.ack_path == SPLIT_ACKS:
            what = "Switches do not draw paths for the acknowledgements of split flows."
            raise MissingRequirement(what, "Set ppfs.ack_path to shortest, or use --engine sim.")

    def routes(self, plan: RunPlan, routing: Routing) -> Mapping[str, Route]:
        """Return the allocated paths, and where the acknowledgements go."""
        return routing.allocated_routes(plan, plan.scenario.overhead_bytes, plan.scenario.ppfs.ack_path)


register(Ppfs())
