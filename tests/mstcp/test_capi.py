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
import time
from pathlib import Path

import pytest

from tests.fakes.connections import ask
from tests.fakes.echo_server import echo_server
from tests.fakes.processes import cargo, first_line, go_build, output_of, running
from tests.paths import ROOT

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
    cargo()
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
    async with echo_server(plain=False, secret=SECRET.encode()) as echo:
        said = await output_of(*(str(echo.port) if word == "PORT" else word for word in command))
    assert echo.errors == []
    return said


async def test_a_client_in_c_speaks_to_the_python_server(c_programs: Path) -> None:
    said = await _ask_python([c_programs / "echo", "send", "127.0.0.1", "PORT", "3", str(BYTES), SECRET])
    assert said.startswith(f"{BYTES} bytes came back over ")


async def test_the_python_client_speaks_to_a_server_in_c(c_programs: Path) -> None:
    data = bytes(range(256)) * (BYTES // 256)
    async with running(c_programs / "echo", "serve", "0", SECRET) as server:
        port = int((await first_line(server)).rsplit(":", 1)[1])
        assert await ask(port, data, 3, secret=SECRET.encode()) == data


async def test_bytes_go_without_a_copy_and_are_given_back(c_programs: Path) -> None:
    async with running(c_programs / "transfer", "sink", "127.0.0.1", "0") as sink:
        port = (await first_line(sink)).split()[-1]
        source = (c_programs / "transfer", "source", "127.0.0.1", port, "0.2")
        await output_of(*source, "127.0.0.1:0", "127.0.0.1:0")
        came = json.loads(await first_line(sink))["bytes"]
    assert came > 0 and came % (1 << 20) == 0


def _wakes(pid: int, thread: str) -> int:
    """Return how often a thread has waited for something."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        name, _, status = (task / "status").read_text().partition("\n")
        if name == f"Name:\t{thread}":
            return int(status.partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    raise LookupError(thread)


async def test_the_thread_that_calls_drives_its_connection(c_programs: Path) -> None:
    async with running(c_programs / "transfer", "sink", "127.0.0.1", "0") as sink:
        port = (await first_line(sink)).split()[-1]
        began = time.monotonic()
        async with running(c_programs / "transfer", "source", "127.0.0.1", port, "2") as source:
            await asyncio.sleep(1.8)
            wakes = [_wakes(each.pid, "mstcp") for each in (source, sink)]
            elapsed_s = time.monotonic() - began
            await asyncio.wait_for(source.communicate(), 60)
    # It looks every 4 ms whether it is needed, and contends with no call in between.
    assert max(wakes) < 3 * elapsed_s / 0.004, wakes


async def test_a_failure_is_one_sentence(c_programs: Path) -> None:
    async with running(c_programs / "echo", "send", "127.0.0.1", "1", "2", "1") as client:
        _, errors = await asyncio.wait_for(client.communicate(), 60)
    assert client.returncode == 1
    assert errors.decode().startswith("cannot connect: cannot connect to 127.0.0.1 port 1: ")


async def test_streams_come_and_go_in_c(c_programs: Path) -> None:
    lines = (await output_of(c_programs / "paths")).splitlines()
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
    # Go keeps what it compiled while these flags are the same, and sees neither the header nor pkg-config.
    settings = {"GOFLAGS": "-mod=mod", "CGO_LDFLAGS": f"-L{environment['PKG_CONFIG_PATH']}/.."}
    go_build(program, EXAMPLES / "go", {**environment, **settings})
    said = await _ask_python([program, "127.0.0.1", "PORT", "3", str(BYTES), SECRET])
    assert said == f"{BYTES} bytes came back\n"
