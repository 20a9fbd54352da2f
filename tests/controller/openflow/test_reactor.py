"""The thread that serves all connections: what it has taken is handed over once a round."""

from __future__ import annotations

import socket
from typing import Any

from controller.openflow.connection import Connection
from controller.openflow.encoding import header
from controller.openflow.reactor import Reactor
from tests.fakes.waiting import until

_BARRIER_REPLY = 21


async def test_what_is_read_in_a_round_is_handed_over_once() -> None:
    taken: list[int] = []
    rounds: list[list[int]] = []

    def receive(_: Any, __: int, kind: int, transaction: int, ___: bytes) -> None:
        if kind == _BARRIER_REPLY:
            taken.append(transaction)

    def after_round() -> None:
        if taken:
            rounds.append(taken.copy())
            taken.clear()

    reactor = Reactor(after_round=after_round)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        ours, _ = listener.accept()
    connection = Connection(ours, ("switch", 0), receive, reactor.want_write)
    theirs.sendall(b"".join(header(_BARRIER_REPLY, 8, number) for number in range(50)))
    reactor.add(connection)
    reactor.start()
    try:
        await until(lambda: sum(map(len, rounds)) == 50)
        assert [number for each in rounds for number in each] == list(range(50))
        assert len(rounds) == 1
    finally:
        reactor.stop(0.0)
        theirs.close()
