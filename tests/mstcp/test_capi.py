"""The C interface, by its example programs in C and Go, with the Python library at the other end.

The library and the programs are built first.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import mstcp
from mstcp import StreamSpec
from tests.fakes.echo_server import EchoServer
from tests.fakes.processes import running

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "crates" / "mstcp-capi" / "examples"
SECRET = "between us"
BYTES = 3_000_001

pytestmark = pytest.mark.timeout(600)  # building the programs counts


def _need(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Where pkg-config finds the library, which is built."""
    cargo = subprocess.run([ROOT / "scripts" / "find-cargo"], capture_output=True, check=False)
    if cargo.returncode:
        pytest.skip("cargo is not installed")
    prefix = tmp_path_factory.mktemp("capi")
    subprocess.run([ROOT / "scripts" / "build-capi", prefix, "checks"], check=True)
    return {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib" / "pkgconfig")}


@pytest.fixture(scope="module")
def c_programs(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the examples in C, which are built."""
    _need("gcc", "pkg-config")
    folder = tmp_path_factory.mktemp("c")
    words = ["pkg-config", "--cflags", "--libs", "mstcp"]
    flags = subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.split()
    strict = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    for name in ("echo", "paths", "transfer"):
        source = EXAMPLES / "c" / f"{name}.c"
        subprocess.run(["gcc", *strict, source, *flags, "-lpthread", "-o", folder / name], check=True)
    return folder


async def _ask_python(command: list[str | Path]) -> str:
    """Run a client against a server of ours that sends back what it gets; `PORT` stands for its port."""
    echo = EchoServer()
    server = await mstcp.start_server(echo.echo, "127.0.0.1", 0, plain=False, secret=SECRET.encode())
    async with server:
        port = str(server.sockets[0].getsockname()[1])
        async with running(*(port if word == "PORT" else word for word in command)) as client:
            out, errors = await asyncio.wait_for(client.communicate(), 60)
    assert client.returncode == 0, errors.decode()
    assert echo.errors == []
    return out.decode()


async def test_a_client_in_c_speaks_to_the_python_server(c_programs: Path) -> None:
    said = await _ask_python([c_programs / "echo", "send", "127.0.0.1", "PORT", "3", str(BYTES), SECRET])
    assert said.startswith(f"{BYTES} bytes came back over ")


async def test_the_python_client_speaks_to_a_server_in_c(c_programs: Path) -> None:
    data = bytes(range(256)) * (BYTES // 256)
    async with running(c_programs / "echo", "serve", "0", SECRET) as server:
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


async def test_bytes_go_without_a_copy_and_are_given_back(c_programs: Path) -> None:
    async with running(c_programs / "transfer", "sink", "127.0.0.1", "0") as sink:
        assert sink.stdout is not None
        port = (await asyncio.wait_for(sink.stdout.readline(), 20)).decode().split()[-1]
        source: list[str | Path] = [c_programs / "transfer", "source", "127.0.0.1", port, "0.2"]
        async with running(*source, "127.0.0.1:0", "127.0.0.1:0") as both:
            _, errors = await asyncio.wait_for(both.communicate(), 60)
        assert both.returncode == 0, errors.decode()
        came = json.loads(await asyncio.wait_for(sink.stdout.readline(), 20))["bytes"]
    assert came > 0 and came % (1 << 20) == 0


def _thread_cpu_s(pid: int) -> dict[str, float]:
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return {
        (task / "comm").read_text().strip(): int((task / "schedstat").read_text().split()[0]) * 1e-9
        for task in tasks
    }


async def test_the_thread_that_calls_drives_its_connection(c_programs: Path) -> None:
    async with running(c_programs / "transfer", "sink", "127.0.0.1", "0") as sink:
        assert sink.stdout is not None
        port = (await asyncio.wait_for(sink.stdout.readline(), 20)).decode().split()[-1]
        async with running(c_programs / "transfer", "source", "127.0.0.1", port, "2") as source:
            await asyncio.sleep(1.8)
            costs = [_thread_cpu_s(source.pid), _thread_cpu_s(sink.pid)]
            await asyncio.wait_for(source.communicate(), 60)
    # The library's thread: it wakes to see that it is not needed.
    assert all(cost["mstcp"] < 0.05 * cost["transfer"] for cost in costs), costs


async def test_a_failure_is_one_sentence(c_programs: Path) -> None:
    async with running(c_programs / "echo", "send", "127.0.0.1", "1", "2", "1") as client:
        _, errors = await asyncio.wait_for(client.communicate(), 60)
    assert client.returncode == 1
    assert errors.decode().startswith("cannot connect: cannot connect to 127.0.0.1 port 1: ")


async def test_streams_come_and_go_in_c(c_programs: Path) -> None:
    async with running(c_programs / "paths") as both_ends:
        out, errors = await asyncio.wait_for(both_ends.communicate(), 120)
    assert both_ends.returncode == 0, errors.decode()
    lines = out.decode().splitlines()
    hosts = r"(127\.0\.0\.\d):\d+-(127\.0\.0\.\d):\d+"
    first, announced = ("127.0.0.1", "127.0.0.1"), ("127.0.0.1", "127.0.0.2")
    assert [(line.partition(":")[0], re.findall(hosts, line)) for line in lines[:5]] == [
        ("connected", [first]),
        ("announced", [first, announced]),
        ("withdrawn", [first]),
        ("added", [first, ("127.0.0.3", "127.0.0.1")]),
        ("removed", [first]),
    ]
    assert lines[5:] == [
        "refused: the connection has no stream 2",
        "refused: the server announces addresses",
    ]


async def test_a_client_in_go_speaks_to_the_python_server(
    environment: dict[str, str], tmp_path: Path
) -> None:
    _need("go", "gcc", "pkg-config")
    program = tmp_path / "echo"
    settings = {"GOCACHE": str(tmp_path / "cache"), "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    command = ["go", "build", "-o", str(program), "."]
    subprocess.run(command, cwd=EXAMPLES / "go", env={**environment, **settings}, check=True)
    said = await _ask_python([program, "127.0.0.1", "PORT", "3", str(BYTES), SECRET])
    assert said == f"{BYTES} bytes came back\n"
