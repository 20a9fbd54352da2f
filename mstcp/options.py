"""The keyword arguments of the functions that open and accept connections, as one object of one meaning.

`open_connection` and `start_server` say what each means; the defaults are here and in their signatures.
"""

from __future__ import annotations

import inspect
import math
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from ssl import SSLContext
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from mstcp import _core
from mstcp.checks import (
    MAX_BPS,
    check_address,
    check_callable,
    check_flag,
    check_ip_addresses,
    check_list,
    check_number,
    check_seconds,
    check_type,
    check_whole,
)
from mstcp.control.allocation import OnAllocationChanged, RequestedPath
from mstcp.endpoints import parse_endpoints
from mstcp.errors import LocalProtocolError, MstcpError
from mstcp.limits import ServerLimits
from mstcp.network import Interfaces
from mstcp.streams import StreamSpec, check_specs
from mstcp.transport import RECONNECT_S, REORDER_BUFFER_BYTES, SCHEDULER

if TYPE_CHECKING:
    from mstcp.control import ControllerAddress, ControllerClient

DEFAULT_MAX_PATHS = 4

Paths = Sequence[RequestedPath] | Interfaces | Literal["interfaces"] | None

PlainRule = bool | Literal["auto"]

OnRejected = Callable[[MstcpError, Any], None]

CONNECT_S = 10.0
"""How long connecting a stream may take."""
HANDSHAKE_S = 10.0
"""How long TLS and the hello of a stream may take."""
ALLOCATED_JOIN_S = 0.25
"""How long streams that a controller allocated are waited for once the first is open."""
MIN_PACKET_BYTES = 128
"""Ethernet, IPv6 and TCP headers, a frame's header, and something to carry."""
_MAX_BYTES = 1 << 40


def check_limit(limit: object) -> None:
    """Check the buffer limit of a StreamReader; LocalProtocolError if it is none."""
    check_whole("limit", limit, 1, _MAX_BYTES)


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
    authenticate_frames: bool = False
    scheduler: str = SCHEDULER
    reconnect_timeout: float = RECONNECT_S

    def __post_init__(self) -> None:
        if self.scheduler not in _core.SCHEDULERS:
            known = ", ".join(_core.SCHEDULERS)
            raise LocalProtocolError(f"no scheduler is called {self.scheduler!r}: choose one of {known}")
        check_whole("seed", self.seed, 0, 2**64 - 1, optional=True)
        check_whole("send_buffer_bytes", self.send_buffer_bytes, 1, _MAX_BYTES, optional=True)
        check_whole("receive_buffer_bytes", self.receive_buffer_bytes, 1, 2**31 - 1, optional=True)
        check_whole("reorder_buffer_bytes", self.reorder_buffer_bytes, 0, _MAX_BYTES)
        check_whole("packet_bytes", self.packet_bytes, MIN_PACKET_BYTES, 65_549)
        check_seconds("reconnect_timeout", self.reconnect_timeout, least=0.0)
        check_type("secret", self.secret, bytes, "bytes")
        check_flag("authenticate_frames", self.authenticate_frames)
        if self.authenticate_frames and not self.secret:
            raise LocalProtocolError("authenticate_frames needs a secret that both sides know")
        if self.secret == b"":
            raise LocalProtocolError(
                "secret is empty, which protects nothing: leave it out, or give some bytes"
            )
        check_type("congestion_control", self.congestion_control, str, "a name, as 'bbr'")


