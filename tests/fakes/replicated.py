"""Three replicas, a store, switches and clients in virtual time, with partitions, pauses and crashes.

The replicas are the real core, `Replica`, `Elector` and `LeaderMachine`; the store is a model of etcd
(revisions, leases, guarded transactions, watches in order), the switches are tables with OpenFlow's roles.
`World(seed).run()` raises AssertionError where a promise is broken.
"""

from __future__ import annotations

import heapq
import json
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

import topologies
from controller.api.event_history import EventHistory
from controller.api.schema import parse
from controller.core import Core
from controller.errors import RequestError, Unavailable
from controller.leader.elector import Elector
from controller.leader.machine import LeaderMachine, Standing, Times
from controller.leader.replica import Replica
from controller.loop import refusals
from controller.model import events
from controller.model.client_events import ClientEvent
from controller.model.event_log import EVENT, EventLog
from controller.model.messages import Abandoned, Acknowledge, Answer, Message, Postpone
from controller.model.messages import DatapathMessage as ToSwitch
from controller.model.records import Change, Holder, Records, Update
from controller.model.rules import Rule, is_flow_cookie
from controller.model.settings import Counters, Settings
from controller.model.views import FlowView
from tests.fakes.openflow_table import FakeSwitches

NETWORK = topologies.load("ring:3")
SETTINGS = Settings(
    probe_interval_s=1.0,
    silence_s=1e6,
    counters=Counters(interval_s=0.0),
    switch_grace_s=60.0,
    replicated=True,
)
TIMES = Times()
TROUBLE_S, CALM_S, QUIET_S = 45.0, 25.0, 10.0
"""Trouble, then calm, and in its last part nothing new is asked for."""
RENEW_S, PATIENCE_S = 2.0, 4.0
WRITE_AGAIN_S = 0.3
TICK_S = 0.1
FLOW_BPS = 30e6
DATAPATHS = tuple(NETWORK.datapath_id(switch) for switch in NETWORK.switches)


@dataclass
class Lease:
    ends_at: float


class EtcdModel:
    """Records and the leader's key: every change has a revision, watches hear all of them in order."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._leases: dict[int, Lease] = {}
        self._numbers = count(1)
        self.records: Records = {}
        self.holder: Holder | None = None
        self.revision = 0
        self.turn = 0  # of the last write, in this epoch
        self.epochs: list[int] = []  # of accepted writes, in order
        self.told: list[tuple[Any, ...]] = []  # all events
        self.watchers: dict[SimReplica, int] = {}

    def _changed(self, update: Update) -> None:
        for replica, watch in self.watchers.items():
            replica.hear(update, watch)

    def expire(self) -> None:
        now = self._world.now
        for number in [number for number, lease in self._leases.items() if lease.ends_at <= now]:
            del self._leases[number]
            if self.holder is not None and self.holder.lease == number:
                self._hold(None)

    def _hold(self, holder: Holder | None) -> None:
        self.revision += 1
        self.holder = None if holder is None else Holder(self.revision, holder.lease)
        self._changed(Update(holder=self.holder, is_of_holder=True))

    def grant(self) -> int:
        number = next(self._numbers)
        self._leases[number] = Lease(self._world.now + TIMES.lease_s)
        return number

    def claim(self, lease: int) -> bool:
        if self.holder is not None or lease not in self._leases:
            return False
        self.turn = 0
        self._hold(Holder(0, lease))
        return True

    def renew(self, lease: int) -> bool:
        if lease not in self._leases:
            return False
        self._leases[lease].ends_at = self._world.now + TIMES.lease_s
        return True

    def depose(self, epoch: int) -> None:
        if self.holder is not None and self.holder.epoch == epoch:
            self._hold(None)

    def write(self, epoch: int, turn: int, changes: tuple[Change, ...]) -> bool:
        if self.holder is None or self.holder.epoch != epoch or self.turn not in (turn - 1, turn):
            return False
        if self.turn == turn:
            return True  # it was repeated
        self.revision, self.turn = self.revision + 1, turn
        self.epochs.append(epoch)
        for change in changes:
            self._note_told(change)
            kind = self.records.setdefault(change.kind, {})
            if change.value is None:
                kind.pop(change.key, None)
            else:
                kind[change.key] = json.loads(json.dumps(change.value))
        self._changed(Update(changes))
        return True

    def _note_told(self, change: Change) -> None:
        if change.kind == EVENT and change.value is not None:
            assert change.value["number"] == len(self.told) + 1, "the log has a gap, or a number twice"
            self.told += [tuple(each) for each in json.loads(json.dumps(change.value["told"]))]


class SwitchModel:
    """A switch's roles: one master, by the highest generation id; its rules are in `FakeSwitches`."""

    def __init__(self, world: World, datapath_id: int) -> None:
        self._world = world
        self.datapath_id = datapath_id
        self.generation = -1
        self.master: tuple[SimReplica, int] | None = None
        self.obeyed: list[int] = []  # the generations of masters that changed something

    def ask_for_role(self, replica: SimReplica, connection: int, generation: int) -> bool:
        if generation < self.generation:
            return False
        self.generation, self.master = generation, (replica, connection)
        return True

    def take(self, replica: SimReplica, connection: int, message: ToSwitch) -> events.Event | None:
        if self.master != (replica, connection):
            return None  # refused
        self.obeyed.append(self.generation)
        return self._world.switches.carry_out(message, self._world.now)


