"""One replica of the simulation: the real core and state machine, its queue, its clock, and what it asks."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from controller.api.event_history import EventHistory
from controller.core import Core
from controller.errors import Unavailable
from controller.leader.elector import Elector
from controller.leader.machine import LeaderMachine
from controller.leader.replica import Replica
from controller.loop import refusals
from controller.model import events
from controller.model.client_events import ClientEvent
from controller.model.event_log import EventLog
from controller.model.messages import Abandoned, Acknowledge, Message, Postpone, Reply
from controller.model.messages import DatapathMessage as ToSwitch
from controller.model.records import RecordChange, Update
from controller.model.settings import Counters, Settings
from tests.fakes.replicated.models import DATAPATHS, NETWORK, TIMES

if TYPE_CHECKING:
    from tests.fakes.replicated.world import World

SETTINGS = Settings(
    probe_interval_s=1.0,
    silence_s=1e6,
    counters=Counters(interval_s=0.0),
    switch_grace_s=60.0,
    replicated=True,
)
WRITE_AGAIN_S = 0.3
TICK_S = 0.1


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
        self.waiting: dict[int, Callable[[Reply], None]] = {}
        self.connections: dict[int, int] = {}
        self.announced: dict[int, int] = {}  # by datapath id, as `Switches` does
        self.acknowledged: dict[int, int] = {}
        self.epoch = self.written_epoch = self.turn = 0
        self.heard_at: dict[str, float] = {}
        self.unheard: dict[int, deque[Callable[[], None]]] = {}  # what watches have said, by their numbers
        self.machine = LeaderMachine(TIMES, len(DATAPATHS))
        self.core = Replica(self._new_core, self.machine.deciding_epoch)
        self.elector = Elector(self.machine, self, self.post)
        self.log, self.history = EventLog(), EventHistory("store")
        self.follow()
        for datapath_id in DATAPATHS:
            self.connect(datapath_id)
        self._beat()

    def _new_core(self) -> Core:
        prefix = f"{self.number}.{self.life}.{self.world.rng.getrandbits(32):x}"
        self.inner = Core(NETWORK, SETTINGS, lambda number: f"{prefix}.{number}")
        return self.inner

    def crash(self) -> None:
        """End as by kill -9; clients that wait see the connection end."""
        self.is_alive, self.life = False, self.life + 1
        self.world.etcd.watchers.pop(self, None)
        waiting, self.waiting = self.waiting, {}
        for token, done in waiting.items():
            done(Reply(token, Unavailable("", "the connection ended")))
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

    def follow(self) -> None:
        """Read everything, with the watch from there: in order, held up by partitions."""
        self.epoch = 0
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
        self.epoch = epoch
        for datapath_id in list(self.connections):
            self._take_role(datapath_id)

    # Switches

    def connect(self, datapath_id: int) -> None:
        """Connect to a switch, and be its master if this replica leads."""
        if self.is_alive and self.world.reaches_switch(self, datapath_id):
            self.connections[datapath_id] = self.announced[datapath_id] = next(self.world.numbers)
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
        records = [message for message in messages if isinstance(message, RecordChange)]
        changes = (*records, *self.log.records(told))
        if changes:
            self._write(messages, changes, told)
        else:
            self._send(messages)

    def _write(
        self, messages: list[Message], changes: tuple[RecordChange, ...], told: list[ClientEvent]
    ) -> None:
        epoch, life = self.core.epoch(self.now()), self.life
        self.turn = self.turn + 1 if epoch == self.written_epoch else 1
        self.written_epoch, turn = epoch, self.turn
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
            if accepted and self.core.epoch(self.now()) == epoch:
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
            if not epoch or self.core.epoch(self.now()) != epoch:
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
            if isinstance(message, Reply):
                done = self.waiting.pop(message.token, None)
                if done is not None:  # else it was told already that nobody would answer
                    done(message)
            elif isinstance(message, Abandoned):
                for token in list(self.waiting):
                    self.waiting.pop(token)(Reply(token, Unavailable("", "it leads no more")))
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
