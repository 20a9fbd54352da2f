"""Who leads, as a pure state machine: told what happened and when, it answers what is to be done.

The leader's key in the store is bound to a lease. Its revision of creation is the epoch: each leader's is
above those of all before it. Every write compares it, and it is OpenFlow's generation id, so who is deposed
is refused by the store and by the switches, whatever it believes. The times here only spare others that
refusal: a leader stops deciding before its lease can have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from controller.model.records import Holder


class Standing(Enum):
    """What a replica is."""

    FOLLOWER = "follower"  # follows what the store says
    CANDIDATE = "candidate"  # has asked the store for the leader's key
    LEADER = "leader"  # decides
    FENCED = "fenced"  # led, and what it knows may differ from the store: it begins again from there


@dataclass(frozen=True)
class Times:
    """How long things take, in seconds.

    Attributes:
        lease_s: A leader that does not renew its lease for so long is one no more.
        drift: Clocks differ in speed by less than this share.
        retry_s: What the store did not answer is asked again after so long.
        rest_s: Who has stepped down leaves it to others for so long.
        blind_s: A leader that reaches too few switches for so long steps down.
    """

    lease_s: float = 2.0
    drift: float = 0.05
    retry_s: float = 0.25
    rest_s: float = 4.0
    blind_s: float = 1.0


class ActionKind(Enum):
    """What is to be done."""

    CLAIM = "claim"  # take a lease and, by it, the leader's key if nobody holds it
    RENEW = "renew"  # renew the lease
    DEPOSE = "depose"  # remove the leader's key if it is of this epoch still
    LEAD = "lead"  # decide from now on, with this epoch
    STOP = "stop"  # decide no more, and begin again from what the store has


@dataclass(frozen=True)
class Action:
    """Something to be done; what it says of the epoch is the leader's that it is about."""

    kind: ActionKind
    epoch: int = 0
    reason: str = ""


