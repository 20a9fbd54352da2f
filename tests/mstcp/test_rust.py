"""The example programs of crates/mstcp, for tokio, with the Python library at the other end.

They are built first where that was not done.
"""

from __future__ import annotations

import asyncio
import signal
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme

from tests.fakes.connections import ask, serving
from tests.fakes.echo_server import echo_server
from tests.fakes.flow_controller import FlowController
from tests.fakes.processes import cargo, first_line, output_of, running
from tests.paths import ROOT

SECRET = "between us"
BYTES = 3_000_001
DATA = bytes(range(256)) * (BYTES // 256)

pytestmark = pytest.mark.timeout(600)  # building the programs counts


@pytest.fixture(scope="module")
def examples() -> Path:
    """The folder of the programs, which are built if they are not."""
    command = [cargo(), "build", "--quiet", "--profile", "checks", "--locked"]
    features = ["--package", "mstcp", "--features", "control", "--examples"]
    subprocess.run([*command, *features], cwd=ROOT, check=True)
    return ROOT / "target" / "checks" / "examples"


async def send_to_python(client: Path, host: str, streams: int, *words: str | Path, **options: Any) -> None:
    """Let the client send to a server of ours, which sends all of it back."""
    async with echo_server(plain=False, secret=SECRET.encode(), **options) as echo:
        said = await output_of(client, f"{host}:{echo.port}", str(streams), str(BYTES), SECRET, *words)
    assert said == f"{BYTES} bytes came back\n"
    assert echo.errors == []


async def ask_rust(server: Path, *words: str | Path, **options: Any) -> None:
    async with running(server, "127.0.0.1:0", SECRET, *words) as program:
        port = int((await first_line(program)).rsplit(":", 1)[1])
        assert await ask(port, DATA, 3, secret=SECRET.encode(), **options) == DATA


@pytest.mark.parametrize("streams", [1, 3])
async def test_the_client_speaks_to_the_python_server(examples: Path, streams: int) -> None:
    await send_to_python(examples / "client", "127.0.0.1", streams)


async def test_the_python_client_speaks_to_the_server(examples: Path) -> None:
    await ask_rust(examples / "server")


async def test_the_client_speaks_to_the_python_server_inside_tls(examples: Path, tmp_path: Path) -> None:
    authority, path = trustme.CA(), tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    await send_to_python(examples / "client", "localhost", 3, path, ssl=context)


async def test_the_python_client_speaks_to_the_server_inside_tls(examples: Path, tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate, chain, key = authority.issue_cert("localhost"), tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(b"".join(blob.bytes() for blob in certificate.cert_chain_pems))
    certificate.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    await ask_rust(examples / "server", chain, key, ssl=context, server_hostname="localhost")


async def test_each_refuses_who_does_not_know_the_secret(examples: Path) -> None:
    async with echo_server(plain=False, secret=b"another") as echo:
        async with running(examples / "client", f"127.0.0.1:{echo.port}", "2", "1", SECRET) as client:
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

    async with (
        serving(count, plain=False) as (_, port),
        FlowController() as other,
        FlowController() as controller,
    ):
        other.leads = False
        controllers = f"127.0.0.1:1, {other.address},{controller.address}"
        words = [controllers, f"127.0.0.1:{port}", "8e6", "600"]
        async with running(examples / "rate", *words) as program:
            await controller.wait_for(lambda: len(controller.renewed) > 2)
            (request,) = controller.requests
            first, second = request.source_ports[:2]
            controller.reallocate({first: 5e6, second: 1e6}, lease_s=0.3)
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
