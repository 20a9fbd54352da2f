"""Multipath QUIC: what it is refused with, and whole transfers over loopback where its program is built."""

from __future__ import annotations

import asyncio
import hashlib
import socket
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import topologies
from experiments import protocols
from experiments.apps.config import SinkConfig, SocketSettings, SourceConfig, Timing
from experiments.apps.transports import Accepting, SharedClients
from experiments.errors import MissingRequirement
from experiments.model import scenario
from experiments.model.plan import RunPlan
from experiments.protocols import quic
from experiments.workloads import Cbr
from tests.fakes.ports import free_ports

SIZE_BYTES = 3_000_000


def plan(**settings: Any) -> RunPlan:
    data = scenario.load("butterfly").model_dump(mode="json") | settings
    return RunPlan(
        scenario=scenario.parse(data, "butterfly"),
        network=topologies.load("butterfly"),
        case_name="1",
        protocol="mpquic",
        seed=1,
        duration_s=1.0,
    )


def refused(plan_: RunPlan) -> str:
    with pytest.raises(MissingRequirement) as raised:
        protocols.get("mpquic").check_live(plan_)
    return str(raised.value)


def test_what_it_needs_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quic, "program", lambda: None)
    assert refused(plan()).endswith("is not built. Build it with Rust 1.88 or newer: make mpquic.")
    monkeypatch.setattr(quic, "program", lambda: Path("mpquic"))
    assert "QUIC needs packets of 1242 bytes at least" in refused(plan())
    tcp = {"congestion_control": "vegas"}
    assert "It has reno, cubic, bbr" in refused(plan(packet_bytes=1514, tcp=tcp))
    protocols.get("mpquic").check_live(plan(packet_bytes=1514))


def test_the_window_is_a_whole_connections() -> None:
    def window_bytes(**settings: Any) -> int | None:
        made = plan(**settings)
        return protocols.get("mpquic").sockets(made.scenario, "reno").receive_buffer_bytes

    assert window_bytes() == 4 * 131072
    assert window_bytes(tcp={"receive_buffer_bytes": 65536}) == 4 * 65536
    assert window_bytes(mptcp={"receive_buffer_bytes": 70000}) == 70000
    assert window_bytes(mptcp={"receive_buffer_bytes": 70000}, quic={"window_bytes": 80000}) == 80000


def test_only_runs_that_name_it_have_it() -> None:
    for name in ("quic", "mpquic"):
        assert name in protocols.PROTOCOLS
        assert name not in protocols.usual()


class Reader(Accepting):
    """Reads to the end and closes."""

    def __init__(self) -> None:
        self.read = hashlib.sha256()
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._size = 0

    def failed(self, error: Exception) -> None:
        self.ended.set_exception(error)

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self.read.update(data)
        self._size += len(data)

    def eof_received(self) -> bool:
        self.ended.set_result(self._size)
        self._transport.close()
        return True


async def transfer(common: dict[str, Any], ports: list[int]) -> tuple[int, str, dict[int, int]]:
    """Send over a path from each port; returns the bytes and the digest read, and what each path carried."""
    protocol = protocols.get(common["protocol"])
    source = SourceConfig(**common, rate_bps=1e6, sample_s=0.1, drain_s=5)
    async with AsyncExitStack() as stack:
        reader = Reader()
        await protocol.server(SinkConfig(**common), reader, stack)
        transport = await protocol.client(source, ports, SharedClients(stack))
        sent = 0
        while sent < SIZE_BYTES:
            if transport.try_write(bytes([sent // 60_000 % 256]) * 60_000):
                sent += 60_000
            else:
                await asyncio.sleep(0.001)
        transport.write_eof()
        size = await asyncio.wait_for(reader.ended, 30)
        await asyncio.sleep(0.2)
        carried = {port: told.arrived_bytes for port, told in transport.get_extra_info("subflows")().items()}
        transport.close()
        return size, reader.read.hexdigest(), carried


@pytest.mark.skipif(quic.program() is None, reason="the program is not built: make mpquic")
@pytest.mark.parametrize(("name", "paths"), [("quic", 0), ("mpquic", 2)])
def test_a_file_arrives_whole(name: str, paths: int, tmp_path: Path) -> None:
    common = {
        "flow": "1",
        "number": 0,
        "run_seed": 1,
        "host": "127.0.0.1",
        "port": free_ports(1)[0],
        "protocol": name,
        "connection": {},
        "workload": Cbr(),
        "packet_bytes": 1514,
        "overhead_bytes": 54,
        "header_bytes": 0,
        "sockets": SocketSettings("reno", 131072, 131072),
        "timing": Timing(),
        "log": str(tmp_path / "log.npz"),
    }
    ports = []
    for _ in range(paths):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", 0))
            ports.append(sock.getsockname()[1])
    size, digest, carried = asyncio.run(transfer(common, ports))
    whole = b"".join(bytes([number % 256]) * 60_000 for number in range(SIZE_BYTES // 60_000))
    assert (size, digest) == (SIZE_BYTES, hashlib.sha256(whole).hexdigest())
    assert sorted(carried) == (sorted(ports) or [0])
    assert sum(carried.values()) >= SIZE_BYTES, "each byte and its headers"
