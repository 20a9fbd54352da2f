"""Who speaks for a switch: identity, deadlines, roles and claims, over sockets with model switches."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator

import pytest

from controller.model import events
from controller.model.messages import Acknowledge, InstallRules
from controller.model.rules import Match, Output, Rule
from controller.openflow.connection import Connection
from controller.openflow.decoding import Malformed
from controller.openflow.session import Leadership, Refused, Session
from controller.openflow.switches import Switches
from switch.model import ModelSwitch
from switch.model import openflow as model

S0 = 1
MASTER, SLAVE = 2, 3
ARP = bytes.fromhex("ffffffffffff0200000000010806000108000604000102000000000a0a00000900000000000a000001")


class Controller:
    """What reads switches, without its thread: `serve` handles all that has arrived."""

    def __init__(self, leadership: Leadership | None = None) -> None:
        self.now = 100.0
        self._said: list[events.Event] = []
        self.switches = Switches(
            lambda *said: self._said.extend(said),
            b"key",
            leadership or Leadership(7),
            clock=lambda: self.now,
        )
        self._open: dict[Connection, socket.socket] = {}

    def __enter__(self) -> Controller:
        return self

    def __exit__(self, *_: object) -> None:
        for connection, theirs in self._open.items():
            connection.socket.close()
            theirs.close()

    def accept(self) -> Peer:
        theirs, ours = socket.socketpair()
        theirs.setblocking(False)
        connection = Connection(
            ours, "a switch", self.switches.received, lambda _: None, clock=lambda: self.now
        )
        self._open[connection] = theirs
        self.switches.opened(connection)
        return Peer(theirs, connection)

    def serve(self) -> None:
        for connection in list(self._open):
            try:
                goes_on = connection.read()
            except Malformed:
                goes_on = False
            if not goes_on or connection.is_over:
                connection.close()
                connection.socket.close()
                self._open.pop(connection).close()
                self.switches.closed(connection)
        self.switches.hand_over()

    def pass_time(self, seconds: float, *peers: tuple[Peer, ModelSwitch]) -> None:
        """Let time pass, and these switches answer what they are asked meanwhile."""
        self.now += seconds
        self.switches.tick(self.now)
        for _ in range(6):
            self.serve()
            for peer, switch in peers:
                peer.answer(switch)
        self.serve()

    def take(self) -> list[events.Event]:
        said, self._said = self._said, []
        return said


class Peer:
    """The switch's end of a connection."""

    def __init__(self, theirs: socket.socket, connection: Connection) -> None:
        self.socket, self.connection = theirs, connection

    def answer(self, switch: ModelSwitch, but: Callable[[bytes], bool] = lambda _: False) -> None:
        """Answer what has arrived, except messages for which `but` is true."""
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            for _, _, whole in model.take_messages(bytearray(self.socket.recv(1 << 20))):
                if not but(whole):
                    self.socket.sendall(switch.receive(whole, self))

    @property
    def is_closed(self) -> bool:
        return self.connection.is_over


def connect(
    controller: Controller, switch: ModelSwitch, but: Callable[[bytes], bool] = lambda _: False
) -> Peer:
    peer = controller.accept()
    with contextlib.suppress(BrokenPipeError):
        peer.socket.sendall(switch.connect(peer))
        for _ in range(12):
            controller.serve()
            peer.answer(switch, but)
    controller.serve()
    return peer


def asks_for(kind: model.Multipart) -> Callable[[bytes], bool]:
    return lambda whole: whole[1] == model.Kind.MULTIPART_REQUEST and whole[9] == kind


@pytest.fixture
def controller() -> Iterator[Controller]:
    with Controller() as made:
        yield made


def test_nothing_counts_before_a_switch_is_admitted(controller: Controller) -> None:
    """With the id of another switch: ports, packets, barriers and errors are heard, and change nothing."""
    switch = ModelSwitch(S0, frozenset({1, 2, 3}), "S0")
    live = connect(controller, switch)
    assert [type(each) for each in controller.take()] == [events.SwitchConnected]
    for said_last in (model.Multipart.PORT_DESCRIPTION, model.Multipart.FLOW):
        impostor = ModelSwitch(S0, frozenset({1, 2, 3}), "impostor")
        peer = connect(controller, impostor, asks_for(said_last))
        for message in (
            impostor.set_port(1, up=False),
            impostor.frame_arrived(2, ARP),
            model.message(model.Kind.BARRIER_REPLY, 1),
            model.error(1, model.ErrorReason.TABLE_FULL, model.message(model.Kind.BARRIER_REQUEST, 1)),
        ):
            peer.socket.sendall(message)
        controller.serve()
        assert controller.take() == []
        controller.pass_time(16, (live, switch))
        assert peer.is_closed, "it has had its time"
        assert not live.is_closed
    live.socket.sendall(switch.set_port(1, up=False))
    controller.serve()
    assert controller.take() == [events.PortWentDown(S0, 1)]


