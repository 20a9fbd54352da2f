"""What replicas share: a store and switches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import topologies
from controller.leader.machine import Times
from controller.model import events
from controller.model.event_log import EVENT
from controller.model.messages import DatapathMessage as ToSwitch
from controller.model.records import Holder, RecordChange, Records, Update

if TYPE_CHECKING:
    from tests.fakes.replicated.replica import SimReplica
    from tests.fakes.replicated.world import World

NETWORK = topologies.load("ring:3")
DATAPATHS = tuple(NETWORK.datapath_id(switch) for switch in NETWORK.switches)
TIMES = Times()


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

    def write(self, epoch: int, turn: int, changes: tuple[RecordChange, ...]) -> bool:
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

    def _note_told(self, change: RecordChange) -> None:
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
