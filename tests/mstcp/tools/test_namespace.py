"""`mstcp run` in a network namespace, and a gateway: programs that no library can intercept."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.transport import addresses
from benchmarks.transport.network import Network
from mstcp.tools import namespace, proxy, redirect
from mstcp.tools.executables import uses_libc
from tests.fakes.mstcp_command import ended, mstcp_command
from tests.fakes.processes import go_build
from tests.fakes.tcp_server import tcp_server
from tests.fakes.waiting import wait_until
from tests.sandbox import run_in_sandbox


def has_namespaces() -> bool:
    """Whether this system makes network namespaces with nftables."""
    probe = "table inet probe { chain led { type nat hook output priority -100; }; }"
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    call = ["unshare", *user, "--net", "--", "nft", probe]
    return subprocess.run(call, stderr=subprocess.DEVNULL, check=False).returncode == 0


pytestmark = pytest.mark.skipif(not has_namespaces(), reason="needs network namespaces and nftables")

FETCH = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Connects to ADDRESS PORT and prints what comes until the end. */
int main(int count, char **words)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
    char bytes[4096];
    ssize_t size;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    inet_pton(AF_INET, words[1], &to.sin_addr);
    if (connect(fd, (struct sockaddr *)&to, sizeof to))
        return 3;
    while ((size = read(fd, bytes, sizeof bytes)) > 0)
        write(1, bytes, size);
    return size < 0;
}
"""
GO_FETCH = """package main

import (
	"io"
	"net"
	"os"
)

func main() {
	connection, err := net.Dial("tcp", os.Args[1]+":"+os.Args[2])
	if err == nil {
		_, err = io.Copy(os.Stdout, connection)
	}
	if err != nil {
		panic(err)
	}
}
"""
CONTENT = random.Random(5).randbytes(300_000)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return one program, static and dynamic."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "fetch.c").write_text(FETCH)
    for name, option in (("static", "-static"), ("dynamic", "-rdynamic")):
        call = ["cc", option, "-Wno-unused-result", "-o", str(folder / name), str(folder / "fetch.c")]
        subprocess.run(call, check=True)
    return {name: str(folder / name) for name in ("static", "dynamic")}


