"""What a run came to, in one shape for both simulators."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class FlowOutcome:
    """A flow: goodput, and mean delay from the write to the in-order read."""

    goodput_bps: float
    delay_mean_s: float


@dataclass(frozen=True)
class StreamOutcome:
    """A TCP connection: acknowledged or received payload, and its repairs."""

    goodput_bps: float
    segments: int
    resent: int
    recoveries: int
    timeouts: int


@dataclass(frozen=True)
class Outcome:
    """A run: its flows, and the streams of all flows in their order."""

    flows: tuple[FlowOutcome, ...]
    streams: tuple[StreamOutcome, ...]

    def document(self) -> dict[str, Any]:
        """Return it as JSON takes it."""
        return asdict(self)

    @classmethod
    def read(cls, document: dict[str, Any]) -> Outcome:
        """Return what `document()` gave."""
        flows = tuple(FlowOutcome(**flow) for flow in document["flows"])
        return cls(flows, tuple(StreamOutcome(**stream) for stream in document["streams"]))

    @classmethod
    def of_ns3(cls, printed: str) -> Outcome:
        """Return what runs.cc printed."""
        flows, streams = [], []
        for line in printed.splitlines():
            kind, _, *words = line.split()
            if kind == "flow":
                flows.append(FlowOutcome(float(words[0]), float(words[1])))
            else:
                segments, resent, _, recoveries, timeouts = (int(word) for word in words[:5])
                streams.append(StreamOutcome(float(words[5]), segments, resent, recoveries, timeouts))
        return cls(tuple(flows), tuple(streams))

    @classmethod
    def of_ours(cls, results: dict[str, Any]) -> Outcome:
        """Return what the simulator's results say."""
        flows = tuple(FlowOutcome(flow["goodput_bps"], flow["delay_s"]["mean"]) for flow in results["flows"])
        streams = tuple(
            StreamOutcome(
                stream["throughput_bps"],
                stream["data_segments_sent"],
                stream["retransmits"],
                stream["fast_retransmits"],
                stream["timeouts"],
            )
            for flow in results["flows"]
            for stream in flow["streams"]
        )
        return cls(flows, streams)
