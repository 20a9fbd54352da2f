"""QUIC between hosts of one address: one path on the default route.

A program carries the bytes of each flow (`lab/mpquic`, `make mpquic`); it needs a newer Rust than all else.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.apps.config import SocketSettings
from experiments.apps.stream_progress import StreamProgress
from experiments.errors import MissingRequirement
from experiments.model.scenario import Scenario
from experiments.protocols.base import ProtocolSpec, register
from experiments.protocols.plot_style import BLACK, PlotStyle

if TYPE_CHECKING:
    from experiments.apps.config import FlowConfig, SinkConfig, SourceConfig
    from experiments.apps.transports import Accepting, SharedClients
    from experiments.model.plan import RunPlan

PROGRAM = "mpquic"
BUILT = Path(__file__).parents[1] / "apps" / PROGRAM
"""Where `make mpquic` leaves it, and wheels have it."""
UDP_OVERHEAD_BYTES = 14 + 20 + 8
MIN_PACKET_BYTES = UDP_OVERHEAD_BYTES + 1200
"""A frame with a datagram of the size that QUIC's first packets need (RFC 9000, section 14)."""
CONTROLS = ("reno", "cubic", "bbr")
ANY_PORT = 0
STOP_S = 5.0


class Quic(ProtocolSpec):
    """One path on the default route."""

    name = "quic"
    description = "QUIC of single-homed hosts: one path on the shortest path"
    plot_style: PlotStyle | None = BLACK
    is_simulated = False
    is_named_alone = True
    has_tcp_sockets = False
    reads: tuple[str, ...] = ("quic",)
    drain_advice = "allow more time (--set drain_s=60), or a larger window (--set quic.window_bytes=1048576)"

    def sockets(self, scenario: Scenario, congestion_control: str) -> SocketSettings:
        """Return what the ends are to have: a connection's paths share its window."""
        window_bytes = scenario.quic_window_bytes
        return replace(super().sockets(scenario, congestion_control), receive_buffer_bytes=window_bytes)

    def check_live(self, plan: RunPlan) -> None:
        """Refuse packets that are too small for QUIC, other congestion controls, and a missing program."""
        if program() is None:
            what = "The program that speaks multipath QUIC is not built."
            raise MissingRequirement(what, "Build it with Rust 1.88 or newer: make mpquic.")
        if plan.scenario.packet_bytes < MIN_PACKET_BYTES:
            what = f"QUIC needs packets of {MIN_PACKET_BYTES} bytes at least (RFC 9000, section 14)."
            raise MissingRequirement(what, "Set packet_bytes: --set packet_bytes=1514.")
        if plan.scenario.ip_version == 6:
            raise MissingRequirement("The program that speaks QUIC has IPv4 alone.", "Leave ip_version out.")
        for name in map(plan.congestion_control_of, plan.case.flows):
            if name not in CONTROLS:
                raise MissingRequirement(
                    f"{self.name} has no congestion control {name}.", f"It has {', '.join(CONTROLS)}."
                )

    async def client(self, config: SourceConfig, ports: Sequence[int], session: SharedClients) -> Any:
        """Start the client's program, and wait until all paths are open."""
        from experiments.apps.transports import Wrapped
        from mstcp import StreamInfo

        ports = ports or [ANY_PORT]
        unknown = [StreamInfo(index, port, None, None, None, None) for index, port in enumerate(ports)]
        carried = dict.fromkeys(ports, StreamProgress(0))
        ends = ["--from", ",".join(map(str, ports))]
        process, sock = await _start("client", config, (config.host, config.port), ends, session.stack)
        await _told(process)
        transport = Wrapped(config.payload_bytes, streams=unknown[:1], subflows=lambda: carried)
        await asyncio.get_running_loop().create_connection(lambda: transport, sock=sock)
        session.stack.callback(asyncio.ensure_future(_follow(process, carried)).cancel)
        return transport

    async def server(self, config: SinkConfig, sink: Accepting, stack: AsyncExitStack) -> None:
        """Start the server's program; the sink has its connection when a client is there."""
        process, sock = await _start("server", config, (config.host, config.port), [], stack)
        stack.callback(asyncio.ensure_future(_accept(process, sock, config, sink)).cancel)


def program() -> Path | None:
    """Return the program: the package's own, else one on the PATH; None if there is none."""
    if BUILT.exists():
        return BUILT
    found = shutil.which(PROGRAM)
    return None if found is None else Path(found)


async def _start(
    role: str, config: FlowConfig, address: tuple[str, int], options: Sequence[str], stack: AsyncExitStack
) -> tuple[asyncio.subprocess.Process, socket.socket]:
    """Start an end of a connection; returns it with the socket of its application."""
    ours, its = socket.socketpair()
    window = config.sockets.receive_buffer_bytes
    found = program()
    assert found is not None, "check_live has seen it"
    # The two socket buffers hold what the program has not taken: little, so that its window is what limits.
    for end in (ours, its):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 * config.payload_bytes)
    with its:
        process = await asyncio.create_subprocess_exec(
            found,
            role,
            "{}:{}".format(*address),
            *options,
            *("--congestion", config.sockets.congestion_control),
            *(("--window", str(window)) if window is not None else ()),
            stdin=its.fileno(),
            stdout=asyncio.subprocess.PIPE,
        )
    stack.push_async_callback(_stop, process)
    ours.setblocking(False)
    return process, ours


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Wait for the end of a program that has carried everything; end it if that takes too long."""
    with suppress(asyncio.TimeoutError):
        await asyncio.wait_for(process.wait(), STOP_S)
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _told(process: asyncio.subprocess.Process) -> None:
    """Wait until a program is connected; ConnectionError if it ends before."""
    assert process.stdout is not None
    if await process.stdout.readline() != b"connected\n":
        raise ConnectionError(f"mpquic ended with status {await process.wait()} (its log says why)")


async def _follow(process: asyncio.subprocess.Process, carried: dict[int, StreamProgress]) -> None:
    """Note what each path has carried, as the program tells it."""
    assert process.stdout is not None
    while line := await process.stdout.readline():
        for word in line.split():
            port, *numbers = map(int, word.split(b":"))
            carried[port] = StreamProgress(*numbers)


async def _accept(
    process: asyncio.subprocess.Process, sock: socket.socket, config: SinkConfig, sink: Accepting
) -> None:
    from experiments.apps.transports import Wrapped

    try:
        await _told(process)
        transport = Wrapped(config.payload_bytes, sink)
        await asyncio.get_running_loop().create_connection(lambda: transport, sock=sock)
    except Exception as error:
        sink.failed(error)


register(Quic())
