"""The transport's parts for streams that come and go, for the end, and for threads, each by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mstcp import ConnectionLost, LocalProtocolError, RemoteProtocolError, StreamSpec, _core
from mstcp.open_stream import OpenStream
from mstcp.transport.ending import Ending
from mstcp.transport.lending import Lending
from mstcp.transport.membership import Membership
from mstcp.transport.state import Setup, State
from tests.fakes.tcp_pair import connected

PAYLOAD_BYTES = 1400
PORTS = (5001, 5002)


class Notes:
    """Stands for the other parts: notes what it is told, with the arguments."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **named: self.told.append((name, *args, *named.values()))

    def names(self) -> list[str]:
        return [call[0] for call in self.told]


def notes() -> Any:
    """Return what any of the other parts may be."""
    return Notes()


class Host:
    """An MSTCP connection of two streams, and what its parts tell each other."""

    def __init__(self) -> None:
        self.parts = notes()
        self.peers: list[socket.socket] = []
        core = _core.Connection(
            [1.0, 1.0],
            PAYLOAD_BYTES,
            scheduler="weighted",
            seed=1,
            send_queue_bytes=1 << 20,
            reorder_buffer_bytes=1 << 20,
        )
        streams = [self.stream(port) for port in PORTS]
        self.setup = Setup(
            asyncio.get_running_loop(),
            self.parts,
            core,
            streams,
            PAYLOAD_BYTES,
            on_stream_lost=lambda spec: self.parts.open_again(spec.source_port),
        )
        self.use(self.setup)

    def use(self, setup: Setup) -> None:
        """Make the parts of this setup."""
        self.state = State(setup)
        self.delivery = SimpleNamespace(is_giving=False, is_stopped=False, is_paused=False)
        self.parts.delivery = self.delivery
        self.parts.is_given_up = lambda: False
        self.parts.send = lambda _stream: 0
        parts = self.parts
        self.membership = Membership(setup, self.state, parts, parts, parts, parts, finish=self.finish)
        self.membership.on_stream_ended = lambda spec: parts.ended(spec.source_port)
        self.ending = Ending(
            setup,
            self.state,
            parts,
            parts,
            parts,
            parts,
            parts,
            drop=parts.drop,
            take_events=parts.take_events,
        )
        self.lending = Lending(self.state, parts, parts, parts, parts, self.ending)

    def finish(self, error: Exception | None, *, reset: bool) -> None:
        self.state.is_closed = True
        self.parts.told.append(("finish", error and str(error), reset))

    def stream(self, port: int) -> OpenStream:
        ours, theirs = connected()
        ours.setblocking(False)
        theirs.settimeout(10)
        self.peers.append(theirs)
        return OpenStream(ours, StreamSpec(port, 1e6))

    def close(self) -> None:
        streams = (*self.setup.streams, *self.state.streams)
        for sock in (*self.peers, *(stream.sock for stream in streams)):
            sock.close()


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    host = Host()
    yield host
    host.close()


def is_reset(peer: socket.socket) -> bool:
    try:
        peer.recv(1)
    except ConnectionResetError:
        return True
    return False


# --- streams that come, go and change ---------------------------------------------------------------------
async def test_a_stream_that_joins_takes_the_place_of_one_that_is_gone(host: Host) -> None:
    host.membership.drop(0, None)
    joins = host.stream(5003)
    host.membership.add_stream(joins, 2)
    assert host.membership.open_streams[0] is joins
    assert host.membership.open_ports == {5002, 5003}
    assert host.state.information["sockets"] == tuple(stream.sock for stream in host.state.streams)
    # Before the protocol knows of the connection nothing is read.
    assert "watch_reading" not in host.parts.names()
    host.membership.is_started = True
    host.membership.add_stream(host.stream(5004), 3)
    assert host.membership.alive_streams == 3
    assert "watch_reading" in host.parts.names()


async def test_a_lost_stream_is_reset_and_opened_again(host: Host) -> None:
    host.membership.drop(1, ConnectionResetError(104, "reset by the path"))
    assert ("open_again", 5002) in host.parts.told
    assert ("forget", 1) in host.parts.told
    assert is_reset(host.peers[1])
    host.membership.act_on([("lost", 0)])
    name, reason, reset = host.parts.told[-1]
    assert (name, reset) == ("finish", True)
    assert "reset by the path" in reason


async def test_a_stream_that_was_taken_out_is_not_opened_again(host: Host) -> None:
    host.membership.remove_stream(1)
    host.membership.drop(1, None)
    assert ("ended", 5002) in host.parts.told
    assert "open_again" not in host.parts.names()


async def test_rates_go_to_the_streams_of_their_ports(host: Host) -> None:
    host.membership.drop(0, None)
    host.parts.told.clear()
    host.membership.set_rates({5002: 3e6})
    assert [stream.spec.rate_bps for stream in host.state.streams] == [0.0, 3e6]
    assert [call for call in host.parts.told if call[0] == "pace"] == [("pace", 1)], "the other is gone"
    assert host.parts.names()[-1] == "pump"


@pytest.mark.parametrize(("index", "priority"), [(2, 0), (-1, 0), (0, -1), (0, 1 << 32)])
async def test_no_priority_is_set_that_does_not_exist(host: Host, index: int, priority: int) -> None:
    with pytest.raises(LocalProtocolError):
        host.membership.set_priority(index, priority)
    host.membership.set_priority(1, 7)
    assert host.state.streams[1].spec.priority == 7


