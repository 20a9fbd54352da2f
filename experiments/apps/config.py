"""What sources and sinks are told: plain data, a JSON file for each process."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass
from pydantic_core import to_json

from experiments.workloads import Workload

PORT = 5001
_SEED_STRIDE = 1_000_003
"""Apart from each other, so that no two flows of nearby seeds share a scheduler's draws."""


@dataclass(frozen=True)
class SocketSettings:
    """Set on every socket before it connects or listens, and read back. None leaves the kernel's default."""

    congestion_control: str
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None


@dataclass(frozen=True)
class Timing:
    """How a source or sink keeps time; the defaults are for a machine that carries the network too.

    Attributes:
        wake_early_ns: What the kernel and the event loop take, on average, from a timer to the code.
        write_gap_ns: Writes that fall due within this time are served together, which spares the processor
            thousands of wake-ups a second and moves a packet by less than it takes to send one at 10 Mbit/s.
        read_gap_ns: What comes within this time is read together; above 2,500 packets a second it adds half
            of it to the delay.
        tick_jitter: Each tick of a constant bit rate is late by up to this part of the time between two.
        wakeup_ns: Charged on the clock each time that the process is woken.
    """

    wake_early_ns: int = 60_000
    write_gap_ns: int = 500_000
    read_gap_ns: int = 400_000
    tick_jitter: float = 0.0
    wakeup_ns: int = 0


@dataclass(frozen=True)
class FlowConfig:
    """What both ends of a flow know: it is number `number` of a run with seed `run_seed`.

    The sink listens at `host` and `port`. `connection` is what its protocol has for both ends
    (`ProtocolSpec.connection`). `log` is the .npz file that an end leaves.
    """

    flow: str
    number: int
    run_seed: int
    host: str
    port: int
    protocol: str
    connection: Mapping[str, Any]
    workload: Workload
    packet_bytes: int
    overhead_bytes: int
    header_bytes: int
    sockets: SocketSettings
    timing: Timing
    log: str

    @property
    def seed(self) -> int:
        """Seed of the flow's draws, of no other flow of a run with a near seed."""
        return flow_seed(self.run_seed, self.number)

    @property
    def payload_bytes(self) -> int:
        """What a full segment carries of the application's bytes."""
        return self.packet_bytes - self.overhead_bytes - self.header_bytes


@dataclass(frozen=True)
class SourceConfig(FlowConfig):
    """A source, which connects to the sink."""

    rate_bps: float
    sample_s: float
    drain_s: float


@dataclass(frozen=True)
class SinkConfig(FlowConfig):
    """A sink, which checks every byte."""


def flow_seed(run_seed: int, number: int) -> int:
    """Return the seed of a run's flow number `number`."""
    return run_seed * _SEED_STRIDE + number


def start_jitter_s(most_s: float, seed: int) -> float:
    """Return how late a flow of this seed starts, up to a bound."""
    return most_s * random.Random(seed).random()


def save(path: Path, configs: Sequence[SourceConfig | SinkConfig]) -> None:
    """Write what the sources or the sinks of a host are told."""
    path.write_bytes(to_json(configs))


def load_sources(path: Path) -> list[SourceConfig]:
    """Return the sources that `save` wrote."""
    return TypeAdapter(list[SourceConfig]).validate_json(path.read_bytes())


def load_sinks(path: Path) -> list[SinkConfig]:
    """Return the sinks that `save` wrote."""
    return TypeAdapter(list[SinkConfig]).validate_json(path.read_bytes())
