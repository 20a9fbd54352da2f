"""An event is applied whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topologies
from controller.api.schema import parse
from controller.core import Core
from controller.decide.rates import Rates
from controller.errors import Unavailable
from controller.install.outbox import Outbox
from controller.install.transactions import Transactions
from controller.model.events import (
    FlowChanged,
    FlowRequested,
    PortWentDown,
    RulesRefused,
    SwitchConnected,
    TimePassed,
)
from controller.model.journal import Journal, Journaled, JournaledDict, JournaledSet
from controller.model.messages import InstallRules, Reply
from controller.state.hosts import HostTable
from tests.fakes.openflow_table import ControlledNetwork
from tests.fakes.requests import WITH_PORTS as REQUEST

BUTTERFLY = topologies.load("butterfly")


class Panic(BaseException):
    """As a panic of the compiled engine: no Exception."""


def network() -> ControlledNetwork:
    return ControlledNetwork.brought_up(BUTTERFLY)


def fail_once(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: BaseException) -> None:
    """Let a method do its work and raise then, the first time that it is called."""
    original: Callable[..., Any] = getattr(owner, name)

    def failing(*args: Any, **kwargs: Any) -> Any:
        monkeypatch.setattr(owner, name, original)
        original(*args, **kwargs)
        raise error

    monkeypatch.setattr(owner, name, failing)


@pytest.mark.parametrize("error", [ZeroDivisionError(), Panic()])
@pytest.mark.parametrize(
    ("owner", "name"), [(Transactions, "begin"), (Transactions, "_put"), (Rates, "apply")]
)
def test_a_request_that_fails_leaves_everything_as_it_was(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: BaseException
) -> None:
    net = network()
    other = net.request(**{**REQUEST, "destination": "T3", "destination_port": 5002, "rate_bps": 40e6})
    before = net.snapshot()
    fail_once(monkeypatch, owner, name, error)
    with pytest.raises(type(error)):
        net.request(**REQUEST)
    assert net.snapshot() == before
    assert [message for message in net.switches.installed if message.barrier > 10_000] == []
    assert net.request(**REQUEST).rate_bps > 0, "the ports are free again"
    assert other.flow_id in [flow.flow_id for flow in net.snapshot().flows]


def test_no_message_of_a_failed_event_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    core = Core(BUTTERFLY, network().core._state.settings)
    fail_once(monkeypatch, Transactions, "send", ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        core.handle(SwitchConnected(1, frozenset({1, 2, 3})), 0.0)
    assert core.handle(TimePassed(), 0.0) == []
    assert core.next_deadline() is None


def test_time_that_passes_is_applied_whole_too(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network()
    net.request(**REQUEST)
    net.now += 31
    monkeypatch.setattr(Rates, "_rebalance", _raise)
    with pytest.raises(ZeroDivisionError):
        net.core.handle(TimePassed(), net.now)
    assert len(net.core._state.flows) == 1, "the lease has not run out: the event did not happen"


def test_a_port_that_goes_down_is_forgotten_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network()
    before = net.snapshot()
    monkeypatch.setattr(Outbox, "tell", _raise)
    with pytest.raises(ZeroDivisionError):
        net.core.handle(PortWentDown(1, 2), net.now)
    assert net.snapshot() == before


def _raise(*_: Any, **__: Any) -> None:
    raise ZeroDivisionError


def test_a_host_is_not_half_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network()
    table = net.core._state.hosts
    assert isinstance(table, HostTable)
    before = table.all()
    with pytest.raises(ZeroDivisionError), Journal():
        host = before[0]
        table._put(host.__class__("x", "10.0.9.9", host.mac, host.switch, host.port, learned=True))
        raise ZeroDivisionError
    assert table.all() == before


def refused(net: ControlledNetwork, message: InstallRules, times: int) -> list[Reply]:
    event = RulesRefused(message.datapath_id, message.barrier, "TABLE_FULL")
    return [answer for _ in range(times) for answer in net.handle(event)]


def test_several_errors_for_one_barrier_are_one_refusal() -> None:
    net = network()
    net.silent = frozenset(BUTTERFLY.switches)
    net.handle(FlowRequested(1, parse(REQUEST), ""))
    answers = refused(net, net.switches.installed[-1], times=2)
    assert len(answers) == 1
    assert isinstance(answers[0].result, Unavailable)
    net.silent = frozenset()
    assert net.snapshot().health.ready, "its own rules were not refused"
    assert net.snapshot().flows == ()


def test_a_refusal_of_the_rules_of_a_switch_is_told_once() -> None:
    net = network()
    routes = net.switches.installed_in(1)[-1]
    refused(net, routes, times=3)
    assert len([r for r in net.reports if "refused" in r.text]) == 1
    assert not net.snapshot().health.ready


def test_an_error_after_the_barrier_ends_the_flow_and_tells_its_owner() -> None:
    net = network()
    flow = net.request(owner="me", **REQUEST)
    refused(net, net.switches.installed[-1], times=1)
    assert net.snapshot().flows == ()
    assert [n.owner for n in net.notifications] == ["me"]
    assert all(flow.flow_id not in str(t.rules) for t in net.switches.tables.values())


def test_an_error_after_the_barrier_of_an_earlier_stage_refuses_the_request() -> None:
    net = network()
    net.silent = frozenset({"S0"})  # the last stage
    net.handle(FlowRequested(1, parse(REQUEST), ""))
    (flow,) = net.core._state.flows
    pinned = [rule for rule in net.switches.rules() if rule.cookie in flow.cookies]
    first = next(m for m in net.switches.installed if any(e in pinned for e in m.entries))
    (answer,) = refused(net, first, times=1)
    assert isinstance(answer.result, Unavailable)
    assert net.snapshot().flows == ()


def test_a_refused_change_of_a_group_is_an_error_and_the_rate_stays() -> None:
    net = network()
    flow = net.request(**{**REQUEST, "source_ports": [40001], "splitting": "group"})
    net.silent = frozenset({"S0"})
    assert net.handle(FlowChanged(7, flow.flow_id, 2e6)) == []
    (answer,) = refused(net, net.switches.installed[-1], times=1)
    assert answer.token == 7
    assert isinstance(answer.result, Unavailable)
    (kept,) = net.snapshot().flows
    assert (kept.requested_bps, kept.rate_bps) == (flow.requested_bps, flow.rate_bps)


def test_the_time_to_confirm_begins_when_the_rules_are_sent() -> None:
    net = network()
    net.silent = frozenset(BUTTERFLY.switches)
    net.core.handle(FlowRequested(1, parse(REQUEST), ""), net.now)
    net.now += 3.2  # so long it took to solve
    net.core.sent(net.now)
    assert net.pass_time(2.9) == []
    (answer,) = net.pass_time(0.2)
    assert isinstance(answer.result, Unavailable)


class Thing(Journaled):
    def __init__(self) -> None:
        self.numbers: JournaledDict[int, int] = JournaledDict()
        self.members: JournaledSet[int] = JournaledSet()
        self.value = 0


steps = st.lists(
    st.tuples(st.sampled_from(["set", "del", "add", "drop", "value", "clear"]), st.integers(0, 4))
)


def apply(thing: Thing, step: str, number: int) -> None:
    if step == "set":
        thing.numbers[number] = thing.value
    elif step == "del":
        thing.numbers.pop(number, None)
    elif step == "clear":
        thing.numbers.clear()
    elif step == "add":
        thing.members.add(number)
    elif step == "drop":
        thing.members.discard(number)
    else:
        thing.value = number


@given(steps, steps)
def test_whatever_is_done_is_undone(before: list[tuple[str, int]], after: list[tuple[str, int]]) -> None:
    thing = Thing()
    with Journal():
        for step in before:
            apply(thing, *step)
    state = (dict(thing.numbers), set(thing.members), thing.value)
    with pytest.raises(ZeroDivisionError), Journal():
        for step in after:
            apply(thing, *step)
        raise ZeroDivisionError
    assert (dict(thing.numbers), set(thing.members), thing.value) == state
