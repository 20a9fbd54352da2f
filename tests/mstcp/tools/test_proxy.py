"""The proxies: unmodified TCP programs over MSTCP, in one process and as commands."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import platform
import random
import shutil
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import mstcp
from mstcp import StreamSpec, sockets
from mstcp.endpoints import Destination, parse_endpoint, parse_rule
from mstcp.tools.bypass import opened, parse_table
from mstcp.tools.preamble import (
    ANSWER_BYTES,
    NOT_ALLOWED,
    REQUEST_BYTES,
    DestinationRefused,
    check_answer,
    decode_request,
    encode_answer,
    encode_request,
    host_bytes,
)
from mstcp.tools.preload import SHIM
from mstcp.tools.proxy import Entry, Exit, SharedUpstream, Upstream
from tests.fakes.flow_controller import FlowController
from tests.fakes.mstcp_command import ended, mstcp_command, result_of
from tests.fakes.ports import free_ports
from tests.fakes.tcp_server import Handler, echo, keep_silent, tcp_client, tcp_server
from tests.fakes.waiting import until
from tests.vectors.generate import MAGIC


class Chain:
    """TCP client - Entry - MSTCP - Exit - TCP server, all on loopback."""

    def __init__(self) -> None:
        self.reports: list[str] = []
        self.port = 0

    def connect(self) -> AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        return tcp_client(self.port)


async def listening(stack: contextlib.AsyncExitStack, serve: Callable[..., Coroutine[Any, Any, None]]) -> int:
    """Run a proxy until the stack ends; return its port."""
    ready: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(
        serve("127.0.0.1", 0, lambda socks: ready.set_result(socks[0].getsockname()[1]))
    )

    async def stop() -> None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    stack.push_async_callback(stop)
    return await ready


@contextlib.asynccontextmanager
async def chain(
    handler: Handler = echo, *, asks: bool = False, shares: bool = False, **options: Any
) -> AsyncIterator[Chain]:
    it, asks = Chain(), asks or shares
    async with contextlib.AsyncExitStack() as stack:
        target = Destination("127.0.0.1", await stack.enter_async_context(tcp_server(handler)))
        leave = Exit(None if asks else target, options.get("allow"), it.reports.append)
        exit_port = await listening(stack, leave.serve)
        upstream: Upstream | SharedUpstream
        upstream = Upstream("127.0.0.1", exit_port, {"streams": [StreamSpec()] * 2})
        if shares:
            upstream = SharedUpstream(upstream)
            stack.push_async_callback(upstream.close)
        entry = Entry(upstream, options.get("to", target) if asks else None, it.reports.append)
        it.port = await listening(stack, entry.serve)
        yield it


@pytest.mark.parametrize("how", [{}, {"asks": True}, {"shares": True}])
async def test_bytes_go_both_ways_and_half_closes_are_kept(how: dict[str, bool]) -> None:
    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = await reader.read()  # until the half-close
        writer.write(hashlib.sha256(data).digest() + data[::-1])
        writer.close()
        await writer.wait_closed()

    data = random.Random(1).randbytes(3_000_000)
    async with chain(count, **how) as proxies:
        async with proxies.connect() as (reader, writer):
            writer.write(data)
            writer.write_eof()
            answer = await asyncio.wait_for(reader.read(), 60)
            assert answer == hashlib.sha256(data).digest() + data[::-1]
    assert proxies.reports == []


@pytest.mark.parametrize("shares", [False, True])
async def test_many_connections_at_once(shares: bool) -> None:
    async def ask(number: int) -> None:
        async with proxies.connect() as (reader, writer):
            for turn in range(5):
                line = f"{number} {turn}\n".encode() * 100
                writer.write(line)
                assert await reader.readexactly(len(line)) == line

    async with chain(shares=shares) as proxies:
        await asyncio.wait_for(asyncio.gather(*(ask(number) for number in range(60))), 60)
    assert proxies.reports == []


@pytest.mark.parametrize("shares", [False, True])
async def test_proxies_find_out_that_a_peer_has_vanished(
    shares: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel asks for them on every socket, and MSTCP on every connection."""
    asked: set[int] = set()
    ask = sockets.set_keepalive

    def noting(sock: socket.socket, idle_s: float | None, probes: int) -> None:
        ask(sock, idle_s, probes)
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE):
            asked.add(sock.fileno())

    monkeypatch.setattr(sockets, "set_keepalive", noting)
    async with chain(shares=shares) as proxies:
        async with proxies.connect() as (reader, writer):
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            # TCP in and out, two streams at both ends.
            await until(lambda: len(asked) == 6)


