"""The keyword arguments of the functions that open and accept connections, as one object of one meaning.

`open_connection` and `start_server` say what each means; the defaults are here and in their signatures.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ssl import SSLContext
from typing import TYPE_CHECKING, Any

from mstcp import _core
from mstcp.allocation import OnAllocationChanged, RequestedPath
from mstcp.errors import LocalProtocolError, MstcpError
from mstcp.hello import PlainRule
from mstcp.limits import ServerLimits
from mstcp.streams import StreamSpec, check_specs
from mstcp.transport import RECONNECT_S, REORDER_BUFFER_BYTES, SCHEDULER

if TYPE_CHECKING:
    from mstcp.control import ControllerClient

DEFAULT_LIMIT = 1 << 16
DEFAULT_MAX_PATHS = 4

OnRejected = Callable[[MstcpError, Any], None]


@dataclass(frozen=True, kw_only=True)
class ConnectionOptions:
    """How connections and their sockets are to be, on either side."""

    seed: int | None = None
    send_buffer_bytes: int | None = None
    receive_buffer_bytes: int | None = None
    reorder_buffer_bytes: int = REORDER_BUFFER_BYTES
    packet_bytes: int = 1514
    congestion_control: str | None = None
    secret: bytes | None = None
    scheduler: str = SCHEDULER
    reconnect_timeout: float = RECONNECT_S

    def __post_init__(self) -> None:
        if self.scheduler not in _core.SCHEDULERS:
            known = ", ".join(_core.SCHEDULERS)
            raise LocalProtocolError(f"no scheduler is called {self.scheduler!r}: choose one of {known}")


@dataclass(frozen=True, kw_only=True)
class ClientOptions(ConnectionOptions):
    """How a connection is to be opened.

    Raises:
        LocalProtocolError: They contradict each other or are out of range.
    """

    rate: float | None = None
    controller: str | ControllerClient | None = None
    streams: Sequence[StreamSpec] | None = None
    source_address: str | None = None
    objective: str | None = None
    paths: Sequence[RequestedPath] | None = None
    max_paths: int = DEFAULT_MAX_PATHS
    on_allocation_changed: OnAllocationChanged | None = None
    early_data: bytes = b""
    ssl: SSLContext | bool | None = None
    server_hostname: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        told = self.on_allocation_changed
        if told is not None and (not callable(told) or inspect.iscoroutinefunction(told)):
            raise LocalProtocolError(f"on_allocation_changed must be a plain function, not {told!r}")
        if len(self.early_data) > _core.MAX_EARLY_BYTES:
            raise LocalProtocolError(
                f"early_data has {len(self.early_data)} bytes, more than {_core.MAX_EARLY_BYTES}"
            )
        if self.early_data and self.controller is None and len(self.specs) == 1:
            raise LocalProtocolError("early_data goes with a hello, and a connection of one stream has none")
        if self.controller is None:
            if any(value is not None for value in (self.objective, self.paths, told)):
                what = "objective, paths and on_allocation_changed"
                raise LocalProtocolError(f"{what} are for a controller, and none is given")
            if self.streams is not None and self.rate is not None:
                raise LocalProtocolError("streams given by hand have rates of their own: leave rate out")
            check_specs(self.specs)
        elif self.streams is not None:
            raise LocalProtocolError("streams are given by hand or by a controller, not both")
        elif self.rate is None and not self.paths:
            raise LocalProtocolError("a controller needs a rate to allocate (or paths with rates)")
        elif not 1 <= self.path_count <= _core.MAX_STREAMS:
            raise LocalProtocolError(
                f"a connection has 1 to {_core.MAX_STREAMS} paths, not {self.path_count}"
            )

    @property
    def specs(self) -> list[StreamSpec]:
        """The streams to open where no controller allocates them: by default one."""
        return [StreamSpec(rate_bps=self.rate)] if self.streams is None else list(self.streams)

    @property
    def path_count(self) -> int:
        """How many paths a controller may allocate."""
        return len(self.paths) if self.paths else self.max_paths


@dataclass(frozen=True, kw_only=True)
class ServerOptions(ConnectionOptions):
    """How connections are to be accepted.

    Raises:
        LocalProtocolError: They contradict each other.
    """

    backlog: int = 128
    plain: PlainRule = "auto"
    plain_after: float = 2.0
    hello_timeout: float = 10.0
    early_data: bool = False
    ssl: SSLContext | None = None
    limits: ServerLimits | None = None
    on_rejected: OnRejected | None = None
    start_serving: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.secret is not None and self.plain is not False:
            raise LocalProtocolError("plain TCP cannot prove that it knows a secret: use plain=False with it")
