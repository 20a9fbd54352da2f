"""The example programs of crates/mstcp, for tokio, with the Python library at the other end.

They are built first where that was not done.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest
import trustme

import mstcp
from mstcp import StreamSpec
from tests.fakes.echo_server import EchoServer
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
    subprocess.run([*command, "--package", "mstcp", "--examples"], cwd=ROOT, check=True)
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