@contextlib.asynccontextmanager
async def content_served() -> AsyncIterator[str]:
    """Serve the content on a port of loopback."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        del reader
        writer.write(CONTENT)
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    async with tcp_server(serve) as port:
        yield str(port)


async def output(*arguments: str) -> bytes:
    """Return what `mstcp run` and its program print; the program has to succeed and nothing else be said."""
    async with mstcp_command("run", *arguments) as run:
        out, err = await asyncio.wait_for(run.process.communicate(), 60)
    assert (run.process.returncode, err) == (0, b"")
    return out


async def test_a_static_program_goes_over_mstcp(programs: dict[str, str]) -> None:
    """Chosen by its file; asked for, a dynamic one too, and a child of it."""
    async with content_served() as port, mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        assert await output(*via, "--", programs["static"], "127.0.0.1", port) == CONTENT
        namespace = ("--intercept", "namespace")
        for program in programs.values():
            child = ("sh", "-c", f"{program} 127.0.0.1 {port}; true")
            assert await output(*via, *namespace, "--", *child) == CONTENT
        await ended(leave)


@pytest.fixture(scope="module")
def go_program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the same in Go, static."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = tmp_path_factory.mktemp("go")
    (folder / "fetch.go").write_text(GO_FETCH)
    program = folder / "fetch"
    go_build(program, folder, {**os.environ, "CGO_ENABLED": "0"}, "fetch.go")
    assert not uses_libc(str(program))
    return str(program)


@pytest.mark.timeout(600)  # compiling counts
async def test_a_static_program_of_go_goes_over_mstcp(go_program: str) -> None:
    async with content_served() as port, mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        assert await output(*via, "--", go_program, "127.0.0.1", port) == CONTENT
        await ended(leave)


RATES_BPS = (12e6, 8e6)
FRAME_BYTES, SEGMENT_BYTES = 1514, 1448
"""As tbf counts them, and what TCP carries in one with its timestamps."""
SEND = f"""
import socket
with socket.create_server(("{addresses.FAR}", 80)) as listening:
    while True:
        with listening.accept()[0] as connection:
            connection.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n" + bytes(10_000_000))
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
"""


def goodput_bps(command: Sequence[str]) -> float:
    """Return what a program fetches a second over two paths that `mstcp run` of an ordinary user opens."""
    with contextlib.ExitStack() as stack, contextlib.closing(Network()) as network:
        for path, rate_bps in enumerate(RATES_BPS):
            shape = f"tc qdisc add dev b{path} root tbf rate {rate_bps:.0f}bit burst 20k limit 200k"
            subprocess.run(network.command(1, shape.split()), check=True)
        # As systems with two uplinks have it: the route of each has a metric of its own.
        route = f"ip route add {addresses.FAR} via {addresses.path_address(1, 1)} dev a1 metric 1"
        subprocess.run(route.split(), check=True)
        mstcp = [sys.executable, "-m", "mstcp.tools.cli"]
        for words in ([sys.executable, "-c", SEND], [*mstcp, "proxy", "exit", f"{addresses.FAR}:9000"]):
            process = subprocess.Popen(network.command(1, words), stdout=subprocess.PIPE)
            stack.callback(process.wait)
            stack.callback(process.kill)
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"listening")
        # Who may read the interpreter wherever it is, and has no rights in this network namespace.
        user = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--"]
        run = [*user, *mstcp, "run", "--via", ":9000", "--interfaces", "--", *command]
        with subprocess.Popen(run, stdout=subprocess.PIPE) as program:
            assert program.stdout is not None
            pipe = program.stdout.fileno()
            size, began_s = len(os.read(pipe, 1)), time.monotonic()
            while piece := os.read(pipe, 1 << 16):
                size, ended_s = size + len(piece), time.monotonic()
        assert program.returncode == 0 and size >= 10_000_000
        return 8 * size / (ended_s - began_s)


@pytest.mark.root
@pytest.mark.timeout(600)
def test_unchanged_programs_get_the_sum_of_two_paths_without_root(go_program: str, tmp_path: Path) -> None:
    for command in (["curl", "-sS", f"http://{addresses.FAR}/"], [go_program, addresses.FAR, "80"]):
        reached = run_in_sandbox(goodput_bps, command) / (sum(RATES_BPS) * SEGMENT_BYTES / FRAME_BYTES)
        assert 0.9 < reached < 1.02


def test_what_a_file_says_of_its_program(programs: dict[str, str], tmp_path: Path) -> None:
    assert uses_libc(programs["dynamic"])
    assert uses_libc("sh")
    assert uses_libc("no-such-command")
    assert not uses_libc(programs["static"])
    for text, expected in {
        f"#!{programs['static']} -x\n": False,
        f"#! {programs['dynamic']}\n": True,
        "#!/usr/bin/env -S A=1 sh\n": True,
        "no program": True,
    }.items():
        script = tmp_path / "script"
        script.write_text(text)
        script.chmod(0o755)
        assert uses_libc(str(script)) is expected
    go = bytearray(Path(programs["dynamic"]).read_bytes())
    go[:] = go.replace(b"GNU\0", b"Go\0\0")
    (tmp_path / "go").write_bytes(go)
    (tmp_path / "go").chmod(0o755)
    assert not uses_libc(str(tmp_path / "go"))


ASK = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
    asked.settimeout(30)
    asked.connect(("198.51.100.1", 53))
    asked.send(b"question")
    assert asked.recv(99) == b"answer to question"
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
    other.connect(("198.51.100.1", 123))
    try:
        other.send(b"x")
    except PermissionError:
        pass
    else:
        raise SystemExit("it was sent")
with socket.socket() as listening, socket.socket() as own:
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    own.connect(listening.getsockname())
"""


async def test_names_are_resolved_loopback_is_its_own_and_nothing_else_leaves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Responder(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
            self.transport.sendto(b"answer to " + data, addr)  # type: ignore[attr-defined]

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Responder, local_addr=("127.0.0.1", 0))
    monkeypatch.setattr(namespace, "name_server", lambda: transport.get_extra_info("sockname"))
    said: list[str] = []
    status = await run([sys.executable, "-c", ASK], said)
    transport.close()
    assert (status, said) == (0, ["the command opened no connection over MSTCP"])


