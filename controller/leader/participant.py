"""A replica's part in leading: threads that elect, that ask the store, and that follow its watch."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import grpc

from controller.errors import StoreError, WrongFormat
from controller.leader.elector import Elector
from controller.leader.machine import Action, LeaderMachine, Times
from controller.leader.peer import Peer
from controller.model.events import Event
from controller.model.records import Holder
from controller.store.etcd import EtcdStore, EtcdWatch
from controller.store.etcd_client import until

LOG = logging.getLogger("controller.leader")

_TICK_S = 0.1
_WATCH_TIMEOUT_S = 3.0
"""A watch that says nothing for this time, though it is asked every second, is moved to another server."""

_RETRY_S = 0.3


class Places(NamedTuple):
    """Where this replica serves: clients are sent there while it leads."""

    rest: str
    grpc: str


class Mastership(NamedTuple):
    """What leading means for switches.

    Attributes:
        lead: Be the master of all switches, with an epoch; 0: of none.
        reached: Returns how many are connected.
    """

    lead: Callable[[int], None]
    reached: Callable[[], int]


class Participant:
    """Takes part with a store; `holder` says who leads.

    `fail` is called with a sentence when this replica cannot take part any more.
    """

    def __init__(
        self,
        store: EtcdStore,
        switches: Mastership,
        number: int,
        places: Callable[[], Places],
        post: Callable[[Event], None],
        fail: Callable[[str], None],
        lease_s: float,
    ) -> None:
        self._store = store
        self._switches = switches
        self._places = places
        self._fail = fail
        self._lease_s = lease_s
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._asking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="controller-store")
        self._watch: EtcdWatch | None = None
        self._is_new = threading.Event()  # a watch is to begin again from all records
        self._knows_records = threading.Event()  # they are written by this replica
        self._stopping = False
        self.machine = LeaderMachine(Times(lease_s=lease_s), number)
        self._elector = Elector(self.machine, self, post)
        self._peer = Peer(lambda epoch: self._do_later(lambda: self.machine.leader_gone(epoch)))
        self._threads = [
            threading.Thread(target=self._guarded, args=(run,), name=name, daemon=True)
            for run, name in ((self._run, "controller-leader"), (self._follow, "controller-watch"))
        ]

    # From any thread

    def start(self) -> None:
        """Begin to take part."""
        for thread in self._threads:
            thread.start()
        self._peer.start()

    def stop(self) -> None:
        """Leave it to the others to lead, and end."""
        self._leave("it is stopping")
        self._stopping = True
        self._calls.put(lambda: None)
        self._threads[0].join()
        self._asking.shutdown(wait=True, cancel_futures=False)
        self._cancel_watch()

    def step_down(self) -> bool:
        """Let another replica lead; returns False where this one does not."""
        return self._leave("it was told to step down")

    def fenced(self) -> None:
        """Take that the store does not obey this replica."""
        self._do_later(self.machine.write_refused)

    @property
    def holder(self) -> Holder | None:
        """Who leads, as far as this replica knows."""
        return self.machine.holder

    @property
    def is_leading(self) -> bool:
        """Whether this replica may decide."""
        return self.machine.may_decide(time.monotonic())

    @property
    def standing(self) -> str:
        """What this replica is."""
        return self.machine.standing.value

    @property
    def age_s(self) -> float:
        """How old what this replica knows may be."""
        if self.is_leading or self._watch is None:
            return 0.0
        return max(0.0, time.monotonic() - self._watch.heard_at)

    def _leave(self, reason: str) -> bool:
        if not self.machine.epoch:
            return False
        done = threading.Event()

        def leave() -> None:
            self._elector.do(self.machine.step_down(time.monotonic(), reason))
            done.set()

        self._calls.put(leave)
        done.wait(self._lease_s)
        return True

    def _do_later(self, call: Callable[[], list[Action]]) -> None:
        self._calls.put(lambda: self._elector.do(call()))

    # The thread that decides

    def _guarded(self, run: Callable[[], None]) -> None:
        try:
            run()
        except StoreError as error:
            self._fail(str(error))

    def _run(self) -> None:
        while not self._stopping:
            call = self._next()
            if call is not None:
                call()
            now = time.monotonic()
            self._elector.do(self.machine.switches_seen(self._switches.reached(), now))
            self._elector.do(self.machine.tick(now))
            self._peer.follow(None if self.machine.epoch else self.machine.holder)
            watch = self._watch
            if watch is not None and now - watch.heard_at > _WATCH_TIMEOUT_S:
                watch.cancel()

    def _next(self) -> Callable[[], None] | None:
        deadline = self.machine.next_deadline()
        left_s = _TICK_S if deadline is None else min(_TICK_S, max(0.0, deadline - time.monotonic()))
        try:
            return self._calls.get(timeout=left_s) if left_s else self._calls.get_nowait()
        except queue.Empty:
            return None

    # What it has done by the thread that asks the store

    def _ask(self, ask: Callable[[], None]) -> None:
        def asked() -> None:
            try:
                ask()
            except StoreError as error:
                LOG.warning("%s", error)

        self._asking.submit(asked)

    def claim(self) -> None:
        """Take a lease, and by it the leader's key."""

        def ask() -> None:
            goes_on, places = until(time.monotonic() + self._lease_s), self._places()
            is_ours = False
            try:
                asked_at = time.monotonic()
                lease = self._store.grant_lease(goes_on)
                self._calls.put(lambda: self.machine.lease_granted(lease, asked_at))
                is_ours = self._store.claim(lease, places.rest, places.grpc, goes_on)
                if not is_ours:
                    self._store.revoke_lease(lease, goes_on)
            finally:
                if not is_ours:
                    self._calls.put(self.machine.claim_refused)

        self._ask(ask)

    def renew(self, lease: int) -> None:
        """Renew the lease by which this replica leads."""

        def ask() -> None:
            asked_at = time.monotonic()
            goes_on = self._store.renew_lease(lease, until(asked_at + self._lease_s))
            if goes_on:
                self._do_later(lambda: self.machine.lease_renewed(lease, asked_at, time.monotonic()))
            else:
                self._do_later(lambda: self.machine.lease_ended(lease))

        self._ask(ask)

    def depose(self, epoch: int) -> None:
        """Remove the leader's key if it is of this epoch."""
        LOG.info("the leader of epoch %d is deposed", epoch)
        self._ask(lambda: self._store.depose(epoch, until(time.monotonic() + self._lease_s)))

    def lead(self, epoch: int) -> None:
        """Be the switches' master with this epoch, and hear no more of records, which are this replica's."""
        LOG.info("this replica leads, in epoch %d", epoch)
        self._knows_records.set()
        self._cancel_watch()
        self._switches.lead(epoch)

    def follow(self) -> None:
        """Be no switch's master; read all that the store has, and follow it from there."""
        self._switches.lead(0)
        self._knows_records.clear()
        self._is_new.set()
        self._cancel_watch()

    def _cancel_watch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()

    # The thread that follows

    def _follow(self) -> None:
        while not self._stopping:
            self._read_and_follow()

    def _read_and_follow(self) -> None:
        try:
            self._read()
            self._follow_watch()
        except WrongFormat:
            raise
        except StoreError as error:
            LOG.warning("%s; what this replica knows grows old", error)
            time.sleep(_RETRY_S)

    def _read(self) -> None:
        self._is_new.clear()
        records = self._store.load()
        holder = self._store.holder
        self._calls.put(lambda: self._elector.read(records, holder, time.monotonic()))

    def _follow_watch(self) -> None:
        """Follow until all is to be read again; a server that ends is replaced by another, without a gap."""
        revision = self._store.revision
        while not self._is_new.is_set() and not self._stopping:
            leads = self._knows_records.is_set()
            try:
                watch = self._watch = self._store.watch(revision, leader_alone=leads)
                for update in watch:
                    if self._is_new.is_set():
                        return
                    self._calls.put(
                        lambda update=update: self._elector.updated(update, time.monotonic())  # type: ignore[misc]
                    )
            except grpc.RpcError:
                pass
            if self._watch is not None:
                self._watch.cancel()
                revision = max(revision, self._watch.revision)
            is_wanted = leads == self._knows_records.is_set()
            if is_wanted and not self._is_new.is_set() and not self._stopping:
                self._store.try_another()
                time.sleep(_RETRY_S)