@pytest.mark.parametrize(
    ("event", "reason", "reset"),
    [(("delivered", 0), "None", False), (("undelivered", 42), "42 bytes were not delivered", True)],
)
async def test_nothing_is_done_after_what_ends_the_connection(
    host: Host, event: tuple[str, int], reason: str, reset: bool
) -> None:
    host.membership.act_on([event, ("gone", 1)])
    name, told, was_reset = host.parts.told[-1]
    assert (name, was_reset) == ("finish", reset)
    assert reason in str(told)
    assert "open_again" not in host.parts.names()


# --- the end ----------------------------------------------------------------------------------------------
async def test_the_protocol_is_told_of_the_end_once_and_after_the_allocation_is_back(host: Host) -> None:
    released: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    host.use(replace(host.setup, on_closed=lambda: released))
    host.ending.finish(None, reset=False)
    host.ending.finish(ConnectionLost("later"), reset=True)
    waiting = asyncio.create_task(host.ending.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    assert all(peer.recv(1) == b"" for peer in host.peers), "no reset"
    released.set_result(None)
    await waiting
    assert [call for call in host.parts.told if call[0] == "connection_lost"] == [("connection_lost", None)]


async def test_abort_resets_all_streams(host: Host) -> None:
    host.ending.abort()
    await host.ending.wait()
    assert all(is_reset(peer) for peer in host.peers)
    assert host.state.is_closed and host.delivery.is_stopped


async def test_close_receives_nothing_more_and_leaves_the_rest_to_the_core(host: Host) -> None:
    host.ending.close()
    host.ending.close()
    assert host.delivery.is_stopped and not host.state.is_closed
    assert host.parts.names() == ["end", "deliver", "watch_reading", "pump", "take_events"]


async def test_a_broken_stream_waits_until_the_protocol_has_its_bytes(host: Host) -> None:
    host.delivery.is_giving = True
    host.ending.lose(0, ConnectionResetError())
    assert "drop" not in host.parts.names()
    host.delivery.is_giving = False
    await asyncio.sleep(0)
    assert host.parts.names() == ["read_out", "drop"]


@pytest.mark.parametrize("is_closing", [True, False])
async def test_a_plain_connection_ends_with_its_stream(host: Host, is_closing: bool) -> None:
    core = _core.Connection.plain(PAYLOAD_BYTES, send_queue_bytes=1 << 20)
    host.use(replace(host.setup, core=core, streams=host.setup.streams[:1]))
    if is_closing:
        core.end()
        while (offer := core.poll(0)) is not None:
            core.sent(*offer)
        host.state.is_closing = True
    host.ending.lose(0, ConnectionResetError(104, "reset by peer"))
    await host.ending.wait()
    assert (host.state.lost is None) == is_closing, "the peer has everything"


async def test_a_protocol_that_fails_is_reported_and_ends_the_connection(host: Host) -> None:
    reported: list[dict[str, Any]] = []
    host.state.loop.set_exception_handler(lambda _, context: reported.append(context))
    error = ValueError("not mine")
    host.ending.fail(error)
    assert [context["exception"] for context in reported] == [error]
    assert host.state.lost is error


# --- sockets that threads have ----------------------------------------------------------------------------
def lent(host: Host, *, is_out: bool, claim: object = None) -> None:
    """Have threads drive the connection, who came upon what `claim` says."""

    def claimed() -> object:
        if isinstance(claim, Exception):
            raise claim
        return claim

    loan: Any = SimpleNamespace(is_out=is_out, claim=claimed, finish=lambda: None)
    host.ending.loan = loan


async def test_only_streams_without_tls_are_lent(host: Host) -> None:
    bell = _core.Bell()
    assert host.lending.lend(bell, 1) is not None
    assert host.delivery.is_paused
    host.state.direct = None
    host.delivery.is_paused = False
    assert host.lending.lend(bell, 2) is None
    assert not host.delivery.is_paused


@pytest.mark.parametrize("is_out", [True, False])
async def test_the_loop_stands_by_while_threads_have_the_sockets(host: Host, is_out: bool) -> None:
    lent(host, is_out=is_out)
    host.lending.stand_by()
    assert host.state.is_lent == is_out
    assert host.parts.names() == (["forget_all", "stop_timer"] if is_out else [])
    host.lending.take_back()
    assert not host.state.is_lent
    assert host.parts.names()[-3:] == ["watch_reading", "take_events", "pump"]


async def test_what_threads_came_upon_is_done(host: Host) -> None:
    lent(host, is_out=True, claim=(0b10, 0b01, [(1, 104)], [("gone", 1)]))
    host.lending.attend()
    assert host.state.is_lent, "a thread waits for it"
    assert host.state.shut_streams == 0b01
    assert host.peers[0].recv(1) == b""
    assert ("after_reading", 1, True) in host.parts.told
    assert ("act_on", [("gone", 1)]) in host.parts.told
    assert [call[:2] for call in host.parts.told if call[0] == "drop"] == [("drop", 1)]
    assert host.parts.names()[-2:] == ["watch_reading", "pump"]


async def test_a_peer_that_broke_the_protocol_under_a_thread_is_refused(host: Host) -> None:
    error = RemoteProtocolError("bytes beyond the limit")
    lent(host, is_out=True, claim=error)
    host.lending.attend()
    assert host.state.is_closed and host.state.lost is error
    host.parts.told.clear()
    host.lending.stand_by()
    host.lending.take_back()
    host.lending.attend()
    assert host.parts.told == [], "nothing after the end"