async def run(command: Sequence[str], said: list[str]) -> int:
    """Run a command in a namespace; the far proxy cannot be reached."""
    upstream = proxy.Upstream("127.0.0.1", 1)
    how = redirect.Interception.NAMESPACE
    return await redirect.run(command, upstream, None, said.append, os.environ, how)


async def test_a_destination_that_cannot_be_reached_breaks_the_connection(programs: dict[str, str]) -> None:
    said: list[str] = []
    assert await run([programs["static"], "198.51.100.1", "80"], said) == 1
    assert "127.0.0.1 port 1" in said[0]


@pytest.mark.root
def test_a_command_that_can_have_no_namespace_says_what_to_do(programs: dict[str, str]) -> None:
    denied = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"]
    call = [
        *denied,
        sys.executable,
        "-m",
        "mstcp.tools.cli",
        "run",
        "--via",
        "127.0.0.1:1",
        "--",
        programs["static"],
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("mstcp run: no network namespace for the command (")
    assert "user namespaces" in done.stderr
    assert done.stderr.count("\n") == 1


LED = {
    "tproxy": "type filter hook prerouting priority mangle\n"
    'iifname "inside" meta l4proto tcp tproxy to :7000 meta mark set 1 accept',
    "redirect": "type nat hook prerouting priority dstnat\n"
    'iifname "inside" meta l4proto tcp redirect to :7000',
}
SERVE = """
import socket
with socket.create_server(("10.2.0.2", 80)) as listening:
    while True:
        with listening.accept()[0] as connection:
            connection.sendall(connection.getpeername()[0].encode())
"""


def network_namespace(pid: int | str) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def gateway(program: str, led: str) -> dict[str, str]:
    """Run in a sandbox, which is the gateway of one host and leads its connections to another."""

    def sh(text: str) -> None:
        subprocess.run(["sh", "-ec", text], check=True)

    with contextlib.ExitStack() as stack:

        def started(*command: str, **options: Any) -> subprocess.Popen[str]:
            process = subprocess.Popen(command, text=True, **options)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        hosts = [started("unshare", "--net", "sleep", "60").pid for _ in range(2)]
        processes = ["self", *map(str, hosts)]
        wait_until(lambda: len({network_namespace(each) for each in processes}) == 3, "two namespaces")
        enter = [["nsenter", f"--target={host}", "--net", "--"] for host in hosts]
        for number, (host, name) in enumerate(zip(hosts, ("inside", "outside"), strict=True), 1):
            sh(f"ip link add {name} type veth peer name eth0 netns {host}")
            sh(f"ip addr add 10.{number}.0.1/24 dev {name}; ip link set {name} up")
            inner = f"ip addr add 10.{number}.0.2/24 dev eth0; ip link set eth0 up; ip link set lo up"
            subprocess.run([*enter[number - 1], "sh", "-ec", inner], check=True)
        subprocess.run([*enter[0], "ip", "route", "add", "default", "via", "10.1.0.1"], check=True)
        sh("ip rule add fwmark 1 lookup 100; ip route add local default dev lo table 100")
        subprocess.run(["nft", f"table ip mstcp {{\nchain led {{\n{LED[led]}\n}}\n}}"], check=True)
        mstcp = (sys.executable, "-m", "mstcp.tools.cli", "proxy")
        started(*enter[1], sys.executable, "-c", SERVE)
        proxies = [
            started(*enter[1], *mstcp, "exit", "10.2.0.2:9000", stdout=subprocess.PIPE),
            started(*mstcp, "enter", "--transparent", "0.0.0.0:7000", ":9000", stdout=subprocess.PIPE),
        ]
        for each in proxies:
            assert each.stdout is not None
            assert each.stdout.readline().startswith("listening on")
        fetch = [*enter[0], program, "10.2.0.2", "80"]
        done = subprocess.run(fetch, capture_output=True, text=True, check=True)
        direct = subprocess.run(
            [*enter[0], program, "10.1.0.1", "7000"], capture_output=True, text=True, check=False
        )
        return {"seen": done.stdout, "direct": direct.stdout}


@pytest.mark.root
@pytest.mark.parametrize("led", LED)
def test_a_gateway_takes_connections_to_where_they_went(programs: dict[str, str], led: str) -> None:
    """The server sees the far proxy's host; a connection to the gateway's own port is refused."""
    assert run_in_sandbox(gateway, programs["static"], led) == {"seen": "10.2.0.2", "direct": ""}
