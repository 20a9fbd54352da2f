"""What a source and a sink are told: plain data, handed over as one JSON argument."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

PORT = 5001


@dataclass(frozen=True)
class RequestedPath:
    """A path asked for by hand: nodes from host to host and its goodput in bit/s."""

    nodes: tuple[str, ...]
    rate_bps: float


@dataclass(frozen=True)
class Connection:
    """How a source connects.

    Without a controller it opens one plain TCP connection on the network's default routes. With one it asks
    it for `rate_bps`: by an objective, or for the paths given. `kernel` is the protocol of its sockets,
    `scheduler` what spreads frames over the streams of MSTCP. With `any_address` the destination
    listens at all its addresses.
    """

    kernel: Literal["tcp", "mptcp"] = "tcp"
    any_address: bool = False
    controller: str | None = None
    objective: str | None = None
    paths: tuple[RequestedPath, ...] = ()
    scheduler: str | None = None


@dataclass(frozen=True)
class SocketSettings:
    """Set on every socket before it connects or listens, and read back. None leaves the kernel's default."""

    congestion_control: str
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None


@dataclass(frozen=True)
class SourceConfig:
    """A constant-bit-rate source, to the sink at `host`; `log` is the .npz file it leaves."""

    flow: str
    host: str
    port: int
    rate_bps: float
    packet_bytes: int
    overhead_bytes: int
    header_bytes: int
    connection: Connection
    sockets: SocketSettings
    seed: int
    sample_s: float
    drain_s: float
    log: str

    @classmethod
    def from_json(cls, text: str) -> SourceConfig:
        """Return the configuration that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        connection = data.pop("connection")
        paths = tuple(RequestedPath(tuple(p["nodes"]), p["rate_bps"]) for p in connection.pop("paths"))
        sockets = SocketSettings(**data.pop("sockets"))
        return cls(connection=Connection(paths=paths, **connection), sockets=sockets, **data)


@dataclass(frozen=True)
class SinkConfig:
    """A sink that listens at `host` and checks every byte. `log` is the .npz file it leaves."""

    flow: str
    host: str
    port: int
    kernel: Literal["tcp", "mptcp"]
    sockets: SocketSettings
    seed: int
    log: str

    @classmethod
    def from_json(cls, text: str) -> SinkConfig:
        """Return the configuration that `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        return cls(sockets=SocketSettings(**data.pop("sockets")), **data)


def to_json(config: SourceConfig | SinkConfig) -> str:
    """Return a configuration as one line of JSON."""
    return json.dumps(asdict(config))