@pytest.mark.parametrize("shares", [False, True])
async def test_a_break_on_one_side_is_a_break_on_the_other(shares: bool) -> None:
    async def answer_and_break(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()

    async with chain(answer_and_break, shares=shares) as proxies:
        async with proxies.connect() as (reader, writer):
            writer.write(b"x")
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(reader.read(), 20)
            await until(lambda: proxies.reports)


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        (Destination("127.0.0.1", 1), "127.0.0.1:1 refused the connection"),
        (Destination("192.0.2.1", 80), "192.0.2.1:80 is not among the destinations allowed here"),
        (Destination("no-such-name.invalid", 80), "no-such-name.invalid:80: "),
    ],
)
@pytest.mark.parametrize("shares", [False, True])
async def test_what_cannot_be_reached_is_told_and_breaks_the_connection(
    to: Destination, reason: str, shares: bool
) -> None:
    async with chain(asks=True, shares=shares, to=to) as proxies:
        async with proxies.connect() as (reader, _):
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 20) == b""
            await until(lambda: len(proxies.reports) == 2)
            assert all(reason in report for report in proxies.reports)


async def test_what_is_allowed_by_rule_and_what_is_not() -> None:
    for rule, fits in (("127.0.0.0/8", True), ("127.0.0.1:1", False), ("10.0.0.0/8", False)):
        async with chain(asks=True, allow=[parse_rule(rule)]) as proxies:
            async with proxies.connect() as (reader, writer):
                writer.write(b"x")
                with contextlib.suppress(ConnectionError):
                    assert (await asyncio.wait_for(reader.read(1), 20) == b"x") == fits


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x93MSP\2\0\x50\1a", b"\x93MSP\1\0\0\1a"])
async def test_a_connection_that_asks_for_nothing_is_told_so(data: bytes) -> None:
    reports: list[str] = []
    async with contextlib.AsyncExitStack() as stack:
        port = await listening(stack, Exit(None, None, reports.append).serve)
        async with mstcp.open_connection("127.0.0.1", port, streams=[StreamSpec()] * 2) as (reader, writer):
            writer.write(data)
            head = await reader.readexactly(ANSWER_BYTES)
            text = await reader.readexactly(head[2])
            with pytest.raises(DestinationRefused, match="destination"):
                check_answer(head, text)
        await until(lambda: reports)


def test_the_preamble_says_what_it_is_told() -> None:
    for host, port in (("10.0.0.3", 22), ("::1", 65535), ("höst.example", 1)):
        data = encode_request(Destination(host, port))
        head, rest = data[:REQUEST_BYTES], data[REQUEST_BYTES:]
        assert host_bytes(head) == len(rest)
        assert decode_request(head, rest) == Destination(host, port)
    answer = encode_answer(NOT_ALLOWED, "ü" * 200)
    with pytest.raises(DestinationRefused, match="^ü{127}$") as caught:
        check_answer(answer[:ANSWER_BYTES], answer[ANSWER_BYTES:])
    assert caught.value.status == NOT_ALLOWED
    for wrong in (Destination("", 1), Destination("x" * 256, 1), Destination("x", 0)):
        with pytest.raises(ValueError, match="a destination is"):
            encode_request(wrong)


def test_endpoints_and_rules() -> None:
    assert parse_endpoint("[::1]:22") == Destination("::1", 22)
    assert parse_endpoint("22", default_host="127.0.0.1") == Destination("127.0.0.1", 22)
    for wrong in ("::1:22", "host", "host:", ":22", "host:65536", "host:0", "host:x", "host:²"):
        with pytest.raises(ValueError, match=r"brackets|is not HOST:PORT"):
            parse_endpoint(wrong)
    assert parse_rule("10.0.0.0/8:22").fits("10.1.2.3", 22)
    assert not parse_rule("10.0.0.0/8:22").fits("10.1.2.3", 23)
    assert parse_rule("[fd00::]/8").fits("fd00::1", 9)
    assert not parse_rule("[fd00::]/8:22").fits("fd00::1", 9)
    assert parse_rule("10.0.0.3").fits("::ffff:10.0.0.3", 9)
    for wrong in ("host", "10.0.0.0/33", "10.0.0.0/8:0", "10.0.0.0:x", ""):
        with pytest.raises(ValueError, match="is not ADDRESS"):
            parse_rule(wrong)


# --- the commands -------------------------------------------------------------------------------------------
async def test_both_ends_as_commands_and_ctrl_c() -> None:
    async with (
        tcp_server(echo) as port,
        mstcp_command("proxy", "exit", "0", f"127.0.0.1:{port}") as leave,
    ):
        to = await leave.address()
        async with mstcp_command("proxy", "enter", "127.0.0.1:0", to, "--streams", "3") as enter:
            host, _, entry = (await enter.address()).rpartition(":")
            async with tcp_client(int(entry), host) as (reader, writer):
                writer.write(b"through both")
                assert await asyncio.wait_for(reader.readexactly(12), 20) == b"through both"
                await ended(enter)
                with contextlib.suppress(ConnectionError):
                    assert await asyncio.wait_for(reader.read(), 20) == b""
        status, _, err = await leave.end(signal.SIGTERM)
        assert status == 130
        assert "Traceback" not in err


