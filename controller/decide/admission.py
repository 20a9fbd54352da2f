"""May this request be served? What the network and the running flows say to a request that is well-formed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from gomr import OBJECTIVES

from controller.compile.split import MAX_SPLIT_PATHS
from controller.decide.ack_paths import SHORTEST
from controller.decide.planning import NewFlow, has_path
from controller.errors import Conflict, InfeasibleRequest, InvalidRequest, NotFound, Unavailable
from controller.model.faults import FaultKind
from controller.model.requests import FlowRequest
from controller.model.rules import IP_PROTOCOLS, TcpConnection
from controller.state.hosts import Host
from controller.state.state import State
from controller.wire import Framing, framing_of, header_bytes
from topologies.model import IpVersion, ip_version, is_host_address

_FIRST_PICKED_PORT = 61000
"""Above Linux's ephemeral ports (32768-60999), so that a picked port is rarely bound."""

_NAMES_SHOWN = 12


@dataclass(frozen=True)
class Wanted:
    """A request that makes sense on this network, and what its flow is to be called.

    `number` is its place in the order; `objective` is None where paths are given by hand.
    """

    id: str
    number: int
    request: FlowRequest
    source: Host
    destination: Host
    framing: Framing
    objective: str | None

    @property
    def requested_bps(self) -> float:
        """Goodput asked for; 0 where paths are given by hand."""
        return self.request.rate_bps or 0.0

    def new_flow(self) -> NewFlow:
        """Return it as a flow to be routed."""
        request, split = self.request, self.request.splitting != "streams"
        most = MAX_SPLIT_PATHS if split else request.source_ports and len(request.source_ports)
        limits = [limit for limit in (request.max_paths, most) if limit]
        return NewFlow(
            id=self.id,
            source=self.source.name,
            destination=self.destination.name,
            rate_bps=self.requested_bps,
            framing=self.framing,
            max_paths=min(limits, default=None),
            streams=request.streams,
            acks=(request.ack_path or SHORTEST) if split else None,
            may_grow=request.may_grow,
        )


def admit(state: State, request: FlowRequest, id_: str, number: int) -> Wanted:
    """Check a request against the network and the running flows.

    Raises:
        InvalidRequest, NotFound, Conflict, InfeasibleRequest: naming the field and the reason.
    """
    source, destination = _ends(state, request)
    if source.name == destination.name:
        raise InvalidRequest(
            "destination", f"{destination.name} is the source itself; traffic within a host needs no path"
        )
    framing = _framing(request, ip_version(source.ip))
    split = request.splitting != "streams"
    least_bytes = framing.segment_overhead_bytes + (0 if split else framing.identifier_bytes)
    if request.packet_bytes <= least_bytes:
        raise InvalidRequest(
            "packet_bytes", f"{request.packet_bytes} bytes hold no data beside {least_bytes} bytes of headers"
        )
    objective = _objective(state, request)
    if split:
        _check_split(request)
        _check_ingress(state, source)
    elif request.ack_path is not None:
        raise InvalidRequest(
            "ack_path", "is for split flows; the acknowledgements of a stream go back along its path"
        )
    _check_counts(request)
    _check_growth(request)
    check_ports(state, request, source, destination)
    if not has_path(state, source.name, destination.name):
        raise InfeasibleRequest(
            "destination",
            f"{destination.name} cannot be reached from {source.name} over the links that are up; "
            "GET /v1/health says what is missing",
        )
    for host in (source, destination):
        full = _full_switches(state, host)
        if full:
            raise Unavailable("", f"{', '.join(full)} has no room for more rules; ask again later")
    return Wanted(id_, number, request, source, destination, framing, objective)


def _ends(state: State, request: FlowRequest) -> tuple[Host, Host]:
    """Return source and destination by addresses of one IP version."""
    given = (ip_version(name) for name in (request.source, request.destination) if is_host_address(name))
    version = request.ip_version or next(given, None)
    source = _find(state, "source", request.source, version)
    return source, _find(state, "destination", request.destination, version or ip_version(source.ip))


def _framing(request: FlowRequest, version: IpVersion) -> Framing:
    least_bytes = header_bytes(request.protocol, version)
    overhead_bytes = request.segment_overhead_bytes or least_bytes
    if overhead_bytes < least_bytes:
        text = f"must be at least {least_bytes}, the headers of {request.protocol} over IPv{version}"
        raise InvalidRequest("segment_overhead_bytes", text)
    return framing_of(request.protocol, request.packet_bytes, overhead_bytes, version)


def max_streams(request: FlowRequest) -> int:
    """Return how many streams a flow may have in time; 0: those that it is granted at first."""
    if not request.may_grow:
        return 0
    ports = len(request.source_ports or ())
    return min(ports, request.max_paths or ports)


def _full_switches(state: State, host: Host) -> list[str]:
    """Return the switches of a host where all have refused rules a moment ago, as they had no room."""
    full = state.faults.subjects(FaultKind.TABLE_FULL)
    switches = [arc.head for arc in state.live.arcs_from(host.name)] if full else []
    return switches if full.issuperset(switches) else []