def test_a_port_that_goes_down_before_the_admission_is_down_after_it(controller: Controller) -> None:
    switch = ModelSwitch(S0, frozenset({1, 2}), "S0")
    peer = connect(controller, switch, asks_for(model.Multipart.FLOW))
    peer.socket.sendall(switch.set_port(2, up=False))
    request = model.message(model.Kind.MULTIPART_REQUEST, 0, bytes(8))
    controller.serve()
    assert controller.take() == []
    session = controller.switches._sessions[peer.connection]
    assert session._reading is not None
    for transaction in list(session._reading.unanswered):
        error = model.error(transaction, model.ErrorReason.BAD_REQUEST_TYPE, request)
        peer.socket.sendall(error)
    controller.serve()
    (connected,) = controller.take()
    assert isinstance(connected, events.SwitchConnected)
    assert (connected.live_ports, connected.installed) == (frozenset({1}), None)


@pytest.mark.parametrize("answered", [[], ["hello"], ["hello", "features"]])
def test_the_handshake_has_a_deadline(answered: list[str]) -> None:
    session = _session()
    messages = {
        "hello": (model.Kind.HELLO, b""),
        "features": (model.Kind.FEATURES_REPLY, S0.to_bytes(8, "big") + bytes(16)),
    }
    for number, name in enumerate(answered):
        kind, body = messages[name]
        assert session.take(4, kind, number + 1, model.message(kind, number + 1, body), 100.0)
    assert session.tick(109.9) == b""
    with pytest.raises(Refused, match="who it is within 10 s"):
        session.tick(110.0)


@pytest.mark.parametrize(
    ("version", "body", "reason"),
    [(1, b"", "OpenFlow 1.3"), (6, b"\0\1\0\x08\0\0\0\x62", "OpenFlow 1.3"), (4, b"\0\1\0\0", "part of 0")],
)
def test_a_hello_of_another_version_is_refused(version: int, body: bytes, reason: str) -> None:
    whole = bytes([version, 0]) + (8 + len(body)).to_bytes(2, "big") + bytes(4) + body
    with pytest.raises((Refused, Malformed), match=reason):
        _session().take(version, 0, 0, whole, 100.0)


def test_a_certificate_is_for_one_datapath_id() -> None:
    """Checked when the switch says its id, before it is asked for anything; it says it once."""
    for datapath_id, auxiliary, reason in ((2, 0, "claims datapath id 2"), (S0, 1, "auxiliary")):
        session = _session("S0", lambda name, number: (name, number) == ("S0", S0))
        session.take(4, 0, 1, model.message(model.Kind.HELLO, 1), 100.0)
        body = datapath_id.to_bytes(8, "big") + bytes([0, 0, 0, 0, 254, auxiliary, 0, 0]) + bytes(8)
        features = model.message(model.Kind.FEATURES_REPLY, 1, body)
        with pytest.raises(Refused, match=reason):
            session.take(4, model.Kind.FEATURES_REPLY, 1, features, 100.0)
    session = _session()
    session.take(4, 0, 1, model.message(model.Kind.HELLO, 1), 100.0)
    features = model.message(model.Kind.FEATURES_REPLY, 1, S0.to_bytes(8, "big") + bytes(16))
    session.take(4, model.Kind.FEATURES_REPLY, 1, features, 100.0)
    with pytest.raises(Malformed, match="not asked for"):
        session.take(4, model.Kind.FEATURES_REPLY, 1, features, 100.0)


def _session(certified: str | None = None, may_be: Callable[[str, int], bool] = lambda *_: True) -> Session:
    numbers = iter(range(1, 100))
    session = Session(100.0, certified, may_be, Leadership(7), lambda: next(numbers))
    assert session.begin()
    return session


