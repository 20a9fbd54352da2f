"""When to probe which port for links, and when a link that gives no answer is lost.

A probe is an LLDP packet out of a port; the switch at the other end hands it to the controller. Silence alone
says little: on a busy machine the controller may not have asked, or no switch found time to answer. So a link
is lost only after several probes that were really sent, and while other links do answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from controller.core.journal import Journaled, JournaledDict

__all__ = ["Discovery", "Link", "Port"]

Port = tuple[int, int]
"""Datapath id and port number."""

Link = tuple[Port, Port]
"""The port that a probe leaves by, and the one where it arrives."""

_MAX_PROBES_PER_S = 250
"""Larger networks are probed less often."""

_SLICES = 5
"""A round over all ports is sent in so many parts."""

_UNANSWERED = 4
"""A link is lost after a while without an answer, to so many probes at least."""

_LONG_SILENCE_S = 30.0
"""So long where more links are silent than answer: it looks like a machine that is too busy."""

_LATELY = 3
"""A link answers if one of its last probes, so many, came back."""


@dataclass
class _Answers(Journaled):
    """When a link's last probe arrived, and how many have been sent since."""

    heard_at: float
    unanswered: int = 0


class Discovery(Journaled):
    """Counts probes and answers; the times it is given never go back.

    Args:
        interval_s: Each port is probed so often, unless there are too many of them.
        silence_s: A link that has not answered for so long, nor the last probes, is lost.
    """

    def __init__(self, interval_s: float, silence_s: float) -> None:
        self._interval_s = interval_s
        self._silence_s = silence_s
        self._ports: JournaledDict[Port, None] = JournaledDict()
        self._at_once: tuple[Port, ...] = ()
        # By tail, then head.
        self._links: JournaledDict[Port, JournaledDict[Port, _Answers]] = JournaledDict()
        self._slice = 0
        self._due = -math.inf
        self._busy = False

    def set_times(self, interval_s: float, silence_s: float) -> None:
        """Probe ports so often, and give links up after so long, from now on."""
        self._interval_s, self._silence_s = interval_s, silence_s

    def add(self, port: Port) -> None:
        """Begin to probe a port that came up, at once; one that was up keeps its links."""
        if port not in self._ports:
            self._ports[port] = None
        self._at_once += (port,)

    def remove(self, port: Port) -> None:
        """Probe a port that went down no more, and forget its links."""
        if port in self._ports:
            del self._ports[port]
        self._links.pop(port, None)
        for heads in self._links.values():
            if port in heads:
                del heads[port]

    def remove_switch(self, datapath_id: int) -> None:
        """Remove all ports of a switch."""
        for port in [port for port in self._ports if port[0] == datapath_id]:
            self.remove(port)

    def heard(self, tail: Port, head: Port, now: float) -> None:
        """Take in that a probe arrived; the way back is probed at once if it is not known yet."""
        self.expect(tail, head, now)
        if tail not in self._links.get(head, {}):
            self._at_once += (head,)

    def expect(self, tail: Port, head: Port, now: float) -> None:
        """Take a link for known from now on: it is lost if no probe arrives."""
        self._links.setdefault(tail, JournaledDict())[head] = _Answers(now)

    def next_deadline(self) -> float | None:
        """Return the time at which `tick` has something to do."""
        if self._at_once:
            return -math.inf
        return self._due if self._ports else None

    def tick(self, now: float) -> list[Port]:
        """Return the ports to send a probe out of now."""
        ports, self._at_once = list(self._at_once), ()
        if now >= self._due:
            ports += list(self._ports)[self._slice :: _SLICES]
            self._slice = (self._slice + 1) % _SLICES
            # From now on: what a stall has missed is not made up for in one burst.
            self._due = now + max(self._interval_s, len(self._ports) / _MAX_PROBES_PER_S) / _SLICES
        ports = [port for port in dict.fromkeys(ports) if port in self._ports]
        for port in ports:
            for answers in self._links.get(port, JournaledDict()).values():
                answers.unanswered += 1
        return ports

    def take_lost(self, now: float) -> list[Link]:
        """Return the links that are lost now, and forget them."""
        known = [
            (tail, head, answers) for tail, heads in self._links.items() for head, answers in heads.items()
        ]
        answering = sum(answers.unanswered < _LATELY for _, _, answers in known)
        was_busy, self._busy = self._busy, 2 * answering < len(known)
        if was_busy and not self._busy:
            # Those that have not been asked again since are as good as those that have.
            for _, _, answers in known:
                answers.unanswered = 0
        patience_s = _LONG_SILENCE_S if self._busy else self._silence_s
        lost = [
            (tail, head)
            for tail, head, answers in known
            if answers.unanswered >= _UNANSWERED and now - answers.heard_at >= patience_s
        ]
        for tail, head in lost:
            del self._links[tail][head]
        return lost
