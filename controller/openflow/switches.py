"""All switches: what those that are admitted say becomes events, and the core's messages become OpenFlow."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from itertools import count

from controller.logs import SparingLog
from controller.model import events, lldp
from controller.model.messages import (
    Acknowledge,
    CloseConnection,
    DatapathMessage,
    IntroduceSwitch,
    ReadCounters,
    ReadInstalled,
)
from controller.model.packet_limits import PortLimits
from controller.openflow.connection import Connection
from controller.openflow.counters import CounterReading
from controller.openflow.decoding import read_expired, read_packet_in, read_refusal, reason_of
from controller.openflow.encoding import OWN_TRANSACTIONS, VERSION, encode
from controller.openflow.handshake import PORT_STATUS
from controller.openflow.session import Leadership, Refused, Session, Stage
from controller.openflow.statistics import MULTIPART_REPLY, Reading

LOG = logging.getLogger("controller.openflow")

_ERROR, _PACKET_IN, _FLOW_REMOVED, _BARRIER_REPLY = 1, 10, 11, 21

_ECHO_TIMEOUT_S = 1.0
_QUIET_S = 0.25
_SILENT_S = 1.5
"""Where there are replicas, a switch that says nothing for the first is asked whether it is there, and after
the second it does not count as reached: the network between may be cut, and another replica may reach it."""

"""Time for a switch to answer when another connection claims its datapath id."""


class Switches:
    """Posts what switches say and sends them what the core wants."""

    def __init__(
        self,
        post: Callable[..., None],
        lldp_key: bytes,
        leadership: Leadership,
        may_be: Callable[[str, int], bool] = lambda *_: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._post = post
        self._lldp_key = lldp_key
        self._leadership = leadership
        self._may_be = may_be
        self._clock = clock
        self._limits = PortLimits()
        self._log = SparingLog(LOG)
        self._events: list[events.Event] = []  # of this round of reading
        self._sessions: dict[Connection, Session] = {}
        self._admitted: dict[int, Connection] = {}
        self._held: dict[int, Connection] = {}  # those that another controller is master of
        # By the admitted connection: since when, and which others claim its datapath id.
        self._claims: dict[Connection, tuple[float, list[Connection]]] = {}
        self._refusals: Counter[tuple[int, str]] = Counter()  # errors that belong to no rules
        self._reached: dict[Connection, int] = {}  # datapath ids of those that have said who they are
        # By datapath id: the last announcement, and the last one that the core has acknowledged.
        self._announced: dict[int, int] = {}
        self._acknowledged: dict[int, int] = {}
        self._announcements = count(1)
        self._transactions = count(1)
        self._unsent: dict[Connection, list[bytes]] = {}
        self._introduced: set[Connection] = set()  # those that are to be announced as if they were new
        self._counting: dict[Connection, CounterReading] = {}  # those that have not said all yet

    # From the core's thread

    def send(self, message: DatapathMessage) -> None:
        """Carry out a message, at the latest with `flush`; one for a switch that has gone is dropped.

        The loss of a switch is an event of its own. So is its return: what was decided before the core has
        heard of that is for a switch that had other rules, and is dropped too.
        """
        datapath_id = message.datapath_id
        if isinstance(message, Acknowledge):
            self._acknowledged[datapath_id] = message.announcement
            return
        connection = self._admitted.get(datapath_id)
        if connection is None:
            return
        if isinstance(message, CloseConnection):
            LOG.error("datapath %d is disconnected: %s", message.datapath_id, message.reason)
            self._unsent.pop(connection, None)
            connection.close()
        elif self._acknowledged.get(datapath_id) == self._announced.get(datapath_id):
            self._unsent.setdefault(connection, []).append(self._encoded(connection, message))

    def _encoded(self, connection: Connection, message: DatapathMessage) -> bytes:
        if isinstance(message, ReadCounters):
            counting = CounterReading(self._transaction, message.pinned, message.groups)
            self._counting[connection] = counting
            return counting.requests
        if isinstance(message, IntroduceSwitch):
            self._introduced.add(connection)
        if isinstance(message, ReadInstalled | IntroduceSwitch):
            session = self._sessions.get(connection)
            return b"" if session is None else session.read()
        return encode(message, self._transaction())

    def flush(self) -> None:
        """Send what is unsent: one call a switch, however many messages there are."""
        unsent, self._unsent = self._unsent, {}
        for connection, parts in unsent.items():
            connection.send(b"".join(parts))

    def _transaction(self) -> int:
        return next(self._transactions) & 0xFFFF_FFFF | OWN_TRANSACTIONS

    # From the thread that reads

    def opened(self, connection: Connection) -> None:
        """Begin with a new connection."""
        session = Session(
            self._clock(), connection.certified, self._may_be, self._leadership, self._transaction
        )
        self._sessions[connection] = session
        connection.send(session.begin())

    def received(
        self, connection: Connection, version: int, kind: int, transaction: int, whole: bytes
    ) -> None:
        """Take a message; what is wrong with it is raised, and ends the connection."""
        session = self._sessions[connection]
        if (
            session.is_admitted
            and version == VERSION
            and self._take(connection, session, kind, transaction, whole)
        ):
            return
        now = self._clock()
        self._say(connection, lambda: session.take(version, kind, transaction, whole, now))
        connection.id = session.datapath_id
        self._follow(connection, session)

    def closed(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        session = self._sessions.pop(connection, None)
        self._introduced.discard(connection)
        self._reached.pop(connection, None)
        self._counting.pop(connection, None)
        if session is not None:
            self._leave(connection)
            self._let_go(connection)

    def hand_over(self) -> None:
        """Post what has been taken since the last time, and do what is due.

        The core is woken once for all switches that have answered, not for each.
        """
        if self._events:
            taken, self._events = self._events, []
            self._post(*taken)

    def tick(self, now: float) -> None:
        """Do what is due: questions of roles, deadlines, and claims that can be decided."""
        for connection, session in list(self._sessions.items()):
            self._say(connection, lambda session=session: session.tick(now))  # type: ignore[misc]
        for connection in () if self._leadership.has_beats else self._reached:
            if now - connection.heard_at >= _QUIET_S:
                connection.ask_for_echo()
        overdue = [each for each, (since, _) in self._claims.items() if now - since >= _ECHO_TIMEOUT_S]
        for former in overdue:
            if former in self._claims:
                self._decide(former)
        refusals, self._refusals = self._refusals, Counter()
        self._events += [events.MessagesRefused(*key, number) for key, number in refusals.items()]

    def lead(self) -> None:
        """Become the master of all switches that are connected."""
        self._held.clear()  # that another decides for them is reported, now that it matters
        self._each(lambda session, now: session.lead(now))

    def follow(self) -> None:
        """Be the master of no switch any more."""
        self._each(lambda session, now: session.follow(now))

    def _each(self, do: Callable[[Session, float], bytes]) -> None:
        now = self._clock()
        for connection, session in list(self._sessions.items()):
            self._say(connection, lambda session=session: do(session, now))  # type: ignore[misc]
            self._counting.pop(connection, None)
            self._follow(connection, session)

    def reached(self) -> frozenset[int]:
        """Return the datapath ids of the switches that are heard, in whatever role; from any thread."""
        heard_since = self._clock() - _SILENT_S
        return frozenset(id_ for each, id_ in self._reached.copy().items() if each.heard_at >= heard_since)

    def release(self) -> None:
        """Let other controllers become master of all switches at once."""
        for connection, session in list(self._sessions.items()):
            connection.send(session.release())

    def _say(self, connection: Connection, answer: Callable[[], bytes]) -> None:
        """Send what a session answers; one that refuses the switch ends the connection."""
        try:
            connection.send(answer())
        except Refused as refused:
            self._refuse(connection, str(refused))

    def _refuse(self, connection: Connection, reason: str) -> None:
        self._log.warning(reason, "the switch at %s is disconnected: %s", connection.address, reason)
        connection.close()

    def _follow(self, connection: Connection, session: Session) -> None:
        """Take what a message has changed about the connection itself."""
        stage, datapath_id = session.stage, session.datapath_id
        if datapath_id is None:
            return
        self._note_role(connection, session, datapath_id)
        if stage is not Stage.ADMITTED:
            self._leave(connection)
        if not session.take_reading():
            return
        if stage is Stage.ADMITTED:
            self._take_installed(connection, datapath_id, session)
            return
        former = self._admitted.get(datapath_id)
        if former is None or former.is_over:
            self._admit(connection, session)
            return
        if former not in self._claims:
            self._claims[former] = self._clock(), []
            former.ask_for_echo()
        self._claims[former][1].append(connection)

    def _take_installed(self, connection: Connection, datapath_id: int, session: Session) -> None:
        """Hand over what an admitted switch has."""
        if connection in self._introduced:
            self._introduced.discard(connection)
            self._announce(datapath_id, session)
        elif session.installed is not None:
            self._events.append(events.InstalledRead(datapath_id, session.installed))

    def _note_role(self, connection: Connection, session: Session, datapath_id: int) -> None:
        stage = session.stage
        if session.is_reached:
            self._reached[connection] = datapath_id
        if stage is Stage.STANDBY and self._held.get(datapath_id) is not connection:
            self._held[datapath_id] = connection
            self._events.append(events.SwitchHeld(datapath_id, True))
        elif stage is not Stage.STANDBY:
            self._let_go(connection)

    def _decide(self, former: Connection) -> None:
        """Keep the one that was there if it has said something; else the first that claims its id is it."""
        since, claimants = self._claims[former]
        if former.heard_at > since and not former.is_over:
            del self._claims[former]
            self._refuse_all(claimants, former.id)
        else:
            former.close()
            self._leave(former)

    def _refuse_all(self, claimants: Iterable[Connection], datapath_id: int | None) -> None:
        for each in claimants:
            self._refuse(each, f"another switch with datapath id {datapath_id} is connected")

    def _admit(self, connection: Connection, session: Session) -> None:
        if session.datapath_id is None or session.stage is not Stage.COMPLETE:
            return
        session.admit()
        connection.is_known()
        # Announced first: what is sent meanwhile was decided for the connection before.
        self._announce(session.datapath_id, session)
        self._admitted[session.datapath_id] = connection

    def _announce(self, datapath_id: int, session: Session) -> None:
        ports = session.ports.values()
        live = frozenset(port.number for port in ports if session.is_up(port))
        names = tuple((port.number, port.name) for port in ports)
        number = self._announced[datapath_id] = next(self._announcements)
        self._events.append(events.SwitchConnected(datapath_id, live, session.installed, names, number))

    def _leave(self, connection: Connection) -> None:
        """Rely on a connection no more."""
        datapath_id = connection.id
        if datapath_id is None or self._admitted.get(datapath_id) is not connection:
            return
        del self._admitted[datapath_id]
        self._limits.forget(datapath_id)
        self._events.append(events.SwitchDisconnected(datapath_id))
        _, claimants = self._claims.pop(connection, (0.0, []))
        waiting = [each for each in claimants if each in self._sessions and not each.is_over]
        for each in waiting[:1]:
            self._admit(each, self._sessions[each])
        self._refuse_all(waiting[1:], datapath_id)

    def _let_go(self, connection: Connection) -> None:
        if connection.id is not None and self._held.get(connection.id) is connection:
            del self._held[connection.id]
            self._events.append(events.SwitchHeld(connection.id, False))

    # What admitted switches say

    def _take(
        self, connection: Connection, session: Session, kind: int, transaction: int, whole: bytes
    ) -> bool:
        """Take a message of a switch's daily work; returns False for one that is none."""
        datapath_id = session.datapath_id
        assert datapath_id is not None
        if kind == _BARRIER_REPLY:
            self._events.append(events.BarrierReceived(datapath_id, transaction))
        elif kind == _PACKET_IN:
            self._take_packet(datapath_id, *read_packet_in(whole))
        elif kind == _FLOW_REMOVED:
            ip = read_expired(whole)
            if ip is not None:
                self._events.append(events.RuleExpired(datapath_id, ip))
        elif kind == PORT_STATUS:
            port = session.take_port_status(whole)
            if port is not None:
                change = events.PortCameUp if session.is_up(port) else events.PortWentDown
                self._events.append(change(datapath_id, port.number))
        elif kind == MULTIPART_REPLY and transaction in _open(self._counting.get(connection)):
            self._take_counters(connection, datapath_id, transaction, whole)
        elif kind == _ERROR and not session.expects(transaction):
            self._take_error(connection, datapath_id, transaction, whole)
        else:
            return False
        return True

    def _take_counters(
        self, connection: Connection, datapath_id: int, transaction: int, whole: bytes
    ) -> None:
        """Take a part of what a switch has counted, and hand over what is complete."""
        reading = self._counting[connection]
        if reading.take(transaction, whole):
            del self._counting[connection]
            self._events.append(
                events.CountersRead(
                    datapath_id,
                    self._clock(),
                    reading.ports,
                    reading.pinned,
                    reading.messages,
                    reading.rules,
                    reading.dropped,
                )
            )

    def _take_error(self, connection: Connection, datapath_id: int, transaction: int, whole: bytes) -> None:
        refusal = read_refusal(whole)
        reason = reason_of(refusal)
        if transaction in _open(self._counting.get(connection)):
            del self._counting[connection]
            self._events.append(events.CountersRefused(datapath_id, reason))
        elif transaction < OWN_TRANSACTIONS:
            self._events.append(
                events.RulesRefused(datapath_id, transaction, reason, refusal.cookie, refusal.is_table_full)
            )
        else:
            self._refusals[datapath_id, reason] += 1

    def _take_packet(self, datapath_id: int, port: int, frame: bytes) -> None:
        """Hand a discovery packet or ARP over, unless its port has sent too many."""
        if not self._limits.allows(datapath_id, port, self._clock()):
            return
        tail = lldp.parse(frame, self._lldp_key)
        if tail is None:
            self._events.append(events.PacketArrived(datapath_id, port, frame))
        else:
            self._events.append(events.LinkDiscovered(*tail, datapath_id, port))


def _open(reading: Reading | None) -> Collection[int]:
    """Return the transactions of a reading that are still to be answered."""
    return () if reading is None else reading.unanswered
