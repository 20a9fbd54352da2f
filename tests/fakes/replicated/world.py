"""Everything of a simulation, what goes wrong in it, and what must hold."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

from controller.api.schema import parse
from controller.errors import RequestError, Unavailable
from controller.leader.machine import Standing
from controller.model import events
from controller.model.messages import Reply
from controller.model.rules import Rule, is_flow_cookie
from controller.model.views import FlowView
from tests.fakes.openflow_table import FakeSwitches
from tests.fakes.replicated.models import DATAPATHS, NETWORK, EtcdModel, SwitchModel
from tests.fakes.replicated.replica import SimReplica

TROUBLE_S, CALM_S, QUIET_S = 45.0, 25.0, 10.0
"""Trouble, then calm, and in its last part nothing new is asked for."""
RENEW_S, PATIENCE_S = 2.0, 4.0
FLOW_BPS = 30e6


@dataclass
class Client:
    """Asks for flows, each from a port of its own, renews them, and releases some."""

    number: int
    replica: int = 0  # the one that it asks
    wanted: dict[int, dict[str, Any]] = field(default_factory=dict)  # by source port
    granted: dict[int, str] = field(default_factory=dict)  # ids by source port
    released: set[str] = field(default_factory=set)
    seen: int = 0  # the number of the last event


class World:
    """Everything, by a seed.

    Attributes:
        takeovers: How often a replica began to lead.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now = 0.0
        self.numbers = count(1)
        self._due: list[tuple[float, int, Callable[[], Any]]] = []
        self.loss = self.rng.choice([0.0, 0.02, 0.1])
        self.trouble = self.rng.choice([0.0, 0.002, 0.01])  # how likely each crash or pause is
        self.in_trouble = True
        self._cut_store: set[SimReplica] = set()
        self._cut_switches: set[tuple[SimReplica, int]] = set()
        self.etcd = EtcdModel(self)
        self.switches = FakeSwitches(NETWORK)
        self.models = {datapath_id: SwitchModel(self, datapath_id) for datapath_id in DATAPATHS}
        self.replicas: list[SimReplica] = []
        for number in range(3):
            self.replicas.append(SimReplica(self, number))
        self.clients = [Client(number) for number in range(3)]
        self.answered: dict[int, int] = {}  # answers by token

    # Time and trouble

    def at(self, time: float, call: Callable[[], Any]) -> None:
        heapq.heappush(self._due, (time, next(self.numbers), call))

    def delay(self) -> float:
        return self.rng.uniform(0.0005, 0.01) if self.rng.random() < 0.95 else self.rng.uniform(0.01, 0.4)

    def happens(self, _: str) -> bool:
        return self.in_trouble and self.rng.random() < self.trouble

    def reaches_store(self, replica: SimReplica) -> bool:
        return replica not in self._cut_store

    def reaches_switch(self, replica: SimReplica, datapath_id: int) -> bool:
        return (replica, datapath_id) not in self._cut_switches

    def _cause_trouble(self) -> None:
        if not self.in_trouble:
            return
        leader = next((each for each in self.replicas if each.machine.epoch), None)
        victim = leader if leader is not None and self.rng.random() < 0.6 else self.rng.choice(self.replicas)
        what = self.rng.choice(["crash", "pause", "store", "switches", "both", "a switch", "all", "ask"])
        lasts_s = self.rng.choice([0.3, 1.0, 3.0, 8.0])
        if what == "crash":
            victim.crash()
        elif what == "pause":
            victim.pause(20.0 if self.rng.random() < 0.3 else lasts_s)
        elif what == "ask":
            victim.elector.do(victim.machine.step_down(victim.now()))
        else:
            if what in ("store", "both"):
                self._cut_store.add(victim)
            if what == "all":
                self._cut_store.update(self.replicas)
            for datapath_id in DATAPATHS if what in ("switches", "both") else ():
                self._cut(victim, datapath_id)
            if what == "a switch":
                self._cut(victim, self.rng.choice(DATAPATHS))
            self.at(self.now + lasts_s, self._heal)
        self.at(self.now + self.rng.uniform(0.5, 6.0), self._cause_trouble)

    def _cut(self, replica: SimReplica, datapath_id: int) -> None:
        self._cut_switches.add((replica, datapath_id))
        replica.disconnect(datapath_id)

    def _heal(self) -> None:
        self._cut_store.clear()
        cut, self._cut_switches = self._cut_switches, set()
        for replica, datapath_id in sorted(cut, key=lambda each: (each[0].number, each[1])):
            if datapath_id not in replica.connections:
                replica.connect(datapath_id)

    def _start_again(self) -> None:
        for replica in self.replicas:
            if not replica.is_alive and (not self.in_trouble or self.rng.random() < 0.5):
                replica.start()
        self.at(self.now + 1.0, self._start_again)

    # Clients

    def _ask(self, client: Client, event: Callable[[int], events.Event], done: Callable[[Any], None]) -> None:
        """Hand an event to the replica that a client talks to; one answer comes, or none while it pauses."""
        replica, token = self.replicas[client.replica], next(self.numbers)
        self.answered[token] = 0

        def answered(answer: Reply) -> None:
            self.answered[token] += 1
            assert self.answered[token] == 1, "two answers"
            if isinstance(answer.result, Unavailable):
                self._ask_another(client, replica)
            done(answer.result)

        if not replica.is_alive:
            answered(Reply(token, Unavailable("", "nobody listens")))
            return
        replica.waiting[token] = answered
        replica.post(event(token))
        self.at(self.now + PATIENCE_S, lambda: self._lose_patience(client, replica, token))

    def _lose_patience(self, client: Client, replica: SimReplica, token: int) -> None:
        if self.answered[token] == 0:
            self._ask_another(client, replica)

    def _ask_another(self, client: Client, replica: SimReplica) -> None:
        if self.replicas[client.replica] is replica:  # else another question has led to another already
            client.replica = (client.replica + 1) % len(self.replicas)

    def _act(self, client: Client) -> None:
        if self.in_trouble and len(client.wanted) < 6 and self.rng.random() < 0.5:
            port = 40000 + next(self.numbers)
            source, destination = self.rng.sample(NETWORK.hosts, 2)
            client.wanted[port] = {
                "source": source,
                "destination": destination,
                "destination_port": 5001,
                "source_ports": [port],
                "rate_bps": FLOW_BPS,
                "packet_bytes": 1000,
                "objective": self.rng.choice(["fair", "max_throughput_min_delay"]),
            }
        open_ports = [port for port in client.wanted if port not in client.granted]
        if open_ports and self.now < TROUBLE_S + CALM_S - QUIET_S:
            port = self.rng.choice(open_ports)
            request = parse(client.wanted[port])
            self._ask(
                client,
                lambda token: events.FlowRequested(token, request, f"{client.number}"),
                lambda result: self._granted(client, port, result),
            )
        ids = tuple(each for each in client.granted.values() if each not in client.released)
        if ids:
            self._ask(
                client,
                lambda token: events.LeaseRenewed(token, ids, f"{client.number}"),
                lambda result: self._renewed(client, result),
            )
            if self.in_trouble and self.rng.random() < 0.1:
                released = self.rng.choice(ids)
                client.released.add(released)
                self._ask(client, lambda token: events.FlowReleased(token, released), lambda _: None)
        self._follow_events(client, self.replicas[client.replica])
        self.at(self.now + self.rng.uniform(0.5, 1.0) * RENEW_S, lambda: self._act(client))

    def _follow_events(self, client: Client, replica: SimReplica) -> None:
        """Hear what has happened since the last event, from whichever replica a client talks to."""
        for each in replica.history._events if replica.is_alive else ():
            if each.number > client.seen:
                assert each.number == client.seen + 1, "events were lost between two replicas"
                data = json.loads(json.dumps(each.data))
                told = self.etcd.told[client.seen]
                assert told == (each.kind, each.time_s, each.text, data), "replicas tell different things"
                client.seen = each.number

    def _granted(self, client: Client, port: int, result: Any) -> None:
        if isinstance(result, FlowView):
            assert port not in client.granted or client.granted[port] == result.flow_id, "granted twice"
            client.granted[port] = result.flow_id
        else:
            assert isinstance(result, RequestError)

    def _renewed(self, client: Client, result: Any) -> None:
        if not isinstance(result, RequestError):
            lost = set(result.unknown) - client.released
            assert not lost, f"granted flows are lost: {lost}"

    # Promises

    def run(self) -> World:
        """Let it all happen, then be calm, and look at what is left."""
        self.at(self.rng.uniform(1.0, 5.0), self._cause_trouble)
        self.at(1.0, self._start_again)
        for client in self.clients:
            self.at(self.rng.uniform(0, 2.0), partial(self._act, client))
        self._until(TROUBLE_S)
        self.in_trouble, self.loss = False, 0.0
        for replica in self.replicas:
            if self.now < replica.paused_until:
                replica.paused_until = self.now
                self.at(self.now, replica._resume)
        self._heal()
        self._until(TROUBLE_S + CALM_S)
        for _ in range(100):  # a lease may just have run out, and its rules be about to go
            if self._is_settled():
                break
            self._until(self.now + 0.05)
        self._check_end()
        return self

    def _until(self, time: float) -> None:
        while self._due and self._due[0][0] <= time:
            self.now, _, call = heapq.heappop(self._due)
            self.etcd.expire()
            call()
            self._check()
        self.now = time

    def _check(self) -> None:
        """At each step at most one may decide, and neither store nor switch has obeyed an older one since."""
        deciding = [r for r in self.replicas if r.is_alive and r.machine.may_decide(r.now())]
        assert len(deciding) <= 1, "two replicas believe that they may decide"
        assert self.etcd.epochs[-2:] == sorted(self.etcd.epochs[-2:]), "the store has obeyed a deposed leader"
        for model in self.models.values():
            assert model.obeyed[-2:] == sorted(model.obeyed[-2:]), "a switch has obeyed a deposed leader"

    def _is_settled(self) -> bool:
        try:
            self._check_end()
        except AssertionError:
            return False
        return True

    @property
    def takeovers(self) -> int:
        return len(set(self.etcd.epochs))

    def _check_end(self) -> None:
        leading = [replica for replica in self.replicas if replica.machine.may_decide(replica.now())]
        assert len(leading) == 1, "nobody leads in the end"
        (leader,) = leading
        kept = self.etcd.records.get("flow", {})
        state = leader.inner._state
        assert {flow.id for flow in state.flows if flow.is_active} == set(kept)
        ports = [stream[0] for record in kept.values() for stream in record["streams"]]
        assert len(set(ports)) == len(ports), "a connection has two flows"
        for client in self.clients:
            lost = set(client.granted.values()) - client.released - set(kept)
            assert not lost, f"granted flows are lost: {lost}"
        for arc in state.live.arcs:
            assert state.flows.load_bps(arc) <= state.allocatable_bps(arc) * (1 + 1e-6), (
                f"{arc} is promised twice"
            )
        for name in NETWORK.switches:
            table = self.switches.tables[NETWORK.datapath_id(name)]
            there = {rule for rule in table.rules.values() if is_flow_cookie(rule.cookie)}
            wanted = {rule for rule in leader.inner._state.pinned_rules(name) if isinstance(rule, Rule)}
            assert there == wanted, f"{name} has other rules than it should have"
        for replica in self.replicas:
            assert replica.log.last == len(self.etcd.told), "a replica does not know what clients were told"
            assert replica.machine.standing in (Standing.FOLLOWER, Standing.LEADER)
            mine = {flow.id: [s.rate_bps for s in flow.streams] for flow in replica.inner._state.flows}
            assert set(mine) == set(kept), "a replica does not follow"
            for flow_id, record in kept.items():
                assert mine[flow_id] == [stream[2] for stream in record["streams"]]
        assert all(
            number == 1
            for token, number in self.answered.items()
            if not any(token in replica.waiting for replica in self.replicas)
        ), "a client got no answer"
