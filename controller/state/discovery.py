"""When to probe which port for links, and when a link that gives no answer is lost.

A probe is an LLDP packet out of a port; the switch at the other end hands it to the controller. Silence alone
says little: on a busy machine the controller may not have asked, or no switch found time to answer. So a link
is lost only after several probes that were really sent, and while other links do answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from controller.model.journal import Journaled, JournaledDict

Port = tuple[int, int]
"""Datapath id and port number."""

Link = tuple[Port, Port]
"""The port that a probe leaves by, and the one where it arrives."""

MAX_PROBES_PER_S = 1000
"""Larger networks are probed less often: what discovery costs is bounded, how soon it notices is not."""

_SLICE_S = 0.02
"""Time between the slices in which ports are probed."""

_SLICES = 5
"""A slice has no more than this part of all ports."""

_UNANSWERED = 4
"""Probes without an answer, at least, until a link is lost."""

_LONG_SILENCE_S = 30.0
"""Timeout where more links are silent than answer, as on a machine that is too busy."""

_RECENT_PROBES = 3
"""A link answers if one of this number of its last probes came back."""


@dataclass
class _Answers(Journaled):
    """When a link's last probe arrived, and how many have been sent since."""

    heard_at: float
    unanswered: int = 0

    @property
    def is_answering(self) -> bool:
        """Whether one of its last probes came back."""
        return self.unanswered < _RECENT_PROBES


class Discovery(Journaled):
    """Counts probes and answers; the times it is given never go back.

    A round over all ports takes the interval, or so long that there are no more than `MAX_PROBES_PER_S`. What
    a link has answered is looked at when it is probed again, so each probe costs the same in any network. A
    link that goes silent is lost after `silence_s`, and at the latest at its fifth probe: with P ports after
    max(silence_s, 5 * P / MAX_PROBES_PER_S).
    """

    def __init__(self, interval_s: float, silence_s: float) -> None:
        self._interval_s = interval_s
        self._silence_s = silence_s
        self._ports: JournaledDict[Port, None] = JournaledDict()
        self._order: tuple[Port, ...] | None = None  # of the ports, until they change
        self._at_once: JournaledDict[Port, None] = JournaledDict()
        # By tail, then head.
        self._links: JournaledDict[Port, JournaledDict[Port, _Answers]] = JournaledDict()
        self._tails: JournaledDict[Port, JournaledDict[Port, None]] = JournaledDict()  # by head
        self._known = 0
        self._answering = 0
        self._next = 0  # place in the order
        self._due = -math.inf
        self._sliced_at = -math.inf
        self._owed = 0.0  # probes
        self._suspects: JournaledDict[Link, None] = JournaledDict()
        self._busy = False

    def set_times(self, interval_s: float, silence_s: float) -> None:
        """Set the probe interval and the time after which a silent link is lost."""
        self._interval_s, self._silence_s = interval_s, silence_s

    def add(self, port: Port) -> None:
        """Begin to probe a port that came up, at once; one that was up keeps its links."""
        if port not in self._ports:
            self._ports[port] = None
            self._order = None
        self._at_once[port] = None

    def remove(self, port: Port) -> None:
        """Probe a port that went down no more, and forget its links."""
        if port in self._ports:
            del self._ports[port]
            self._order = None
        for head in list(self._links.get(port, ())):
            self._forget(port, head)
        for tail in list(self._tails.get(port, ())):
            self._forget(tail, port)

    def heard(self, tail: Port, head: Port, now: float) -> None:
        """Record that a probe arrived; the way back is probed at once if it is not known yet."""
        self.expect(tail, head, now)
        if tail not in self._links.get(head, ()):
            self._at_once[head] = None

    def expect(self, tail: Port, head: Port, now: float) -> None:
        """Take a link for known from now on: it is lost if no probe arrives."""
        heads = self._links.setdefault(tail, JournaledDict())
        answers = heads.get(head)
        if answers is None:
            heads[head] = _Answers(now)
            self._tails.setdefault(head, JournaledDict())[tail] = None
            self._known += 1
            self._answering += 1
        else:
            self._answering += not answers.is_answering
            answers.heard_at, answers.unanswered = now, 0
            self._suspects.pop((tail, head), None)

    def _forget(self, tail: Port, head: Port) -> None:
        self._answering -= self._links[tail][head].is_answering
        self._known -= 1
        del self._links[tail][head]
        del self._tails[head][tail]
        self._suspects.pop((tail, head), None)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        if self._at_once:
            return -math.inf
        return self._due if self._ports else None

    def tick(self, now: float) -> list[Port]:
        """Return the ports to send a probe out of now."""
        ports = [port for port in self._at_once if port in self._ports]
        self._at_once.clear()
        if now >= self._due:
            ports += self._slice(now)
            ports = list(dict.fromkeys(ports))
        for port in ports:
            for head, answers in self._links.get(port, JournaledDict()).items():
                was_answering = answers.is_answering
                answers.unanswered += 1
                self._answering -= was_answering and not answers.is_answering
                if answers.unanswered >= _UNANSWERED:
                    self._suspects[port, head] = None
        return ports

    def _slice(self, now: float) -> tuple[Port, ...]:
        """Return the next ports of the round, as many as are due until the next time."""
        if self._order is None:
            self._order = tuple(self._ports)
        order, count_all = self._order, max(1, len(self._order))
        round_s = max(self._interval_s, count_all / MAX_PROBES_PER_S)
        # What a stall has missed is not made up for in one burst.
        elapsed_s = min(now - self._sliced_at, max(_SLICE_S, round_s / _SLICES))
        self._owed += count_all * elapsed_s / round_s
        count = min(int(self._owed), count_all)
        self._owed -= count
        self._sliced_at = now
        self._due = now + max(_SLICE_S, round_s / count_all)
        start = self._next % count_all
        self._next = start + count
        return order[start : start + count] + order[: max(0, start + count - count_all)]

    def take_lost(self, now: float) -> list[Link]:
        """Return the links that are lost now, and forget them."""
        was_busy, self._busy = self._busy, 2 * self._answering < self._known
        if was_busy and not self._busy:
            # Those that have not been asked again since are as good as those that have.
            for tail, head in list(self._suspects):
                self._answering += not self._links[tail][head].is_answering
                self._links[tail][head].unanswered = 0
            self._suspects.clear()
        patience_s = _LONG_SILENCE_S if self._busy else self._silence_s
        lost = [
            (tail, head)
            for tail, head in self._suspects
            if now - self._links[tail][head].heard_at >= patience_s
        ]
        for tail, head in lost:
            self._forget(tail, head)
        return lost
