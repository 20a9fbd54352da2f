"""Hosts whose addresses go and come under a transfer, over two uplinks between network namespaces."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from typing import Any

import pytest

import mstcp
from benchmarks.uplinks import hosts
from benchmarks.uplinks.hosts import LIMIT_S, address, build, give, open_transfer, take_away
from mstcp import LocalProtocolError, StreamSpec
from mstcp.aio.streams import StreamWriter
from tests.fakes.waiting import until
from tests.paths import ROOT
from tests.sandbox import run_in_sandbox

SCHEDULER = "stochastic"
"""Draws the stream of each frame, however fast the first alone would be."""
PAUSE_S, REUSE_S = 5.0, 10.0
"""Wide bounds for busy machines: 1 and 2 s are promised."""


def move_uplinks(echoes: bool) -> dict[str, Any]:
    """Take each of two uplinks away under a transfer, and give it back with another address."""
    build(scheduler=SCHEDULER)
    return asyncio.run(hosts.move_uplinks(echoes, scheduler=SCHEDULER))


@pytest.mark.root
@pytest.mark.parametrize("echoes", [True, False])
def test_uplinks_that_go_and_come_back_with_other_addresses_are_used_again(echoes: bool) -> None:
    figures = run_in_sandbox(move_uplinks, echoes, timeout=4 * LIMIT_S)
    # Without other load 0.1 and 0.2 s.
    assert figures["pause_s"] < PAUSE_S and max(figures["reuse_s"]) < REUSE_S, figures


@pytest.mark.timeout(900)
def test_uplinks_are_used_again_within_2_s_of_virtual_time_and_no_pause_is_above_1_s() -> None:
    words = ["--first", "2", "--seeds", "2", "--jobs", "1", "--json"]
    argv = [sys.executable, "-m", "benchmarks.uplinks", *words]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [row["direction"] for row in json.loads(done.stdout)] == ["down", "both"]


def replace_all(echoes: bool) -> dict[str, Any]:
    """Replace the one address of a host whose streams named none, under a transfer."""
    build(scheduler=SCHEDULER)
    take_away(2, 2)

    async def run() -> dict[str, Any]:
        transfer = await open_transfer(echoes, streams=[StreamSpec()] * 2, scheduler=SCHEDULER)
        await transfer.until_used({address(1, 2)})
        transfer.pause_s = 0.0
        for number in (3, 4):
            take_away(1, number - 1)
            give(1, number)
            await transfer.until_used({address(1, number)})
        await transfer.until("both streams", lambda: transfer.transport.alive_streams == 2)
        await transfer.close()
        return {"pause_s": transfer.pause_s}

    return asyncio.run(run())


@pytest.mark.root
@pytest.mark.parametrize("echoes", [True, False])
def test_a_transfer_goes_on_when_all_addresses_of_its_host_are_replaced(echoes: bool) -> None:
    figures = run_in_sandbox(replace_all, echoes, timeout=4 * LIMIT_S)
    assert figures["pause_s"] < PAUSE_S, figures


def add_backup() -> dict[str, Any]:
    """Add and remove streams by hand, one of them a backup that its priority keeps idle."""
    build(scheduler=SCHEDULER)

    async def run() -> dict[str, Any]:
        transfer = await open_transfer(True, streams=[StreamSpec(local=address(1, 2))] * 2)
        await transfer.some()
        backup = await transfer.transport.add_stream(StreamSpec(local=address(2, 2), priority=1))
        await transfer.go_on(0.2)
        idle = transfer.transport.counters().streams[backup]
        with pytest.raises(OSError):
            await transfer.transport.add_stream(StreamSpec(local=address(3, 1)))
        take_away(1, 2)
        await transfer.until_used({address(2, 2)})
        await transfer.close()
        return {"idle_bytes": idle.bytes_sent + idle.bytes_received}

    return asyncio.run(run())


@pytest.mark.root
def test_a_backup_stream_that_is_added_carries_bytes_when_the_others_fail() -> None:
    assert run_in_sandbox(add_backup, timeout=2 * LIMIT_S) == {"idle_bytes": 0}


@pytest.mark.parametrize(
    "options",
    [
        {"streams": [StreamSpec()]},
        {"source_address": "127.0.0.1"},
        {"controller": "127.0.0.1:1", "rate": 1e6},
        {"paths": mstcp.Interfaces({"lo": StreamSpec(source_port=5)})},
    ],
)
async def test_what_contradicts_interfaces_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="interface"):
        await mstcp.open_connection("127.0.0.1", 9, **{"paths": "interfaces", **options})


async def test_streams_go_where_the_server_announces_until_it_withdraws_that() -> None:
    accepted: list[StreamWriter] = []
    with socket.create_server(("0.0.0.0", 0)) as listener:  # all loopback addresses
        port = listener.getsockname()[1]
        async with await mstcp.start_server(
            lambda _, writer: accepted.append(writer), sock=listener, announce=[("127.0.0.2", port)]
        ):
            _, writer = await mstcp.open_connection("127.0.0.1", port, max_announced=2)

            def hosts() -> list[str]:
                peers = [
                    sock.getpeername()[0] for sock in writer.get_extra_info("sockets") if sock.fileno() >= 0
                ]
                return sorted(peers)

            await until(lambda: hosts() == ["127.0.0.1", "127.0.0.2"])
            await until(lambda: accepted[0].transport.alive_streams == 2)
            accepted[0].transport.announce([("127.0.0.3", port)])
            await until(lambda: hosts() == ["127.0.0.1", "127.0.0.3"])
            with pytest.raises(LocalProtocolError, match="the server announces"):
                writer.transport.announce([])
            with pytest.raises(LocalProtocolError, match="16 addresses at most"):
                accepted[0].transport.announce([("127.0.0.1", port)] * 17)
            for end in (writer, accepted[0]):
                end.close()
            await writer.wait_closed()