class LeaderMachine:
    """One replica's standing. Times never go back; answers of the store may be late, lost or repeated.

    Who is connected to no more than half of the switches does not lead.
    """

    def __init__(self, times: Times, switches: int) -> None:
        self.standing = Standing.FOLLOWER
        self.holder: Holder | None = None  # as the store's watch says it
        self._times = times
        self._switches = switches
        self._connected = 0
        self._blind_since: float | None = None
        self._leases: dict[int, float] = {}  # of ours, and when each may have ended
        self._next_at = 0.0  # of the next question to the store
        self._rests_until = 0.0

    @property
    def epoch(self) -> int:
        """The epoch in which this replica leads; 0 where it does not."""
        return self.holder.epoch if self.standing is Standing.LEADER and self.holder is not None else 0

    @property
    def lease(self) -> int:
        """The lease by which this replica leads; 0 where it does not."""
        return self.holder.lease if self.standing is Standing.LEADER and self.holder is not None else 0

    def may_decide(self, now: float) -> bool:
        """Return whether this replica leads and its lease cannot have ended."""
        return self.standing is Standing.LEADER and now < self._valid_until()

    def deciding_epoch(self, now: float) -> int:
        """Return the epoch in which this replica may decide; 0 where it may not."""
        return self.epoch if self.may_decide(now) else 0

    def next_deadline(self) -> float | None:
        """Return when `tick` has something to do."""
        if self.standing in (Standing.FENCED, Standing.CANDIDATE):
            return None
        if self.standing is Standing.LEADER:
            return min(self._next_at, self._valid_until(), self._blind_until())
        return max(self._next_at, self._rests_until) if self._is_free_for_us() else None

    def tick(self, now: float) -> list[Action]:
        """Do what is due."""
        if self.standing is Standing.LEADER:
            return self._tick_as_leader(now)
        if self.standing is not Standing.FOLLOWER or not self._is_free_for_us():
            return []
        if now < max(self._next_at, self._rests_until):
            return []
        self.standing, self._next_at = Standing.CANDIDATE, now + self._times.retry_s
        return [Action(ActionKind.CLAIM)]

    def _tick_as_leader(self, now: float) -> list[Action]:
        if now >= self._valid_until():
            return self._stop("its lease may have ended: the store has not answered in time")
        if now >= self._blind_until():
            return self.step_down(now, "it is connected to too few switches")
        if now < self._next_at:
            return []
        self._next_at = now + self._times.lease_s / 4
        return [Action(ActionKind.RENEW, self.epoch)]

    # What the store says

    def lease_granted(self, lease: int, asked_at: float) -> None:
        """Take a lease that was asked for at a time; where a claim is repeated there are several."""
        self._leases = {each: end for each, end in self._leases.items() if end > asked_at}
        self._leases[lease] = self._end_of(asked_at)

    def lease_renewed(self, lease: int, asked_at: float, now: float) -> list[Action]:
        """Take that the lease goes on from a time at which this was asked for, or later."""
        if self.standing is Standing.LEADER and now >= self._valid_until():
            return self.tick(now)  # too late: others may have been told already that it had ended
        if lease in self._leases:
            self._leases[lease] = max(self._leases[lease], self._end_of(asked_at))
        return []

    def lease_ended(self, lease: int) -> list[Action]:
        """Take that the store knows a lease no more."""
        self._leases.pop(lease, None)
        return self._stop("its lease has ended") if lease == self.lease else []

    def claim_refused(self) -> None:
        """Take that another has the leader's key, or that the store did not answer."""
        if self.standing is Standing.CANDIDATE:
            self.standing = Standing.FOLLOWER

    def holder_seen(self, holder: Holder | None, now: float) -> list[Action]:
        """Take who has the leader's key, in the order in which the store says it."""
        if self.standing is Standing.LEADER and holder == self.holder:
            return []
        self.holder = holder
        if self.standing is Standing.FENCED:
            return []
        if self.standing is Standing.LEADER:
            return self._stop("another replica leads" if holder is not None else "its lease has ended")
        self.standing = Standing.FOLLOWER
        if holder is None:
            self._next_at = now
            return self.tick(now)
        if holder.lease not in self._leases:
            return []
        if now >= self._valid_until() or not self._sees_enough():
            return [Action(ActionKind.DEPOSE, holder.epoch)]
        self.standing, self._next_at = Standing.LEADER, now + self._times.lease_s / 4
        self._blind_since = None
        return [Action(ActionKind.LEAD, holder.epoch)]

    def write_refused(self) -> list[Action]:
        """Take that the store refused a write of this leader, or that nobody knows whether it did."""
        return self._stop("the store refused a write") if self.standing is Standing.LEADER else []

    def begun_again(self, holder: Holder | None, now: float) -> list[Action]:
        """Take that this replica has all that the store has, and who holds the leader's key by that."""
        if self.standing is not Standing.FENCED:
            return []
        self.standing = Standing.FOLLOWER
        if holder is not None and holder.lease in self._leases:
            self.holder = holder
            return [Action(ActionKind.DEPOSE, holder.epoch)]  # of ourselves before: another epoch is needed
        return self.holder_seen(holder, now)

    # What others say

    def switches_seen(self, connected: int, now: float) -> list[Action]:
        """Take how many switches are connected to this replica."""
        self._connected = connected
        if self._sees_enough():
            self._blind_since = None
            return self.tick(now)
        if self._blind_since is None:
            self._blind_since = now
        return []

    def leader_gone(self, epoch: int) -> list[Action]:
        """Take that the leader's process has ended, by what its machine says of its connections."""
        is_other = self.standing is Standing.FOLLOWER and self._sees_enough()
        if not is_other or self.holder is None or self.holder.epoch != epoch:
            return []
        return [Action(ActionKind.DEPOSE, epoch)]

    def step_down(self, now: float, reason: str = "it was told to step down") -> list[Action]:
        """Leave it to another replica to lead."""
        if self.standing is not Standing.LEADER:
            return []
        self._rests_until = now + self._times.rest_s
        epoch = self.epoch
        return [*self._stop(reason), Action(ActionKind.DEPOSE, epoch)]

    def _stop(self, reason: str) -> list[Action]:
        self.standing, self._leases = Standing.FENCED, dict.fromkeys(self._leases, 0.0)
        return [Action(ActionKind.STOP, reason=reason)]

    def _valid_until(self) -> float:
        return 0.0 if self.holder is None else self._leases.get(self.holder.lease, 0.0)

    def _end_of(self, asked_at: float) -> float:
        return asked_at + self._times.lease_s * (1 - self._times.drift)

    def _is_free_for_us(self) -> bool:
        return self.holder is None and self._sees_enough()

    def _sees_enough(self) -> bool:
        return 2 * self._connected > self._switches

    def _blind_until(self) -> float:
        return float("inf") if self._blind_since is None else self._blind_since + self._times.blind_s
