"""The example programs of crates/mstcp, for tokio, with the Python library at the other end.

They are built first where that was not done.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

import mstcp
from mstcp import StreamSpec
from mstcp.proto import control_pb2 as pb
from tests.fakes.echo_server import EchoServer
from tests.fakes.flow_controller import FlowController
from tests.fakes.processes import running

ROOT = Path(__file__).resolve().parents[2]
SECRET = "between us"
BYTES = 3_000_001

pytestmark = pytest.mark.timeout(600)  # building the programs counts


@pytest.fixture(scope="module")
def examples() -> Path:
    """The folder of the programs, which are built if they are not."""
    cargo = subprocess.run(
        [ROOT / "scripts" / "find-cargo"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if cargo.returncode:
        pytest.skip("cargo is not installed")
    command = [cargo.stdout.strip(), "build", "--quiet", "--profile", "checks", "--locked"]
    features = ["--package", "mstcp", "--features", "control", "--examples"]
    subprocess.run([*command, *features], cwd=ROOT, check=True)
    return ROOT / "target" / "checks" / "examples"


@pytest.mark.parametrize("streams", [1, 3])
async def test_the_client_speaks_to_the_python_server(examples: Path, streams: int) -> None:
    echo = EchoServer()
    server = await mstcp.start_server(echo.echo, "127.0.0.1", 0, plain=False, secret=SECRET.encode())
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with running(examples / "client", address, str(streams), str(BYTES), SECRET) as client:
            out, errors = await asyncio.wait_for(client.communicate(), 60)
    assert (client.returncode, out.decode()) == (0, f"{BYTES} bytes came back\n"), errors.decode()
    assert echo.errors == []


async def test_the_python_client_speaks_to_the_server(examples: Path) -> None:
    data = bytes(range(256)) * (BYTES // 256)
    async with running(examples / "server", "127.0.0.1:0", SECRET) as server:
        assert server.stdout is not None
        said = await asyncio.wait_for(server.stdout.readline(), 20)
        port = int(said.decode().rsplit(":", 1)[1])
        reader, writer = await mstcp.open_connection(
            "127.0.0.1", port, streams=[StreamSpec()] * 3, secret=SECRET.encode()
        )
        async with writer.transport:
            writer.write(data)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(-1), 60) == data
            assert writer.get_extra_info("protocol") == "mstcp"


async def test_the_client_speaks_to_the_python_server_inside_tls(examples: Path, tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    echo = EchoServer()
    server = await mstcp.start_server(
        echo.echo, "127.0.0.1", 0, plain=False, secret=SECRET.encode(), ssl=context
    )
    async with server:
        address = f"localhost:{server.sockets[0].getsockname()[1]}"
        async with running(examples / "client", address, "3", str(BYTES), SECRET, path) as client:
            out, errors = await asyncio.wait_for(client.communicate(), 60)
    assert (client.returncode, out.decode()) == (0, f"{BYTES} bytes came back\n"), errors.decode()
    assert echo.errors == []


async def test_the_python_client_speaks_to_the_server_inside_tls(examples: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, chain, key = authority.issue_cert("localhost"), tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    data = bytes(range(256)) * (BYTES // 256)
    async with running(examples / "server", "127.0.0.1:0", SECRET, chain, key) as server:
        assert server.stdout is not None
        said = await asyncio.wait_for(server.stdout.readline(), 20)
        port = int(said.decode().rsplit(":", 1)[1])
        reader, writer = await mstcp.open_connection(
            "127.0.0.1",
            port,
            streams=[StreamSpec()] * 3,
            secret=SECRET.encode(),
            ssl=context,
            server_hostname="localhost",
        )
        async with writer.transport:
            writer.write(data)
            writer.write_eof()
            assert await asyncio.wait_for(reader.read(-1), 60) == data


async def test_each_refuses_who_does_not_know_the_secret(examples: Path) -> None:
    echo = EchoServer()
    server = await mstcp.start_server(
        echo.echo, "127.0.0.1", 0, plain=False, secret=b"another", on_rejected=echo.on_rejected
    )
    async with server:
        address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with running(examples / "client", address, "2", "1", SECRET) as client:
            _, errors = await asyncio.wait_for(client.communicate(), 60)
    assert client.returncode == 1
    assert "refuses" in errors.decode()


async def test_a_controller_s_rate_is_asked_for_kept_and_followed(examples: Path) -> None:
    received = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        while data := await reader.read(1 << 16):
            received += len(data)
        writer.close()

    server = await mstcp.start_server(count, "127.0.0.1", 0, plain=False)
    async with server, FlowController() as other, FlowController() as controller:
        other.leads = False
        port = server.sockets[0].getsockname()[1]
        controllers = f"127.0.0.1:1, {other.address},{controller.address}"
        words = [controllers, f"127.0.0.1:{port}", "8e6", "600"]
        async with running(examples / "rate", *words) as program:
            await controller.wait_for(lambda: len(controller.renewed) > 2)
            (request,) = controller.requests
            first, second = request.source_ports[:2]
            streams = [
                pb.Stream(source_port=first, rate_bps=5e6),
                pb.Stream(source_port=second, rate_bps=1e6),
            ]
            changed = pb.Allocation(flow_id="flow-1", rate_bps=6e6, streams=streams, lease_s=0.3)
            controller.send(pb.ServerMessage(changed=pb.AllocationChanged(allocation=changed)))
            await controller.wait_for(lambda: len(controller.renewed) > 4)
            other.leads = True
            await controller.stop()
            await other.wait_for(lambda: other.renewed)
            program.send_signal(signal.SIGINT)
            await other.wait_for(lambda: other.released)
            out, errors = await asyncio.wait_for(program.communicate(), 60)
    assert program.returncode == 0, errors.decode()
    assert (request.rate_bps, request.destination, request.destination_port) == (8e6, "127.0.0.1", port)
    assert len(request.source_ports) == 4
    lines = out.decode().splitlines()
    assert lines[0] == "granted 8000000 bit/s over 2 streams"
    assert [line.partition(":")[0] for line in lines[1:]] == [
        "5000000 bit/s from 127.0.0.1",
        "1000000 bit/s from 127.0.0.1",
    ]
    sent = sum(int(line.split()[-2]) for line in lines[1:])
    assert sent > 0
    assert received > 0
    assert received % (1 << 14) == 0, "each piece that was written came whole"
    assert (other.requests, controller.released, other.released) == ([], [], ["flow-1"])
    assert set(map(tuple, controller.renewed + other.renewed)) == {("flow-1",)}
