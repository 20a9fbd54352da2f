"""Connections that nobody needs: refused beyond a number, closed after a time, and never the end of all."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
import pytest
import uvicorn
from hypothesis import given
from hypothesis import strategies as st

from controller.api import connections
from controller.api.connections import RestServer
from controller.connection_limits import ConnectionLimits, ServiceLimits, is_passing
from controller.logs import SparingLog
from mstcp.proto import control_pb2, control_pb2_grpc
from tests.fakes.controller_command import ALONE, started
from tests.fakes.waiting import TIMEOUT_S, until

FILES = 220


@given(st.lists(st.sampled_from("abc"), max_size=40))
def test_what_is_taken_is_bounded_in_all_and_by_address(addresses: list[str]) -> None:
    limits = ConnectionLimits(10, 4)
    taken = [address for address in addresses if limits.take(address) is None]
    assert len(taken) == min(10, sum(min(4, addresses.count(each)) for each in "abc"))
    for address in taken:
        limits.free(address)
    assert [limits.take("a") is None for _ in range(5)] == [True] * 4 + [False]


@given(st.integers(1, 1000), st.integers(128, 1 << 16))
def test_all_services_together_leave_files_over(switches: int, files: int) -> None:
    limits = ServiceLimits.of(switches, files)
    together = limits.openflow.total + limits.rest.total + limits.grpc.total + min(switches, files)
    assert together < files or switches > files - 64


def test_which_failures_pass() -> None:
    assert is_passing(OSError(errno.EMFILE, "too many open files"))
    assert not is_passing(OSError(errno.EBADF, "bad file descriptor"))


def test_a_line_that_strangers_cause_is_written_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    log = SparingLog(logging.getLogger("test"), 10.0, lambda: now[0])
    for _ in range(1000):
        log.warning("limit", "%s is refused", "a")
    log.warning("other", "%s is refused", "b")
    now[0] = 11.0
    log.warning("limit", "%s is refused", "c")
    assert [record.getMessage() for record in caplog.records] == [
        "a is refused",
        "b is refused",
        "c is refused (999 more such lines were left out)",
    ]


@contextlib.contextmanager
def running(folder: Path) -> Iterator[dict[str, tuple[str, int]]]:
    """A controller that may open few files."""
    # By a shell: gRPC's threads do not survive a fork that runs Python in the child.
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh"]
    with started(folder / "log", *ALONE, before=limited) as (process, ready):
        yield {
            name: (ready[name][0].split(":")[0], int(ready[name][0].split(":")[1]))
            for name in ("openflow", "rest", "grpc")
        }
        assert process.poll() is None, (folder / "log").read_text()


def test_idle_connections_of_one_address_keep_no_other_out(tmp_path: Path) -> None:
    """400 to each service, where the process may have 220 open files; asked from another address."""
    with running(tmp_path) as addresses, contextlib.ExitStack() as stack:
        for name, address in addresses.items():
            for number in range(400):
                idle = stack.enter_context(socket.socket())
                idle.settimeout(TIMEOUT_S)
                idle.bind(("127.0.0.7", 0))
                idle.connect(address)
                if name == "rest" and number % 2:
                    with contextlib.suppress(OSError):
                        idle.sendall(b"POST /v1/flows HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        host, port = addresses["rest"]
        answer = httpx.get(f"http://{host}:{port}/healthz", timeout=TIMEOUT_S)
        assert answer.json() == {"status": "ok"}
        with socket.create_connection(addresses["openflow"], TIMEOUT_S, ("127.0.0.2", 0)) as switch:
            assert switch.recv(2) == b"\4\0", "a hello"
    text = (tmp_path / "log").read_text()
    assert "connections already" in text
    assert text.count("\n") < 40, "not a line for each"
    assert "Traceback" not in text


async def test_grpc_serves_again_after_a_flood(tmp_path: Path) -> None:
    with running(tmp_path) as addresses:
        host, port = addresses["grpc"]
        idle = [socket.create_connection((host, port), TIMEOUT_S) for _ in range(300)]
        for each in idle:
            each.close()
        async with grpc.aio.insecure_channel(f"{host}:{port}") as channel:
            stub = control_pb2_grpc.ControllerStub(channel)
            links = await stub.ListLinks(
                control_pb2.ListLinksRequest(), wait_for_ready=True, timeout=TIMEOUT_S
            )
            assert len(links.links) > 0


async def _large(_: Any, receive: Any, send: Any) -> None:
    """Answer with 64 MiB what has arrived whole."""
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.disconnect":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    for number in range(64):
        await send({"type": "http.response.body", "body": bytes(1 << 20), "more_body": number < 63})


async def test_requests_that_do_not_arrive_and_answers_that_are_not_read_are_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "REQUEST_S", 0.2)
    monkeypatch.setattr(connections, "UNREAD_S", 0.2)
    limits = ConnectionLimits(20, 20)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(_large, log_config=None, lifespan="off", timeout_graceful_shutdown=0)
    config.load()
    server = RestServer(config, limits)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    address = listening.getsockname()
    begin = time.monotonic()
    for said in (b"", b"GET / HT", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(said)
        with contextlib.suppress(ConnectionError):
            await asyncio.wait_for(reader.read(1 << 10), TIMEOUT_S)
        writer.close()
    unread = socket.create_connection(address)
    unread.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await until(lambda: not server.server_state.connections and time.monotonic() - begin > 0.5)
    assert all(limits.take("127.0.0.1") is None for _ in range(20)), "all are free again"
    unread.close()
    server.should_exit = True
    await serving
