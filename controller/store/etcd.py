"""The store in etcd, for controllers in pairs and threes: guarded transactions, the leader's key, a watch.

Below the prefix, `records/<kind>/<key>` are the records, `leader` is who leads (bound to a lease), `turn`
numbers the leader's transactions, `format` says which version of all this it is, and `identity` which store.

A transaction is applied once and in its turn: it compares the revision at which the leader's key was created,
and the number of the transaction before it. One that is repeated because its answer was lost, and arrives
after the next one, changes nothing.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from controller.errors import Fenced, StoreError, WrongFormat
from controller.model.records import Holder, RecordChange, Records, Update
from controller.store import etcd_pb2 as pb
from controller.store.etcd_client import EtcdClient, until

_FORMAT = b"1"
_PAGE = 1000
_GROUP, _GROUPS = 60, 50
"""etcd takes 128 operations in a transaction, those of one within it counted: groups of groups."""

_MAX_BYTES = 1 << 20  # of a transaction; etcd refuses 1.5 MiB
_PROGRESS_S = 1.0
"""Interval at which a watch is asked for its progress."""

_START_S = 10.0
"""How long the store may take to answer at the start."""


class EtcdStore:
    """Records and the leader's key below a prefix.

    `deciding_epoch` returns the epoch in which the core decides that `write` is called for; 0: none.

    Raises:
        StoreError: etcd cannot be reached, or another version of the controller has written there.
    """

    def __init__(
        self, client: EtcdClient, prefix: str, lease_s: float, deciding_epoch: Callable[[], int] = lambda: 0
    ) -> None:
        self._client = client
        self._prefix = prefix
        self._lease_s = lease_s
        self.deciding_epoch = deciding_epoch
        self._epoch = self._turn = 0  # of the last write
        self.revision = 0  # of what `load` has returned
        self.holder: Holder | None = None  # by that
        self._check_format()

    # Everybody

    def load(self) -> Records:
        """Return all records; `revision` and `holder` belong to them."""
        records: Records = {}
        holder = None
        key, revision, more = self._key(""), 0, True
        goes_on = until(time.monotonic() + _START_S)
        while more:
            asked = pb.RangeRequest(key=key, range_end=self._end(), limit=_PAGE, revision=revision)
            page = self._client.call("KV/Range", asked, pb.RangeResponse, goes_on)
            revision = revision or page.header.revision
            for kv in page.kvs:
                name = self._name(kv.key)
                if name == "leader":
                    holder = _holder_of(kv)
                elif name == "format":
                    self._expect_format(kv.value)
                elif (record := _record_key(name)) is not None:
                    records.setdefault(record[0], {})[record[1]] = json.loads(kv.value)
            more = page.more
            key = page.kvs[-1].key + b"\0" if page.kvs else key
        self.revision, self.holder = revision, holder
        return records

    def watch(self, revision: int, leader_alone: bool = False) -> EtcdWatch:
        """Return what happens after a revision, to everything or to the leader's key alone."""
        key, end = (self._key("leader"), b"") if leader_alone else (self._key(""), self._end())
        return EtcdWatch(self._client, key, end, revision, self._updates_of)

    def try_another(self) -> None:
        """Ask another server next."""
        self._client.try_another()

    def close(self) -> None:
        """End all connections."""
        self._client.close()

    def _check_format(self) -> None:
        new = {"format": _FORMAT, "identity": secrets.token_hex(4).encode()}
        made = pb.Transaction(
            compare=[_not_there(self._key("format"))],
            success=[pb.Operation(put=pb.PutRequest(key=self._key(key), value=new[key])) for key in new],
            failure=[pb.Operation(range=pb.RangeRequest(key=self._key(key))) for key in new],
        )
        goes_on = until(time.monotonic() + _START_S)
        result = self._client.call("KV/Txn", made, pb.TransactionResult, goes_on)
        found = [] if result.succeeded else [answer.range.kvs for answer in result.responses]
        values = [kvs[0].value if kvs else b"" for kvs in found] or list(new.values())
        self._expect_format(values[0])
        self.identity = values[1].decode()

    def _expect_format(self, found: bytes) -> None:
        if found != _FORMAT:
            raise WrongFormat(
                f"{self._client.place}{self._prefix}",
                f"it has format {found.decode(errors='replace')} and this controller knows "
                f"{_FORMAT.decode()}; use the version of the controller that wrote it, or another prefix",
            )

    def _updates_of(self, events: Iterable[Any]) -> Iterator[Update]:
        changes: list[RecordChange] = []
        for event in events:
            name, is_gone = self._name(event.kv.key), event.kind == pb.Event.DELETE
            if name == "leader":
                yield Update(tuple(changes), None if is_gone else _holder_of(event.kv), is_of_holder=True)
                changes = []
            elif name == "format":
                self._expect_format(event.kv.value)
            elif (record := _record_key(name)) is not None:
                changes.append(RecordChange(*record, None if is_gone else json.loads(event.kv.value)))
        if changes:
            yield Update(tuple(changes))

    # Who wants to lead

    def grant_lease(self, goes_on: Callable[[], bool]) -> int:
        """Return a new lease."""
        asked = pb.LeaseGrant(ttl_s=max(1, round(self._lease_s)))
        return self._client.call("Lease/LeaseGrant", asked, pb.LeaseAnswer, goes_on).id

    def renew_lease(self, lease: int, goes_on: Callable[[], bool]) -> bool:
        """Let a lease go on; returns False where there is none any more."""
        asked = pb.Lease(id=lease)
        answer = self._client.call("Lease/LeaseKeepAlive", asked, pb.LeaseAnswer, goes_on, stream=True)
        return answer.ttl_s > 0

    def revoke_lease(self, lease: int, goes_on: Callable[[], bool]) -> None:
        """End a lease, and with it the leader's key if it is bound to it."""
        self._client.call("Lease/LeaseRevoke", pb.Lease(id=lease), pb.LeaseAnswer, goes_on)

    def claim(self, lease: int, rest: str, grpc: str, goes_on: Callable[[], bool]) -> bool:
        """Take the leader's key if nobody has it; says where this replica serves."""
        value = json.dumps({"rest": rest, "grpc": grpc}).encode()
        wanted = pb.Transaction(
            compare=[_not_there(self._key("leader"))],
            success=[
                pb.Operation(put=pb.PutRequest(key=self._key("leader"), value=value, lease=lease)),
                pb.Operation(put=pb.PutRequest(key=self._key("turn"), value=b"0")),
            ],
        )
        return self._client.call("KV/Txn", wanted, pb.TransactionResult, goes_on).succeeded

    def depose(self, epoch: int, goes_on: Callable[[], bool]) -> None:
        """Remove the leader's key if it is still of this epoch."""
        wanted = pb.Transaction(
            compare=[pb.Compare(target=pb.Compare.CREATE, key=self._key("leader"), create_revision=epoch)],
            success=[pb.Operation(delete=pb.DeleteRequest(key=self._key("leader")))],
        )
        self._client.call("KV/Txn", wanted, pb.TransactionResult, goes_on)

    # Who leads

    def write(self, changes: Sequence[RecordChange]) -> None:
        """Apply changes, all or none.

        Raises:
            Fenced: another leads, or etcd has not answered while this replica may lead.
        """
        epoch = self.deciding_epoch()
        if not epoch:
            raise Fenced(self._client.place, "this replica does not lead")
        if epoch != self._epoch:
            self._epoch, self._turn = epoch, 0
        latest = {(change.kind, change.key): change for change in changes}
        for part in _parts([self._operation(change) for change in latest.values()]):
            self._write(part)

    def _write(self, operations: list[Any]) -> None:
        epoch, turn = self._epoch, self._turn
        leader, turn_key = self._key("leader"), self._key("turn")
        groups = [operations[at : at + _GROUP] for at in range(0, len(operations), _GROUP)]
        wanted = pb.Transaction(
            compare=[
                pb.Compare(target=pb.Compare.CREATE, key=leader, create_revision=epoch),
                pb.Compare(target=pb.Compare.VALUE, key=turn_key, value=b"%d" % turn),
            ],
            success=[
                pb.Operation(put=pb.PutRequest(key=turn_key, value=b"%d" % (turn + 1))),
                *(pb.Operation(transaction=pb.Transaction(success=group)) for group in groups),
            ],
            failure=[
                pb.Operation(range=pb.RangeRequest(key=leader)),
                pb.Operation(range=pb.RangeRequest(key=turn_key)),
            ],
        )
        try:
            result = self._client.call(
                "KV/Txn", wanted, pb.TransactionResult, lambda: self.deciding_epoch() == epoch
            )
        except StoreError as error:
            raise Fenced(error.store, error.reason) from None
        if not result.succeeded and not _is_done(result, epoch, turn + 1):
            raise Fenced(self._client.place, "another replica leads")
        self._turn = turn + 1

    def _operation(self, change: RecordChange) -> Any:
        key = self._key(f"records/{change.kind}/{change.key}")
        if change.value is None:
            return pb.Operation(delete=pb.DeleteRequest(key=key))
        value = json.dumps(change.value, separators=(",", ":")).encode()
        return pb.Operation(put=pb.PutRequest(key=key, value=value))

    # Keys

    def _key(self, name: str) -> bytes:
        return f"{self._prefix}/{name}".encode()

    def _end(self) -> bytes:
        return f"{self._prefix}0".encode()  # "0" follows "/"

    def _name(self, key: bytes) -> str:
        return key.decode()[len(self._prefix) + 1 :]