def test_the_switch_that_answers_stays_however_many_claim_its_id(controller: Controller) -> None:
    switch = ModelSwitch(S0, frozenset({1}), "S0")
    live = connect(controller, switch)
    controller.take()
    for round_ in range(3):
        claims = [connect(controller, ModelSwitch(S0, frozenset({1}), "impostor")) for _ in range(10)]
        controller.now += 0.1
        live.answer(switch)  # it is asked for an echo
        controller.serve()
        controller.pass_time(1)
        assert all(claim.is_closed for claim in claims), round_
        assert not live.is_closed
        assert controller.take() == []


def test_one_that_does_not_answer_is_followed_by_the_first_that_claims_its_id(controller: Controller) -> None:
    dead = connect(controller, ModelSwitch(S0, frozenset({1}), "dead"))
    controller.take()
    first, second = (connect(controller, ModelSwitch(S0, frozenset({1, 2}), name)) for name in "ab")
    controller.pass_time(2)
    assert (dead.is_closed, first.is_closed, second.is_closed) == (True, False, True)
    said = controller.take()
    assert [type(each) for each in said] == [events.SwitchDisconnected, events.SwitchConnected]


def test_a_second_controller_stands_by_until_the_first_has_been_silent(controller: Controller) -> None:
    """Each has terms of its own, as two that are started by mistake: the second one touches nothing."""
    switch = ModelSwitch(S0, frozenset({1}), "S0")
    with Controller(Leadership(9)) as second:
        live = connect(controller, switch)
        assert switch.role(live) == MASTER
        controller.take()
        standby = connect(second, switch)
        assert second.take() == [events.SwitchHeld(S0, True)]
        assert switch.role(standby) == SLAVE
        for _ in range(8):
            controller.pass_time(3.5, (live, switch))  # it raises the generation
            second.pass_time(3.5, (standby, switch))
        assert second.take() == []
        second.pass_time(9, (standby, switch))
        assert second.take() == []
        second.pass_time(3.5, (standby, switch))
        assert [type(each) for each in second.take()] == [events.SwitchHeld, events.SwitchConnected]
        assert (switch.role(standby), switch.role(live)) == (MASTER, SLAVE)
        assert controller.take() == []
        controller.pass_time(60, (live, switch))  # it wakes up, and its generation is stale
        assert set(controller.take()) == {events.SwitchHeld(S0, True), events.SwitchDisconnected(S0)}


def test_who_restarts_or_stops_is_followed_at_once() -> None:
    switch = ModelSwitch(S0, frozenset({1}), "S0")
    terms = (Leadership(7), Leadership(8, frozenset({7})), Leadership(9), Leadership(6))
    with Controller(terms[0]) as first, Controller(terms[1]) as again, Controller(terms[2]) as other:
        connect(first, switch)
        peer = connect(again, switch)
        assert isinstance(again.take()[0], events.SwitchConnected), "by its own earlier term"
        connect(other, switch)
        assert other.take() == [events.SwitchHeld(S0, True)]
        again.switches.release()
        peer.answer(switch)
    with Controller(terms[3]) as late:  # its clock is behind
        connect(late, switch)
        assert isinstance(late.take()[0], events.SwitchConnected)


def test_a_switch_without_roles_is_served(controller: Controller) -> None:
    switch = ModelSwitch(S0, frozenset({1}), "S0", has_roles=False)
    peer = connect(controller, switch)
    assert isinstance(controller.take()[0], events.SwitchConnected)
    controller.pass_time(60, (peer, switch))
    assert not peer.is_closed


def test_what_was_decided_before_a_switch_returned_is_not_for_it(controller: Controller) -> None:
    switch = ModelSwitch(S0, frozenset({1}), "S0")
    rule = Rule(1, 100, Match(eth_type=0x0800), Output(1), 7)

    def installs(peer: Peer) -> bool:
        controller.switches.send(InstallRules(S0, (rule,), 1))
        controller.switches.flush()
        peer.answer(switch)
        return len(switch.tables) == 1

    for _ in range(2):
        peer = connect(controller, switch)
        (*_, connected) = controller.take()
        assert isinstance(connected, events.SwitchConnected)
        assert not installs(peer), "the core has not heard of it"
        controller.switches.send(Acknowledge(S0, connected.announcement))
        assert installs(peer)
        switch.tables.clear()
        peer.socket.close()
        controller.serve()