def check_objective(field: str, objective: str) -> None:
    """Raise InvalidRequest if there is no such objective."""
    if objective not in OBJECTIVES:
        raise InvalidRequest(
            field, f"there is no objective {objective!r}; choose one of {', '.join(OBJECTIVES)}"
        )


def choose_source_ports(state: State, request: FlowRequest, source: Host, count: int) -> tuple[int, ...]:
    """Return the ports of `count` connections: the first ones given, else unused ones.

    Raises:
        InfeasibleRequest: all ports to choose from are used.
    """
    if request.source_ports is not None:
        return request.source_ports[:count]
    ports = range(_FIRST_PICKED_PORT, 65536)
    free = tuple(islice((port for port in ports if not state.flows.uses_port(source.ip, port)), count))
    if len(free) < count:
        raise InfeasibleRequest(
            "source_ports", f"flows from {source.name} use all ports from {_FIRST_PICKED_PORT} on"
        )
    return free


def _find(state: State, field: str, name: str, version: IpVersion | None) -> Host:
    host = state.hosts.find(name, version)
    if host is None and state.hosts.find(name) is not None:
        raise InvalidRequest(
            field, f"{name} has no IPv{version} address, but the flow's packets are to have such ones"
        )
    if host is None:
        names = list(dict.fromkeys(known.name for known in state.hosts.all()))
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
        raise NotFound(field, f"there is no host {name!r}; known are {shown}")
    if host.learned:
        raise InvalidRequest(
            field,
            f"{host.name} is not in the topology file, so the rate of its link is not known; "
            "add it there to allocate rates to it",
        )
    return host


def _objective(state: State, request: FlowRequest) -> str | None:
    if request.paths:
        if request.objective:
            raise InvalidRequest("objective", "must be left out where paths are given by hand")
        return None
    if request.rate_bps is None:
        raise InvalidRequest("rate_bps", "is missing: say how much goodput is wanted, in bit/s")
    objective = request.objective or state.settings.objective
    check_objective("objective", objective)
    return objective


def _check_split(request: FlowRequest) -> None:
    """Check what a split flow can have: one TCP connection, and as many paths as a splitter can hold."""
    if request.protocol != "tcp":
        raise InvalidRequest("splitting", "is for TCP connections: ask for streams of UDP")
    ports = len(request.source_ports or ())
    if ports > 1:
        raise InvalidRequest(
            "source_ports", f"a split flow is one TCP connection and needs one port, but {ports} are given"
        )
    counts = {"paths": len(request.paths), "streams": request.streams, "max_paths": request.max_paths}
    for field, count in counts.items():
        if count is not None and count > MAX_SPLIT_PATHS:
            raise InvalidRequest(field, f"a split flow takes at most {MAX_SPLIT_PATHS} paths, not {count}")


def _check_ingress(state: State, source: Host) -> None:
    """Check that one switch sees all packets of the source."""
    links = sum(arc.tail == source.name for arc in state.live.arcs.values())
    if links > 1:
        raise InvalidRequest(
            "splitting",
            f"{source.name} has {links} links, but one switch must see all packets of a split flow; "
            "ask for streams",
        )


def _check_counts(request: FlowRequest) -> None:
    """Check that streams, paths and ports go together."""
    if request.paths and (request.streams or request.max_paths):
        field = "streams" if request.streams else "max_paths"
        raise InvalidRequest(field, "must be left out where paths are given by hand")
    if request.streams and request.max_paths and request.streams > request.max_paths:
        raise InvalidRequest(
            "streams", f"{request.streams} streams need as many paths, but max_paths is {request.max_paths}"
        )
    needed = 1 if request.splitting != "streams" else request.streams or len(request.paths)
    if request.source_ports is not None and len(request.source_ports) < needed:
        raise InvalidRequest(
            "source_ports", f"{needed} streams need as many ports, but {len(request.source_ports)} are given"
        )


def _check_growth(request: FlowRequest) -> None:
    """Check that a flow which may be given more streams later can have some."""
    if not request.may_grow:
        return
    fixed = {"paths": request.paths, "streams": request.streams, "splitting": request.splitting != "streams"}
    for field, value in fixed.items():
        if value:
            raise InvalidRequest(field, "says how many connections the flow has: leave it or may_grow out")
    if max_streams(request) < 2:
        raise InvalidRequest(
            "may_grow", "needs two source_ports at least (and max_paths not below): further streams use them"
        )


def check_ports(state: State, request: FlowRequest, source: Host, destination: Host) -> None:
    """Raise Conflict if a running flow has one of the connections that are asked for."""
    protocol = IP_PROTOCOLS[request.protocol]
    for port in request.source_ports or ():
        connection = TcpConnection(source.ip, destination.ip, port, request.destination_port, protocol)
        holder = state.flows.holder(connection)
        if holder is not None:
            raise Conflict(
                "source_ports",
                f"port {port} of {source.name} to port {request.destination_port} of {destination.name} "
                f"is in use by flow {holder}",
            )
