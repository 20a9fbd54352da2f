"""One switch's connection until the controller may rely on it: who it is, who decides for it, what it has.

Nothing that a switch says counts before its session is admitted. Two controllers of one switch find out about
each other by OpenFlow's roles: each asks to be master, with a generation id of its term (when it was started)
and a counter that it raises every few seconds. One that meets a generation of another controller stays slave,
changes nothing, and watches the counter: only when it has stood still for long does it become master itself.

Replicas of one controller agree by their store: the generation id is the leader's epoch, others are slaves.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from controller.model.installed import Installed
from controller.openflow import handshake
from controller.openflow.decoding import Malformed, read_refusal, reason_of
from controller.openflow.encoding import VERSION
from controller.openflow.handshake import NO_GENERATION, ControllerRole, PortDescription
from controller.openflow.readback import Readback
from controller.openflow.statistics import MULTIPART_REPLY, REPLY_MORE

_ERROR = 1
_SENT_BY_SWITCHES = frozenset({0, 1, 2, 3, 4, 6, 8, 10, 11, 12, 19, 21, 23, 25, 27})  # `OFPT_*`
_STALE = (11, 0)  # OFPET_ROLE_REQUEST_FAILED, OFPRRFC_STALE

_HANDSHAKE_S = 10.0
"""Time for a switch to complete the handshake."""

_PROGRESS_S = 15.0
_ADMISSION_S = 120.0
"""Then it must go on within the first, and be admitted within the second."""

_BEAT_S = 3.0
_SILENT_S = 10.0
"""Intervals at which a master raises the generation id, and after which a silent one is assumed dead."""

_BEAT_BITS = 26  # of a generation id, below the term: six years
_RELEASED = 2**_BEAT_BITS - 1
"""Counter of a controller that has stopped."""

_REPLICAS = 1 << 63
"""Marks a generation id that is an epoch of replicas."""


class Refused(Exception):
    """A connection that is not served; the reason is a part of a sentence."""


class Stage(Enum):
    """How far a connection has come."""

    HELLO = "hello"
    FEATURES = "features"
    PORTS = "ports"
    ROLE = "role"  # asked which controller is its master
    STANDBY = "standby"  # another one is
    READBACK = "readback"  # asked which rules it has
    COMPLETE = "complete"  # all is known
    ADMITTED = "admitted"  # what it says counts


_HANDSHAKE = (Stage.HELLO, Stage.FEATURES, Stage.PORTS)


class Leadership:
    """This controller as a master of switches.

    Args:
        term: Grows from start to start, and is no other controller's (38 bits).
        earlier: Terms of its earlier runs, which are over.
    """

    def __init__(self, term: int, earlier: frozenset[int] = frozenset()) -> None:
        self.term = term
        self._own = earlier | {term}

    has_beats = True
    """Whether the generation id is raised all the time, so that others see that this controller lives."""

    def may_lead(self, generation: int) -> bool:
        """Return whether a switch with this generation has no other master."""
        is_free = generation == NO_GENERATION or generation & _RELEASED == _RELEASED
        return is_free or generation >> _BEAT_BITS in self._own

    @staticmethod
    def as_slave(generation: int) -> int:
        """Return the generation id with which this controller becomes a slave: that of the master."""
        return generation

    def generation_above(self, generation: int) -> int:
        """Return the first generation id to use at a switch that has another."""
        seen = 0 if generation == NO_GENERATION else generation >> _BEAT_BITS
        if seen == self.term and generation & _RELEASED != _RELEASED:
            return generation + 1
        return max(self.term, seen + 1) << _BEAT_BITS


class ReplicaLeadership(Leadership):
    """This controller as one of several replicas: the generation id is the epoch in which it leads.

    Generation ids of replicas are above those of a controller that is alone (their first bit is set), so that
    a network can be handed over to replicas.
    """

    has_beats = False

    def __init__(self) -> None:
        super().__init__(0)
        self.epoch = 0  # 0: another replica leads

    def may_lead(self, generation: int) -> bool:
        """Return whether this replica leads, and no later leader has been the switch's master."""
        if not self.epoch:
            return False
        return generation == NO_GENERATION or generation <= self.epoch | _REPLICAS

    def generation_above(self, _: int) -> int:
        """Return the generation id of this replica's epoch."""
        return self.epoch | _REPLICAS

    @staticmethod
    def as_slave(generation: int) -> int:
        """Return the generation id with which a slave leaves the way free for the leader's."""
        return _REPLICAS if generation == NO_GENERATION else max(generation, _REPLICAS)