@dataclass
class Client:
    """Asks for flows, each from a port of its own, renews them, and releases some."""

    number: int
    replica: int = 0  # the one that it asks
    wanted: dict[int, dict[str, Any]] = field(default_factory=dict)  # by source port
    granted: dict[int, str] = field(default_factory=dict)  # ids by source port
    released: set[str] = field(default_factory=set)
    seen: int = 0  # the number of the last event


class SimReplica:
    """One process: its queue, its clock, what it has asked; `life` ends with a crash."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.rate = 1 + world.rng.uniform(-1, 1) * TIMES.drift * 0.45
        self.offset = world.rng.uniform(0, 1000)
        self.life, self.watch = 0, 0
        self.is_alive = False
        self.paused_until = 0.0
        self.start()

    def now(self) -> float:
        return self.offset + self.rate * self.world.now

    def start(self) -> None:
        self.is_alive = True
        self.deferred: list[Callable[[], None]] = []
        self.inbox: deque[events.Event] = deque()
        self.writing = False
        self.waiting: dict[int, Callable[[Answer], None]] = {}
        self.connections: dict[int, int] = {}
        self.announced: dict[int, int] = {}  # by datapath id, as `Switches` does
        self.acknowledged: dict[int, int] = {}
        self.epoch = self.turn = 0
        self.heard_at: dict[str, float] = {}
        self.unheard: dict[int, deque[Callable[[], None]]] = {}  # what watches have said, by their numbers
        self.machine = LeaderMachine(TIMES, len(DATAPATHS))
        self.core = Replica(self._new_core, self.machine.may_decide)
        self.elector = Elector(self.machine, self, self.post)
        self.log, self.history = EventLog(), EventHistory("store")
        self.begin_again()
        for datapath_id in DATAPATHS:
            self.connect(datapath_id)
        self._beat()

    def _new_core(self) -> Core:
        prefix = f"{self.number}.{self.life}.{self.world.rng.getrandbits(32):x}"
        self.inner = Core(NETWORK, SETTINGS, lambda number: f"{prefix}.{number}")
        return self.inner

    def crash(self) -> None:
        """End as by kill -9; whoever waits sees the connection end."""
        self.is_alive, self.life = False, self.life + 1
        self.world.etcd.watchers.pop(self, None)
        waiting, self.waiting = self.waiting, {}
        for token, done in waiting.items():
            done(Answer(token, Unavailable("", "the connection ended")))
        epoch = self.machine.epoch
        for other in self.world.replicas if epoch else ():
            if other is not self and self.world.rng.random() < 0.7:
                other.after(self.world.delay(), partial(other.hear_end_of, epoch))

    def hear_end_of(self, epoch: int) -> None:
        self.elector.do(self.machine.leader_gone(epoch))

    # Time

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        """Do something later, in this life; while the process is paused it waits."""
        life = self.life

        def due() -> None:
            if self.life != life or not self.is_alive:
                return
            if self.world.now < self.paused_until:
                self.deferred.append(due)
            else:
                call()

        self.world.at(self.world.now + seconds, due)

    def pause(self, seconds: float) -> None:
        self.paused_until = self.world.now + seconds
        self.world.at(self.paused_until, self._resume)

    def _resume(self) -> None:
        if self.world.now >= self.paused_until:
            deferred, self.deferred = self.deferred, []
            for call in deferred:
                call()

    def _beat(self) -> None:
        connected = len(self.connections)
        self.elector.do(self.machine.switches_seen(connected, self.now()))
        self.elector.do(self.machine.tick(self.now()))
        self.pump()
        self.after(TICK_S, self._beat)

    # The store, as `Operations`

    def _ask(self, question: Callable[[], Any], answered: Callable[[Any], None]) -> None:
        """Ask the store: question and answer take time, and either may be lost."""
        world = self.world
        life = self.life

        def arrive() -> None:
            if not world.reaches_store(self):
                return
            result = question()
            if world.rng.random() < world.loss:
                return
            if self.life == life:
                self.after(world.delay(), lambda: answered(result) if world.reaches_store(self) else None)

        if world.rng.random() >= world.loss:
            world.at(world.now + world.delay(), arrive)
        if world.rng.random() < world.loss:  # repeated: the answer to one of them counts
            world.at(world.now + 4 * world.delay(), lambda: world.reaches_store(self) and question())

    def claim(self) -> None:
        asked_at = self.now()

        def granted(lease: int) -> None:
            self.machine.lease_granted(lease, asked_at)
            self._ask(lambda: self.world.etcd.claim(lease), claimed)

        def claimed(is_ours: bool) -> None:
            if not is_ours:
                self.machine.claim_refused()

        self._ask(self.world.etcd.grant, granted)
        self.after(TIMES.retry_s, self.machine.claim_refused)

    def renew(self, lease: int) -> None:
        asked_at = self.now()

        def answered(goes_on: bool) -> None:
            renewed = self.machine.lease_renewed(lease, asked_at, self.now()) if goes_on else None
            self.elector.do(self.machine.lease_ended(lease) if renewed is None else renewed)

        self._ask(lambda: self.world.etcd.renew(lease), answered)

    def depose(self, epoch: int) -> None:
        self._ask(lambda: self.world.etcd.depose(epoch), lambda _: None)

    def begin_again(self) -> None:
        """Read everything, with the watch from there: in order, held up by partitions."""
        self.watch += 1
        self.world.etcd.watchers.pop(self, None)
        watch = self.watch

        def read() -> None:
            if watch != self.watch:
                return
            if not self.world.reaches_store(self):
                self.after(0.2, read)
                return
            etcd = self.world.etcd
            etcd.watchers[self] = watch
            records, holder = json.loads(json.dumps(etcd.records)), etcd.holder
            self._in_order(lambda: self.elector.read(records, holder, self.now()), watch)

        self.after(self.world.delay(), read)

    def hear(self, update: Update, watch: int) -> None:
        self._in_order(lambda: self.elector.updated(update, self.now()), watch)

    def _in_order(self, call: Callable[[], None], watch: int) -> None:
        """Deliver in order, after a delay; a partition holds up what is under way."""
        self.unheard.setdefault(watch, deque()).append(call)
        self.after(self._next("watch") - self.world.now, lambda: self._deliver(watch))

    def _deliver(self, watch: int) -> None:
        if watch != self.watch:
            return
        if not self.world.reaches_store(self):
            self.after(0.1, lambda: self._deliver(watch))
            return
        self.unheard[watch].popleft()()
        self.pump()

    def _next(self, stream: str) -> float:
        """Return when the next message of a stream arrives: after all before it."""
        at = max(self.world.now + self.world.delay(), self.heard_at.get(stream, 0.0) + 1e-6)
        self.heard_at[stream] = at
        return at

    def lead(self, epoch: int) -> None:
        self.epoch, self.turn = epoch, 0

    def take_switches(self, epoch: int) -> None:
        for datapath_id in list(self.connections):
            self._take_role(datapath_id)

    def stop_leading(self) -> None:
        self.epoch = 0

    # Switches

    def connect(self, datapath_id: int) -> None:
        """Connect to a switch, and be its master if this replica leads."""
        if self.is_alive and self.world.reaches_switch(self, datapath_id):
            self.connections[datapath_id] = next(self.world.numbers)
            if self.epoch:
                self._take_role(datapath_id)

    def disconnect(self, datapath_id: int) -> None:
        if self.connections.pop(datapath_id, None) is not None and self.is_alive:
            self.post(events.SwitchDisconnected(datapath_id))

    def _take_role(self, datapath_id: int) -> None:
        epoch, switch = self.epoch, self.world.models[datapath_id]
        connection = self.connections[datapath_id]

        def arrive() -> events.Event | None:
            if not switch.ask_for_role(self, connection, epoch):
                return None
            installed = self.world.switches.tables[datapath_id].installed()
            (connected,) = (
                each for each in self.world.switches.connections() if each.datapath_id == datapath_id
            )
            number = next(self.world.numbers)
            return replace(connected, installed=installed, announcement=number)

        self._to_switch(datapath_id, arrive)

    def _to_switch(self, datapath_id: int, arrive: Callable[[], events.Event | None]) -> None:
        """Send to a switch in order; what it answers comes back; a connection that ended carries nothing."""
        world, connection = self.world, self.connections.get(datapath_id)
        if connection is None:
            return
        at, life = self._next(f"to {datapath_id}"), self.life

        def due() -> None:
            # What a process has sent arrives, also while it is paused or when it has ended.
            if self.connections.get(datapath_id) != connection and self.life == life:
                return
            answer = arrive()
            if answer is not None and self.life == life:
                after_s = self._next(f"from {datapath_id}") - world.now
                self.after(after_s, lambda: self._hear_switch(datapath_id, connection, answer))

        world.at(at, due)

    def _hear_switch(self, datapath_id: int, connection: int, event: events.Event) -> None:
        if self.connections.get(datapath_id) == connection:
            if isinstance(event, events.SwitchConnected):
                self.announced[datapath_id] = event.announcement
            self.post(event)

    # The loop

    def post(self, event: events.Event) -> None:
        self.inbox.append(event)
        self.after(0.0, self.pump)

    def pump(self) -> None:
        """Run the core until it waits for the store or for something to happen."""
        while self.is_alive and not self.writing and self.world.now >= self.paused_until:
            if self.inbox:
                event = self.inbox.popleft()
            else:
                due = self.core.next_deadline()
                if due is None or due > self.now():
                    return
                event = events.TimePassed()
            if isinstance(event, events.RecordsRead | events.RecordsChanged):
                self._tell(self.log.follow(event.changes))
            self._carry_out(self.core.handle(event, self.now()))

    def _tell(self, told: list[ClientEvent]) -> None:
        for each in told:
            self.history.append(each)

    def _carry_out(self, messages: list[Message]) -> None:
        told = self.log.numbered(messages, self.world.now)
        records = [message for message in messages if isinstance(message, Change)]
        changes = (*records, *self.log.records(told))
        if changes:
            self._write(messages, changes, told)
        else:
            self._send(messages)

    def _write(self, messages: list[Message], changes: tuple[Change, ...], told: list[ClientEvent]) -> None:
        epoch, life = self.epoch, self.life
        self.turn += 1
        turn = self.turn
        self.writing, is_open = True, [True]
        if self.world.happens("crash before a write"):
            self.crash()
            return

        def done(accepted: bool) -> None:
            if not is_open or self.life != life:
                return
            is_open.clear()
            self.writing = False
            if accepted and self.world.happens("crash after a write"):
                self.crash()
                return
            if accepted and self.machine.may_decide(self.now()):
                self.log.took(told)
                self._tell(told)
                self._send(messages)
            else:
                self._send(refusals(messages))
                self.elector.do(self.machine.write_refused())
            self.pump()

        def attempt() -> None:
            if not is_open:
                return
            if not self.machine.may_decide(self.now()):
                done(False)
                return
            self._ask(lambda: self.world.etcd.write(epoch, turn, changes), done)
            self.after(WRITE_AGAIN_S, attempt)

        attempt()

    def _send(self, messages: list[Message]) -> None:
        if self.world.happens("pause while messages are sent"):
            self.pause(20.0)
            self.after(0.0, lambda: self._send_now(messages))
        else:
            self._send_now(messages)

    def _send_now(self, messages: list[Message]) -> None:
        for message in messages:
            if not self.is_alive:
                return
            if isinstance(message, Answer):
                done = self.waiting.pop(message.token, None)
                if done is not None:  # else it was told already that nobody would answer
                    done(message)
            elif isinstance(message, Abandoned):
                for token in list(self.waiting):
                    self.waiting.pop(token)(Answer(token, Unavailable("", "it leads no more")))
            elif isinstance(message, Postpone):
                self.inbox.extendleft(reversed(message.events))
            elif isinstance(message, ToSwitch):
                self._obey(message)
        self.core.sent(self.now())

    def _obey(self, message: ToSwitch) -> None:
        datapath_id = message.datapath_id
        connection = self.connections.get(datapath_id)
        if isinstance(message, Acknowledge):
            self.acknowledged[datapath_id] = message.announcement
        elif connection is not None and self.acknowledged.get(datapath_id) == self.announced.get(datapath_id):
            model = self.world.models[datapath_id]
            self._to_switch(datapath_id, partial(model.take, self, connection, message))


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

        def answered(answer: Answer) -> None:
            self.answered[token] += 1
            assert self.answered[token] == 1, "two answers"
            if isinstance(answer.result, Unavailable):
                client.replica = (client.replica + 1) % len(self.replicas)
            done(answer.result)

        if not replica.is_alive:
            answered(Answer(token, Unavailable("", "nobody listens")))
            return
        replica.waiting[token] = answered
        replica.post(event(token))
        self.at(self.now + PATIENCE_S, lambda: self._lose_patience(client, replica, token))

    def _lose_patience(self, client: Client, replica: SimReplica, token: int) -> None:
        if self.answered[token] == 0 and self.replicas[client.replica] is replica:
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