class EtcdWatch:
    """What happens below a prefix after a revision, in order and without gaps. Iterate in one thread.

    Attributes:
        revision: All up to this one has been handed over.
        heard_at: When etcd has last said something, by `time.monotonic`.
    """

    def __init__(
        self,
        client: EtcdClient,
        key: bytes,
        end: bytes,
        revision: int,
        updates: Callable[[Iterable[Any]], Iterator[Update]],
    ) -> None:
        self.revision = revision
        self.heard_at = time.monotonic()
        self._updates = updates
        self._ended = threading.Event()
        create = pb.WatchCreate(key=key, range_end=end, start_revision=revision + 1)
        self._answers = client.stream("Watch/Watch", self._questions(create), pb.WatchResponse)

    def _questions(self, create: Any) -> Iterator[Any]:
        yield pb.WatchRequest(create=create)
        while not self._ended.wait(_PROGRESS_S):
            yield pb.WatchRequest(progress=pb.WatchProgress())

    def cancel(self) -> None:
        """End it; the iteration raises grpc.RpcError."""
        self._ended.set()
        self._answers.cancel()

    def __iter__(self) -> Iterator[Update]:
        for answer in self._answers:
            self.heard_at = time.monotonic()
            if answer.canceled:
                raise StoreError("etcd", answer.cancel_reason or "it has forgotten what was missed")
            yield from self._updates(answer.events)
            if answer.events:
                self.revision = answer.events[-1].kv.mod_revision


def _holder_of(kv: Any) -> Holder:
    place = json.loads(kv.value)
    return Holder(kv.create_revision, kv.lease, place["rest"], place["grpc"])


def _record_key(name: str) -> tuple[str, str] | None:
    folder, _, rest = name.partition("/")
    kind, _, key = rest.partition("/")
    return (kind, key) if folder == "records" else None


def _not_there(key: bytes) -> Any:
    return pb.Compare(target=pb.Compare.CREATE, key=key, create_revision=0)


def _is_done(result: Any, epoch: int, turn: int) -> bool:
    """Return whether a transaction that was refused had been applied before, when it was sent first."""
    leader, last = (answer.range.kvs for answer in result.responses)
    is_ours = bool(leader) and leader[0].create_revision == epoch
    return is_ours and bool(last) and last[0].value == b"%d" % turn


def _parts(operations: list[Any]) -> Iterator[list[Any]]:
    """Split what is too much for one transaction."""
    part: list[Any] = []
    size = 0
    for operation in operations:
        bytes_ = operation.ByteSize()
        if part and (len(part) >= _GROUP * _GROUPS or size + bytes_ > _MAX_BYTES):
            yield part
            part, size = [], 0
        part.append(operation)
        size += bytes_
    if part:
        yield part
