"""Programs that make system calls of their own: run in a network namespace that leads every connection here.

`namespace_child.py` makes the namespace, without root where the system allows it, and hands out the sockets
that connections and questions to name servers are led to. They are answered from our own namespace.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mstcp import sockets
from mstcp.endpoints import Destination, Rule
from mstcp.tools.carrier import Carrier, Started
from mstcp.tools.relay import LIMIT_BYTES, Pair, Tasks, abort

_CHILD = Path(__file__).with_name("namespace_child.py")
NAME_SERVICE_PORT = 53
_ANSWER_S = 5.0
_QUESTIONS = 256
"""How many may wait for a name server's answer; a program asks again."""


class Namespace:
    """Takes the connections of a command in a network namespace of its own; an asynchronous context manager.

    Args:
        carrier: Gets them.
    """

    hint = ""
    """What may help a command that opened no connection."""

    def __init__(self, carrier: Carrier) -> None:
        self._carrier = carrier
        self._stack = contextlib.AsyncExitStack()
        self._tasks = Tasks(carrier.failed)
        self._refusal = ""

    async def __aenter__(self) -> Namespace:
        await self._stack.enter_async_context(self._tasks)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Started:
        """Start a command; it may fail yet, which its refusal then says.

        Raises:
            OSError: There is no such command.
        """
        if shutil.which(command[0], path=environment.get("PATH")) is None:
            raise FileNotFoundError(2, os.strerror(2), command[0])
        ours, theirs = socket.socketpair()
        self._stack.callback(ours.close)
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(
                    sys.executable,
                    "-I",
                    str(_CHILD),
                    str(theirs.fileno()),
                    "\n".join(self._conditions()),
                    "--",
                ),
                *command,
                env=dict(environment),
                pass_fds=(theirs.fileno(),),
            )
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, self._heard, ours)
        self._stack.callback(loop.remove_reader, ours)
        return Started(process, lambda: self._refusal)

    def _conditions(self) -> list[str]:
        """Return conditions of nftables for destinations on loopback that go over MSTCP."""
        return [_condition(rule) for rule in self._carrier.rules or () if rule.has_loopback()]

    def _heard(self, channel: socket.socket) -> None:
        data, descriptors, _, _ = socket.recv_fds(channel, 1 << 12, 8)
        if data.startswith(b"!"):
            self._refusal = data[1:].decode()
        elif descriptors:
            for number in descriptors:
                self._tasks.start(self._serve(socket.socket(fileno=number)))
        else:
            asyncio.get_running_loop().remove_reader(channel)

    async def _serve(self, sock: socket.socket) -> None:
        if sock.type == socket.SOCK_DGRAM:
            questions = functools.partial(_Questions, self._tasks)
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(questions, sock=sock)
            self._stack.callback(transport.close)
        else:
            server = await asyncio.start_server(self._on_connected, sock=sock, limit=LIMIT_BYTES)
            self._stack.callback(server.close)

    def _on_connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to = Destination(*sockets.original_destination(writer.get_extra_info("socket")))
        except OSError:  # it has ended already
            abort((reader, writer))
            return
        self._carrier.carry((reader, writer), self._open(to))

    async def _open(self, to: Destination) -> Pair:
        if to.port == NAME_SERVICE_PORT and self._carrier.rules is None:
            return await asyncio.open_connection(*name_server(), limit=LIMIT_BYTES)
        if self._carrier.is_wanted(to.host, to.port):
            return await self._carrier.open(to)
        return await asyncio.open_connection(to.host, to.port, limit=LIMIT_BYTES)


def _condition(rule: Rule) -> str:
    family = "ip" if rule.network.version == 4 else "ip6"
    port = "meta l4proto tcp" if rule.port is None else f"tcp dport {rule.port}"
    return f"{family} daddr {rule.network} {port}"


def name_server() -> tuple[str, int]:
    """Return the address and port of the first name server of resolv.conf(5)."""
    with contextlib.suppress(OSError):
        for line in Path("/etc/resolv.conf").read_text().splitlines():
            words = line.split()
            if len(words) > 1 and words[0] == "nameserver":
                return words[1], NAME_SERVICE_PORT
    return "127.0.0.1", NAME_SERVICE_PORT


class _Questions(asyncio.DatagramProtocol):
    """Brings the namespace's questions to our name server, and the answers back."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if len(self._tasks) < _QUESTIONS:
            self._tasks.start(self._ask(data, addr))

    async def _ask(self, question: bytes, asker: tuple[str, int]) -> None:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: _Answer(answer), remote_addr=name_server()
        )
        with contextlib.closing(transport), contextlib.suppress(asyncio.TimeoutError, OSError):
            transport.sendto(question)
            said = await asyncio.wait_for(answer, _ANSWER_S)
            self._transport.sendto(said, asker)  # type: ignore[attr-defined]


class _Answer(asyncio.DatagramProtocol):
    def __init__(self, answer: asyncio.Future[bytes]) -> None:
        self._answer = answer

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        del addr
        if not self._answer.done():
            self._answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self._answer.done():
            self._answer.set_exception(exc)