@dataclass(frozen=True, kw_only=True)
class ClientOptions(ConnectionOptions):
    """How a connection is to be opened.

    Raises:
        LocalProtocolError: They contradict each other or are out of range.
    """

    rate: float | None = None
    controller: str | ControllerAddress | ControllerClient | None = None
    streams: Sequence[StreamSpec] | None = None
    source_address: str | tuple[str, int] | None = None
    objective: str | None = None
    paths: Paths = None
    max_paths: int = DEFAULT_MAX_PATHS
    may_grow: bool = False
    on_allocation_changed: OnAllocationChanged | None = None
    early_data: bytes = b""
    ssl: SSLContext | bool | None = None
    server_hostname: str | None = None
    connect_timeout: float = CONNECT_S
    handshake_timeout: float = HANDSHAKE_S
    join_timeout: float | None = None
    max_announced: int = 0
    sock: socket.socket | Sequence[socket.socket] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_seconds("connect_timeout", self.connect_timeout)
        check_seconds("handshake_timeout", self.handshake_timeout)
        if self.join_timeout is not None:
            check_seconds("join_timeout", self.join_timeout, least=0.0)
        check_type("server_hostname", self.server_hostname, str, "a name")
        check_type("ssl", self.ssl, (SSLContext, bool), "an ssl.SSLContext, True")
        self._check_rate()
        if self.streams is not None:
            check_list("streams", self.streams, StreamSpec)
        self._check_source()
        if self.sock is not None:
            self._check_sockets()
        told = self.on_allocation_changed
        if told is not None and (not callable(told) or inspect.iscoroutinefunction(told)):
            raise LocalProtocolError(f"on_allocation_changed must be a plain function, not {told!r}")
        self._check_early_data()
        self._check_growth()
        if self.authenticate_frames and self.ssl:
            raise LocalProtocolError("authenticate_frames or ssl: TLS authenticates what it encrypts")
        self._check_asked()
        self._check_who_chooses()

    def _check_asked(self) -> None:
        """Check what a controller is asked for."""
        check_type("objective", self.objective, str, "a name")
        check_whole("max_paths", self.max_paths, 1, _core.MAX_STREAMS)
        check_whole("max_announced", self.max_announced, 0, _core.MAX_STREAMS)
        if self.controller is not None:
            _check_controller(self.controller)
        if self.interfaces is not None:
            self._check_interfaces(self.interfaces)
        elif self.paths is not None:
            check_list("paths", self.paths, RequestedPath)
        for path in self.requested_paths:
            check_list("nodes of paths", path.nodes, str, 2)
            check_number("rate_bps of paths", path.rate_bps, MAX_BPS, "in bit/s")

    def _check_who_chooses(self) -> None:
        """Check that the streams are given by hand or by a controller, and what goes with either."""
        if self.interfaces is not None:
            return
        if self.controller is None:
            if any(value is not None for value in (self.objective, self.paths, self.on_allocation_changed)):
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

    def _check_interfaces(self, interfaces: Interfaces) -> None:
        interfaces.check()
        others = (self.controller, self.streams, self.sock, self.source_address, self.rate, self.objective)
        if any(value is not None for value in others) or self.on_allocation_changed is not None:
            what = "controller, streams, sock, source_address, rate and what a controller is asked for"
            raise LocalProtocolError(f"paths follow the interfaces of this host: leave {what} out")

    def _check_early_data(self) -> None:
        if not isinstance(self.early_data, bytes):
            raise LocalProtocolError(f"early_data is bytes, not {self.early_data!r}")
        if len(self.early_data) > _core.MAX_EARLY_BYTES:
            raise LocalProtocolError(
                f"early_data has {len(self.early_data)} bytes, more than {_core.MAX_EARLY_BYTES}"
            )
        if self.authenticate_frames or self.interfaces is not None or self.max_announced:
            return  # also one stream has a hello then
        if self.early_data and self.controller is None and len(self.specs) == 1:
            raise LocalProtocolError("early_data goes with a hello, and a connection of one stream has none")

    def _check_growth(self) -> None:
        check_flag("may_grow", self.may_grow)
        if not self.may_grow:
            return
        if self.controller is None:
            raise LocalProtocolError("may_grow is for a controller, which adds the streams: none is given")
        if self.paths or self.max_paths < 2:
            raise LocalProtocolError("may_grow needs max_paths of 2 at least, and no paths given by hand")

    def _check_source(self) -> None:
        given = self.source_address
        if isinstance(given, tuple) and len(given) >= 2:
            check_address(*given[:2], least_port=0)
            if given[1] and (self.controller is not None or len(self.streams or ()) > 1):
                raise LocalProtocolError(
                    "source_address with a port is for one stream: leave the port 0, or give each stream its "
                    "own by StreamSpec(source_port=...)"
                )
        else:
            check_type("source_address", given, str, "an address, or a pair of address and port,")

    @property
    def source_host(self) -> str | None:
        """Our address, without a port."""
        given = self.source_address
        return given[0] or None if isinstance(given, tuple) else given

    def _check_rate(self) -> None:
        rate = self.rate
        if rate is None:
            return
        if isinstance(rate, bool) or not isinstance(rate, (int, float)) or not 0 < rate < math.inf:
            raise LocalProtocolError(f"rate is a number of bit/s above 0 or None, not {rate!r}")

    def _check_sockets(self) -> None:
        if self.controller is not None or self.source_address is not None:
            raise LocalProtocolError("sock is connected already: leave controller and source_address out")
        listed = [self.sock] if not isinstance(self.sock, Sequence) else self.sock
        if not listed or any(not isinstance(sock, socket.socket) for sock in listed):
            raise LocalProtocolError(f"sock is a connected socket or a list of some, not {self.sock!r}")
        count = len(self.given_sockets)
        if self.streams is not None and len(self.streams) != count:
            raise LocalProtocolError(f"{len(self.streams)} streams are given for {count} sockets")

    @property
    def given_sockets(self) -> list[socket.socket]:
        """The sockets that the application has connected itself, one for each stream."""
        return [self.sock] if isinstance(self.sock, socket.socket) else list(self.sock or ())

    @property
    def specs(self) -> list[StreamSpec]:
        """The streams to open where no controller allocates them: by default one."""
        given = self.source_address
        port = given[1] if isinstance(given, tuple) else 0
        if self.streams is not None:
            return [replace(spec, source_port=port) if port else spec for spec in self.streams]
        if self.interfaces is not None:
            return []
        count = max(1, len(self.given_sockets))
        return [StreamSpec(source_port=port, rate_bps=self.rate and self.rate / count)] * count

    @property
    def join_s(self) -> float:
        """How long other streams are waited for once the first is open."""
        if self.join_timeout is not None:
            return self.join_timeout
        return 0.0 if self.controller is None else ALLOCATED_JOIN_S

    @property
    def opens_early(self) -> bool:
        """Whether the connection opens before the server answers, and what is written goes with the hello."""
        waits = self.join_timeout is not None or self.controller is not None
        return not (waits or self.secret or self.ssl or self.early_data)

    @property
    def path_count(self) -> int:
        """How many paths a controller may allocate."""
        return len(self.requested_paths) or self.max_paths

    @property
    def requested_paths(self) -> Sequence[RequestedPath]:
        """The paths to ask a controller for instead of having it compute them."""
        return self.paths if self.interfaces is None and self.paths else ()  # type: ignore[return-value]

    @property
    def interfaces(self) -> Interfaces | None:
        """Of which interfaces of this host there are to be streams, if they are followed."""
        return (
            Interfaces()
            if self.paths == "interfaces"
            else self.paths
            if isinstance(self.paths, Interfaces)
            else None
        )