@contextlib.asynccontextmanager
async def http(folder: Path) -> AsyncIterator[int]:
    """Serve a folder over HTTP; yield the port."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        line = await asyncio.wait_for(process.stdout.readline(), 60)
        yield int(line.split()[5])
    finally:
        process.terminate()
        await process.communicate()


FETCH = """
import socket, sys, urllib.request
data = urllib.request.urlopen(sys.argv[1], timeout=30).read()
with socket.create_connection((sys.argv[2], int(sys.argv[3]))) as sock:
    print(sock.getpeername() == (sys.argv[2], int(sys.argv[3])))
sys.stdout.flush()
sys.stdout.buffer.write(data)
"""


async def test_a_client_that_goes_before_its_hello_is_not_told_of() -> None:
    async with mstcp_command("proxy", "exit", "0") as leave:
        host, _, port = (await leave.address()).rpartition(":")
        for begun in (b"", MAGIC[:5], MAGIC + b"\xff" * 64):
            with socket.create_connection((host, int(port))) as client:
                client.sendall(begun)
                if len(begun) > len(MAGIC):
                    with contextlib.suppress(ConnectionError):
                        await asyncio.to_thread(client.recv, 100)
                else:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        status, out, told = await leave.end()
        assert (status, out, told.count("\n")) == (130, "", 1)
        assert "127.0.0.1 was rejected: " in told


async def test_run_leads_a_program_over_mstcp(tmp_path: Path) -> None:
    assert SHIM.exists(), "run `make setup`"
    (tmp_path / "file").write_bytes(random.Random(2).randbytes(1_000_000))
    async with http(tmp_path) as port, mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        url = f"http://127.0.0.1:{port}/file"
        async with mstcp_command(
            "run", *via, "--", sys.executable, "-c", FETCH, url, "127.0.0.1", str(port)
        ) as run:
            out, err = await asyncio.wait_for(run.process.communicate(), 60)
        assert (run.process.returncode, err) == (0, b"")
        assert out == b"True\n" + (tmp_path / "file").read_bytes()
        if shutil.which("curl"):
            arguments = ("curl", "-sS", "--fail", "-o", str(tmp_path / "copy"), url)
            assert await result_of("run", *via, "--", *arguments) == (0, "", "")
            assert (tmp_path / "copy").read_bytes() == (tmp_path / "file").read_bytes()
        await ended(leave)


REFUSED = """
import errno, socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])))
except OSError as error:
    sys.exit(7 if error.errno == errno.ECONNREFUSED else str(error))
"""


async def test_run_tells_a_program_that_nobody_listens_and_passes_its_status_on() -> None:
    async with mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", "127.0.0.1:1")
        status, _, err = await result_of("run", *via, "--", sys.executable, "-c", REFUSED, "1")
        assert status == 7, err
        assert "127.0.0.1:1 refused the connection" in err
        status, _, err = await result_of("run", *via, "--", "sh", "-c", "kill -TERM $$")
        assert status == 128 + signal.SIGTERM
        assert "opened no connection over MSTCP" in err
        told = "mstcp run: no-such-command: No such file or directory\n"
        assert await result_of("run", *via, "--", "no-such-command") == (1, "", told)


FASTOPEN = """
import socket, sys
sock = socket.socket()
request = b"GET /file HTTP/1.0\\r\\n\\r\\n"
assert sock.sendto(request, socket.MSG_FASTOPEN, ("127.0.0.1", int(sys.argv[1]))) == len(request)
print(b"here" in sock.makefile("rb").read())
"""

RAW = """
import ctypes, platform, socket, struct, sys, time
number = {"x86_64": 42, "aarch64": 203}[platform.machine()]
sock = socket.socket()
address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", int(sys.argv[1]), bytes([127, 0, 0, 1]))
assert ctypes.CDLL(None).syscall(number, sock.fileno(), address, len(address)) == 0
time.sleep(1.5)
"""


async def test_run_leads_a_connect_that_carries_data(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"here")
    async with http(tmp_path) as port, mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        run = ("run", *via, "--", sys.executable, "-c", FASTOPEN, str(port))
        assert await result_of(*run) == (0, "True\n", "")


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the call's number is not known")
async def test_run_tells_of_a_connection_that_passes_it_by(tmp_path: Path) -> None:
    async with http(tmp_path) as port, mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        status, _, err = await result_of("run", *via, "--", sys.executable, "-c", RAW, str(port))
        assert status == 0
        assert err.count(f"a connection to 127.0.0.1 port {port} goes past MSTCP") == 1


def test_the_kernels_tables_say_who_opened_a_connection() -> None:
    rest = "00000000:00000000 00:00000000 00000000 0 0"
    table = f"""  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 0100007F:1F90 00000000:0000 0A {rest} 11 1 0 100 0 0 10 0
   1: 0100007F:1F90 0200000A:9C40 01 {rest} 12 1 0 20 4 30 10 -1
   2: 0100000A:9C41 0300000A:0050 01 {rest} 13 1 0 20 4 30 10 -1