class Session:
    """The protocol from a connection's beginning to its admission, and the roles until its end.

    `may_be` says whether the switch whose certificate has a common name may have a datapath id.
    """

    def __init__(
        self,
        opened_at: float,
        certified: str | None,
        may_be: Callable[[str, int], bool],
        leadership: Leadership,
        new_transaction: Callable[[], int],
    ) -> None:
        self.stage = Stage.HELLO
        self.datapath_id: int | None = None
        self.ports: dict[int, PortDescription] = {}
        self.installed: Installed | None = None  # from `COMPLETE` on, and only if it says so
        self._opened_at = self._progress_at = opened_at
        self._certified = certified
        self._may_be = may_be
        self._leadership = leadership
        self._new_transaction = new_transaction
        self._reading: Readback | None = None
        self._has_read = False
        self._awaited = 0  # transaction of the question that is open
        self._has_roles = True
        self._generation = NO_GENERATION  # ours, or that of the other master
        self._generation_since = opened_at
        self._beat_at = opened_at
        self._watched: set[int] = set()  # ports that the switch has said are live

    @property
    def is_admitted(self) -> bool:
        """Whether what the switch says counts."""
        return self.stage is Stage.ADMITTED

    def begin(self) -> bytes:
        """Return what is sent first."""
        return handshake.hello(self._new_transaction())

    def admit(self) -> None:
        """Rely on the switch from now on."""
        self.stage = Stage.ADMITTED

    def take(self, version: int, kind: int, transaction: int, whole: bytes, now: float) -> bytes:
        """Take a message that is not of an admitted switch's daily work; returns the answer.

        Raises:
            Refused: the connection is not to be served.
            Malformed: switches send no such message here.
        """
        if kind == handshake.HELLO:
            return self._take_hello(version, whole, now)
        if version != VERSION:
            raise Malformed(f"a message of version {version} where OpenFlow 1.3 was agreed on")
        if kind == handshake.FEATURES_REPLY:
            return self._take_features(whole, now)
        if kind == handshake.PORT_STATUS:
            self.take_port_status(whole)
        elif kind == handshake.ROLE_REPLY and transaction == self._awaited:
            return self._take_role(handshake.read_role(whole)[1], now)
        elif kind == _ERROR:
            return self._take_error(transaction, whole, now)
        elif kind == MULTIPART_REPLY and self.stage is Stage.PORTS:
            return self._take_ports(transaction, whole, now)
        elif kind == MULTIPART_REPLY:
            self._take_readback(transaction, whole, now)
        elif kind not in _SENT_BY_SWITCHES:
            raise Malformed(f"a message of type {kind}, which switches do not send")
        return b""

    def expects(self, transaction: int) -> bool:
        """Return whether a question of the session itself has this transaction and is open."""
        return transaction == self._awaited or (
            self._reading is not None and transaction in self._reading.unanswered
        )

    def take_port_status(self, whole: bytes) -> PortDescription | None:
        """Take that a port was added, changed or removed, and return it; None: it is no interface."""
        port = handshake.read_port_status(whole)
        if port is not None:
            self.ports[port.number] = port
        return port

    def is_up(self, port: PortDescription) -> bool:
        """Return whether packets pass a port: it is up, and live where its switch watches the link (BFD)."""
        if port.is_live and not port.is_down:
            self._watched.add(port.number)
        return not port.is_down and (port.is_live or port.number not in self._watched)

    def tick(self, now: float) -> bytes:
        """Return what is due.

        Raises:
            Refused: it takes too long.
        """
        age_s, idle_s = now - self._opened_at, now - self._progress_at
        if self.stage in _HANDSHAKE and age_s >= _HANDSHAKE_S:
            raise Refused(f"it has not said who it is within {_HANDSHAKE_S:g} s")
        if self.stage in (Stage.ROLE, Stage.READBACK) and (idle_s >= _PROGRESS_S or age_s >= _ADMISSION_S):
            raise Refused(f"it has not said what it has within {age_s:.0f} s")
        if not self._has_roles or now < self._beat_at or self.stage in (*_HANDSHAKE, Stage.ROLE):
            return b""
        if not self._leadership.has_beats and self.stage is not Stage.STANDBY:
            return b""
        if self.stage is Stage.STANDBY:
            return self._ask_role(ControllerRole.NO_CHANGE, 0, now)
        self._generation += 1
        return self._ask_role(ControllerRole.MASTER, self._generation, now)

    @property
    def is_reached(self) -> bool:
        """Whether the switch has said who it is."""
        return self.stage in (Stage.STANDBY, Stage.READBACK, Stage.COMPLETE, Stage.ADMITTED)

    def lead(self, now: float) -> bytes:
        """Become the master of a switch that is ready for it."""
        if self.stage is not Stage.STANDBY:
            return b""
        self._generation = self._leadership.generation_above(self._generation)
        return self._ask_role(ControllerRole.MASTER, self._generation, now) + self._begin_to_read(now)

    def follow(self, now: float) -> bytes:
        """Be a slave: what the switch says counts no more."""
        if not self.is_reached:
            return b""
        self.stage, self._reading, self._progress_at, self._opened_at = Stage.ROLE, None, now, now
        return self._ask_role(ControllerRole.NO_CHANGE, 0, now)

    def release(self) -> bytes:
        """Return what lets another controller become master at once."""
        if not self._has_roles or not self.is_admitted or not self._leadership.has_beats:
            return b""
        self._has_roles = False
        return handshake.role_request(
            ControllerRole.MASTER, self._generation | _RELEASED, self._new_transaction()
        )

    def read(self) -> bytes:
        """Ask what a switch has: the answer is in `installed` when `take_reading` says so."""
        self._reading = Readback(self._new_transaction)
        return self._reading.requests

    def take_reading(self) -> bool:
        """Return, once, whether the switch has said what it has."""
        has_read, self._has_read = self._has_read, False
        return has_read

    def _ask(self, stage: Stage, now: float) -> int:
        """Note that a question is asked, and return its transaction."""
        self.stage, self._progress_at = stage, now
        self._awaited = self._new_transaction()
        return self._awaited

    def _take_hello(self, version: int, whole: bytes, now: float) -> bytes:
        if self.stage is not Stage.HELLO:
            raise Malformed("a second hello")
        if not handshake.speaks_our_version(version, whole):
            raise Refused("it does not speak OpenFlow 1.3; for Open vSwitch: protocols=OpenFlow13")
        return handshake.features_request(self._ask(Stage.FEATURES, now))

    def _take_features(self, whole: bytes, now: float) -> bytes:
        if self.stage is not Stage.FEATURES:
            raise Malformed("features that were not asked for")
        datapath_id, auxiliary = handshake.read_features(whole)
        if auxiliary:
            raise Refused("it is an auxiliary connection, and those are not used")
        if self._certified is not None and not self._may_be(self._certified, datapath_id):
            claimed = f"claims datapath id {datapath_id}"
            raise Refused(f"it has the certificate of {self._certified!r} and {claimed}")
        self.datapath_id = datapath_id
        return handshake.ports_request(self._ask(Stage.PORTS, now))

    def _take_ports(self, transaction: int, whole: bytes, now: float) -> bytes:
        if transaction != self._awaited or whole[8:10] != bytes((0, handshake.PORT_DESCRIPTION)):
            raise Malformed("statistics that were not asked for")
        self.ports.update((port.number, port) for port in handshake.read_ports(whole))
        if whole[11] & REPLY_MORE:
            return b""
        self.stage, self._progress_at = Stage.ROLE, now
        return self._ask_role(ControllerRole.NO_CHANGE, 0, now)

    # Roles

    def _ask_role(self, role: ControllerRole, generation: int, now: float) -> bytes:
        self._beat_at = now + _BEAT_S
        self._awaited = self._new_transaction()
        return handshake.role_request(role, generation, self._awaited)

    def _take_role(self, generation: int, now: float) -> bytes:
        if self.stage not in (Stage.ROLE, Stage.STANDBY):
            return b""
        is_silent = (
            self._leadership.has_beats
            and self.stage is Stage.STANDBY
            and now - self._generation_since >= _SILENT_S
        )
        is_same = generation == self._generation
        if self._leadership.may_lead(generation) or (is_silent and is_same):
            self._generation = self._leadership.generation_above(generation)
            return self._ask_role(ControllerRole.MASTER, self._generation, now) + self._begin_to_read(now)
        if self.stage is Stage.STANDBY and is_same:
            return b""
        self._generation, self._generation_since = generation, now
        if self.stage is Stage.STANDBY:
            return b""
        self.stage = Stage.STANDBY
        return self._ask_role(ControllerRole.SLAVE, self._leadership.as_slave(generation), now)

    def _take_error(self, transaction: int, whole: bytes, now: float) -> bytes:
        refusal = read_refusal(whole)
        reading = self._reading
        if transaction == self._awaited and self.stage in _HANDSHAKE:
            raise Refused(f"it does not say who it is: {reason_of(refusal)}")
        if reading is not None and transaction in reading.unanswered:
            self._progress_at = now
            self._finish(reading.refused(transaction))
        elif transaction == self._awaited and (refusal.type, refusal.code) == _STALE:
            self.stage, self._reading, self._progress_at = Stage.ROLE, None, now
            return self._ask_role(ControllerRole.NO_CHANGE, 0, now)  # another controller is master by now
        elif transaction == self._awaited and self._has_roles:
            self._has_roles = False
            return self._begin_to_read(now) if self.stage in (Stage.ROLE, Stage.STANDBY) else b""
        return b""

    # What the switch has

    def _begin_to_read(self, now: float) -> bytes:
        self.stage, self._progress_at = Stage.READBACK, now
        return self.read()

    def _take_readback(self, transaction: int, whole: bytes, now: float) -> None:
        if self._reading is None or transaction not in self._reading.unanswered:
            return
        self._progress_at = now
        self._finish(self._reading.take(transaction, whole))

    def _finish(self, is_complete: bool) -> None:
        if is_complete and self._reading is not None:
            self.installed, self._reading, self._has_read = self._reading.result(), None, True
            if self.stage is Stage.READBACK:
                self.stage = Stage.COMPLETE