def _check_controller(controller: object) -> None:
    from mstcp.control import ControllerAddress, ControllerClient

    if isinstance(controller, str):
        try:
            parse_endpoints(controller)
        except ValueError as error:
            raise LocalProtocolError(f"controller: {error}") from None
    else:
        check_type(
            "controller",
            controller,
            (ControllerAddress, ControllerClient),
            "HOST:PORT, a ControllerAddress, a ControllerClient",
        )


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
    sock: socket.socket | None = None
    reuse_port: bool = False
    announce: Sequence[tuple[str, int]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("backlog", self.backlog, 1, 2**31 - 1)
        check_seconds("plain_after", self.plain_after)
        check_seconds("hello_timeout", self.hello_timeout)
        check_type("limits", self.limits, ServerLimits, "a ServerLimits")
        check_type("sock", self.sock, socket.socket, "a bound socket")
        check_type("ssl", self.ssl, SSLContext, "an ssl.SSLContext with a certificate")
        check_callable("on_rejected", self.on_rejected)
        check_ip_addresses("announce", self.announce)
        for name in ("early_data", "start_serving", "reuse_port"):
            check_flag(name, getattr(self, name))
        if self.plain != "auto" and not isinstance(self.plain, bool):
            raise LocalProtocolError(f'plain is "auto", True or False, not {self.plain!r}')
        if self.reuse_port and not hasattr(socket, "SO_REUSEPORT"):
            raise LocalProtocolError("reuse_port: this system has no SO_REUSEPORT")
        if self.authenticate_frames and self.ssl:
            raise LocalProtocolError("authenticate_frames or ssl: TLS authenticates what it encrypts")
        if self.secret is not None and self.plain is not False:
            raise LocalProtocolError("plain TCP cannot prove that it knows a secret: use plain=False with it")


class ConnectionArguments(TypedDict, total=False):
    """What `open_connection` and `start_server` both take; they say what each means."""

    seed: int | None
    send_buffer_bytes: int | None
    receive_buffer_bytes: int | None
    reorder_buffer_bytes: int
    packet_bytes: int
    congestion_control: str | None
    secret: bytes | None
    authenticate_frames: bool
    scheduler: str
    reconnect_timeout: float


class SocketArguments(ConnectionArguments, total=False):
    """What `blocking.create_connection` takes beside the arguments of `socket.create_connection`."""

    rate: float | None
    controller: str | ControllerAddress | ControllerClient | None
    streams: Sequence[StreamSpec] | None
    objective: str | None
    paths: Paths
    max_paths: int
    may_grow: bool
    on_allocation_changed: OnAllocationChanged | None
    ssl: SSLContext | bool | None
    server_hostname: str | None
    connect_timeout: float
    handshake_timeout: float
    join_timeout: float | None
    max_announced: int
    early_data: bytes
    sock: socket.socket | Sequence[socket.socket] | None


class ClientArguments(SocketArguments, total=False):
    """What `create_connection` takes: the options of `open_connection` without `limit`."""

    source_address: str | tuple[str, int] | None


class ServerArguments(ConnectionArguments, total=False):
    """What `create_server` takes: the options of `start_server` without `limit`."""

    backlog: int
    plain: PlainRule
    plain_after: float
    hello_timeout: float
    early_data: bool
    ssl: SSLContext | None
    limits: ServerLimits | None
    on_rejected: OnRejected | None
    start_serving: bool
    sock: socket.socket | None
    reuse_port: bool
    announce: Sequence[tuple[str, int]]