"""
    entries = parse_table(table)
    if sys.byteorder == "little":
        ends = [(entry.address, entry.port) for entry in entries[1:]]
        assert ends == [("10.0.0.2", 40000), ("10.0.0.3", 80)]
    assert [entry.inode for entry in opened(entries)] == [13]


SEND_AND_GO = """
import os, socket, sys
sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
if len(sys.argv) > 2 and os.fork():
    os._exit(5)  # the child goes on
sock.sendall(bytes(1_000_000))
"""


@pytest.mark.parametrize(("child", "expected"), [((), 0), (("child",), 5)])
async def test_run_ends_when_what_the_program_sent_has_come(child: tuple[str, ...], expected: int) -> None:
    """At 4 Mbit/s the bytes take two seconds, the program none."""
    received = 0
    leaves = asyncio.Event()

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        while chunk := await reader.read(1 << 16):
            received += len(chunk)
        await leaves.wait()  # it does not end its direction: nobody would read
        writer.close()

    async with tcp_server(keep) as served, mstcp_command("proxy", "exit", "0") as leave:
        port = str(served)
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}", "--rates", "2e6,2e6")
        program = (sys.executable, "-c", SEND_AND_GO, port, *child)
        assert (await result_of("run", *via, "--", *program))[0] == expected
        await until(lambda: received == 1_000_000)
        leaves.set()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_the_wait_for_what_the_program_sent(number: signal.Signals) -> None:
    # What answered would have the system reset the connection of a program that is gone.
    async with tcp_server(keep_silent) as served, mstcp_command("proxy", "exit", "0") as leave:
        port = str(served)
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}", "--rates", "1e4,1e4")
        async with mstcp_command("run", *via, "--", sys.executable, "-c", SEND_AND_GO, port) as run:
            assert run.process.stderr is not None
            line = (await asyncio.wait_for(run.process.stderr.readline(), 60)).decode()
            assert "Ctrl-C breaks them off" in line
            status, _, err = await run.end(number)
            assert (status, err) == (130, "")


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
async def test_run_leads_iperf3() -> None:
    port = str(free_ports(1)[0])
    server = await asyncio.create_subprocess_exec(
        *("iperf3", "--server", "--one-off", "--bind", "127.0.0.1", "--port", port, "--forceflush"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert server.stdout is not None
    while b"listening" not in await asyncio.wait_for(server.stdout.readline(), 30):
        pass
    async with mstcp_command("proxy", "exit", "0") as leave:
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        arguments = ("iperf3", "--client", "127.0.0.1", "--port", port, "--bytes", "8M", "--parallel", "2")
        status, out, err = await result_of("run", *via, "--", *arguments)
        # iperf3 breaks its connections off at the end, which is told.
        assert status == 0, out + err
        assert "receiver" in out
    await asyncio.wait_for(server.communicate(), 30)


ALLOCATE_ALONE = "mstcp run: --allocate says what a controller allocates for: give --controller\n"


async def test_run_asks_a_controller_once_for_a_program_or_for_each_of_its_connections(
    tmp_path: Path,
) -> None:
    data = random.Random(3).randbytes(300_000)
    (tmp_path / "file").write_bytes(data)
    async with contextlib.AsyncExitStack() as stack:
        port = await stack.enter_async_context(http(tmp_path))
        leave = await stack.enter_async_context(mstcp_command("proxy", "exit", "0"))
        program = (sys.executable, "-c", FETCH, f"http://127.0.0.1:{port}/file", "127.0.0.1", str(port))
        via = ("--via", await leave.address(), "--only", f"127.0.0.1:{port}")
        for how, count in (((), 1), (("--allocate", "connection"), 2)):
            controller = await stack.enter_async_context(FlowController())
            asking = ("--controller", controller.address, "--rate", "8.5e6", *how)
            async with mstcp_command("run", *via, *asking, "--", *program) as run:
                out, err = await asyncio.wait_for(run.process.communicate(), 60)
            assert (run.process.returncode, err) == (0, b"")
            assert out == b"True\n" + data
            assert [request.rate_bps for request in controller.requests] == [8.5e6] * count
            assert len(controller.released) == count
        alone = await result_of("run", *via, "--allocate", "program", "--", *program)
        assert alone == (1, "", ALLOCATE_ALONE)
        await ended(leave)
