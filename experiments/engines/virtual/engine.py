"""The live engine as it runs in the virtual kernel."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from experiments.apps.config import Timing
from experiments.engines.base import Abilities, Clock
from experiments.engines.live.agent import Lab
from experiments.engines.live.engine import LiveEngine
from experiments.engines.live.traffic import Traffic
from experiments.model.plan import RunPlan
from switch.packet_digest import PacketDigest
from switch.tcp import Controls
from topologies.mininet_builder import Emulation


class VirtualEngine(LiveEngine):
    """Mininet, Open vSwitch, controller and kernel TCP, as the live engine has them, in virtual time."""

    name = "virtual"
    abilities = Abilities(clock=Clock.VIRTUAL, protocols=None, drains=True)

    def _traffic(
        self, plan: RunPlan, emulation: Emulation, out: Path, controller: str, controls: Controls
    ) -> Traffic:
        settings = plan.scenario.virtual
        timing = Timing(
            wake_early_ns=0,
            write_gap_ns=0,
            read_gap_ns=0,
            tick_jitter=settings.tick_jitter,
            wakeup_ns=round(settings.wakeup_s * 1e9),
        )
        return Traffic(plan, emulation, out, controller, timing, controls, settings.start_jitter_s)

    def _charged_s(self, plan: RunPlan) -> dict[str, float]:
        settings = plan.scenario.virtual
        return {"wakeup": settings.wakeup_s, "planning": settings.planning_s}

    def _watch_packets(self, lab: Lab, begin_ns: int) -> AbstractContextManager[Callable[[], str | None]]:
        return _watching(lab, begin_ns)


@contextmanager
def _watching(lab: Lab, begin_ns: int) -> Iterator[Callable[[], str]]:
    """Watch the switches' ports, where every packet comes by, from the first byte of the first flow."""
    hosts = set(lab.plan.network.hosts)
    ports = {
        f"{arc.tail}:{arc.tail_port}": lab.names.port(arc.tail, arc.tail_port)
        for arc in lab.plan.network.arcs()
        if arc.tail not in hosts
    }
    with PacketDigest(ports.values(), begin_ns) as watching:

        def digest() -> str:
            seen = watching.read()
            lines = (f"{place} {seen[ports[place]]}" for place in sorted(ports))
            return hashlib.sha256("\n".join(lines).encode()).hexdigest()

        yield digest
