"""Streams that a controller adds to a running connection and takes off again, over loopback."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import random
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import mstcp
from mstcp.proto import control_pb2 as pb
from tests.fakes.flow_controller import FlowController, split_evenly

RATE_BPS = 20e6


class Sink:
    """A server that digests what it gets."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.done = asyncio.Event()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 16):
            self.digest.update(data)
        self.done.set()
        writer.close()


@contextlib.asynccontextmanager
async def growing(
    sink: Sink, **options: Any
) -> AsyncIterator[tuple[FlowController, mstcp.Server, mstcp.StreamWriter]]:
    """Open a connection that has one stream by now."""
    async with (
        FlowController(lambda request: split_evenly(request, 1)) as controller,
        await mstcp.start_server(sink.take, "127.0.0.1") as server,
        mstcp.open_connection(
            *server.sockets[0].getsockname(),
            rate=RATE_BPS,
            controller=controller.address,
            may_grow=True,
            max_paths=3,
            **options,
        ) as (_, writer),
    ):
        yield controller, server, writer


async def reported(controller: FlowController, holds: Callable[[pb.StreamsReport], bool]) -> pb.StreamsReport:
    await controller.wait_for(lambda: controller.reports and holds(controller.reports[-1]))
    return controller.reports[-1]


async def test_every_byte_arrives_while_streams_come_and_go() -> None:
    sink, heard = Sink(), list[mstcp.AllocationChanged]()
    async with growing(sink, on_allocation_changed=heard.append) as (controller, _, writer):
        transport = writer.transport
        first, second, third = controller.requests[0].source_ports
        assert controller.requests[0].may_grow
        assert writer.get_extra_info("protocol") == "mstcp", "another stream can join"
        report = await reported(controller, lambda report: True)
        assert (list(report.open_ports), list(report.failed_ports)) == ([first], [])
        assert sorted(report.spare_ports) == sorted([second, third])

        data, sent = random.Random(1), hashlib.sha256()

        async def send(pieces: int) -> None:
            for _ in range(pieces):
                piece = data.randbytes(10_000)
                sent.update(piece)
                writer.write(piece)
                await writer.drain()

        await send(20)
        controller.reallocate({first: RATE_BPS / 2, second: RATE_BPS / 2})
        report = await reported(controller, lambda report: len(report.open_ports) == 2)
        assert sorted(report.open_ports) == sorted([first, second])
        assert list(report.spare_ports) == [third]
        await send(50)
        counters = transport.counters().streams
        assert all(stream.bytes_sent > 100_000 for stream in counters[:2])
        assert [stats.is_alive for stats in transport.stats().streams] == [True, True]

        controller.reallocate({second: RATE_BPS})
        await send(50)
        report = await reported(controller, lambda report: list(report.open_ports) == [second])
        assert len(report.spare_ports) == 2, "another was bound in its place"
        assert first not in report.spare_ports, "TCP has it for a while"
        assert [stats.is_alive for stats in transport.stats().streams] == [False, True]

        fresh = next(port for port in report.spare_ports if port != third)
        controller.reallocate({second: RATE_BPS / 2, fresh: RATE_BPS / 2})
        await reported(controller, lambda report: fresh in report.open_ports)
        await send(50)
        writer.close()
        await writer.wait_closed()
        await sink.done.wait()
    assert sink.digest.digest() == sent.digest()
    assert [len(change.after.streams) for change in heard if change.after] == [2, 1, 2]


async def test_a_stream_that_cannot_be_opened_is_reported_and_the_others_go_on() -> None:
    sink = Sink()
    async with growing(sink) as (controller, server, writer):
        first, second, third = controller.requests[0].source_ports
        listening = server.sockets[0]
        asyncio.get_running_loop().remove_reader(listening.fileno())
        listening.shutdown(socket.SHUT_RDWR)  # it takes no more connections
        controller.reallocate({first: RATE_BPS / 2, second: RATE_BPS / 2})
        report = await reported(controller, lambda report: bool(report.failed_ports))
        assert list(report.failed_ports) == [second]
        assert list(report.open_ports) == [first]
        assert third in report.spare_ports and second not in report.spare_ports
        assert len(report.spare_ports) == 2
        controller.reallocate({first: RATE_BPS})
        await reported(controller, lambda report: not report.failed_ports)
        writer.write(b"still there")
        writer.close()
        await writer.wait_closed()
        await sink.done.wait()
    assert sink.digest.digest() == hashlib.sha256(b"still there").digest()


async def test_a_port_that_was_never_bound_is_reported() -> None:
    async with growing(Sink()) as (controller, _, _):
        first = controller.requests[0].source_ports[0]
        controller.reallocate({first: RATE_BPS / 2, 1: RATE_BPS / 2})
        report = await reported(controller, lambda report: bool(report.failed_ports))
        assert list(report.failed_ports) == [1]


async def test_ports_that_are_kept_for_later_are_let_go_at_the_end() -> None:
    async with growing(Sink()) as (controller, _, _):
        spare = controller.requests[0].source_ports[2]
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", spare))
    with socket.socket() as other:
        other.bind(("127.0.0.1", spare))


@pytest.mark.parametrize(
    "options",
    [
        {"may_grow": True},
        {"may_grow": 1, "controller": "127.0.0.1:1", "rate": 1e6},
        {"may_grow": True, "controller": "127.0.0.1:1", "rate": 1e6, "max_paths": 1},
        {
            "may_grow": True,
            "controller": "127.0.0.1:1",
            "paths": [mstcp.RequestedPath(("A", "S", "B"), 1e6)],
        },
    ],
)
async def test_what_contradicts_growing_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(mstcp.LocalProtocolError, match="may_grow"):
        await mstcp.open_connection("127.0.0.1", 9, **options)
