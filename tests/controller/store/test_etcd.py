"""The store in a real etcd: guarded transactions, the leader's key, the watch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import grpc
import pytest
import trustme

from controller.errors import Fenced, StoreError
from controller.model.records import Holder, RecordChange, Update
from controller.store import etcd
from controller.store import etcd_pb2 as pb
from controller.store.etcd import EtcdStore
from controller.store.etcd_client import EtcdAccess, EtcdClient, until
from tests.fakes.etcd_servers import EtcdServers, is_there
from tests.fakes.waiting import wait_until

pytestmark = pytest.mark.skipif(not is_there(), reason="etcd is not installed (package etcd-server)")

# Nobody renews leases here, and none may end while a server starts.
LEASE_S = 600

BIG = {"a": 1, "b": ["x" * 300]}


def forever() -> bool:
    return True


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServers]:
    with EtcdServers(tmp_path_factory.mktemp("etcd")) as running:
        yield running


@pytest.fixture
def stores(servers: EtcdServers, request: pytest.FixtureRequest) -> Iterator[tuple[EtcdStore, EtcdStore]]:
    prefix = f"/test/{request.node.name}"
    made = [EtcdStore(EtcdClient(EtcdAccess(servers.endpoints)), prefix, LEASE_S) for _ in range(2)]
    yield made[0], made[1]
    for each in made:
        each.close()


def lead(store: EtcdStore) -> int:
    """Let a replica lead, and return the epoch."""
    lease = store.grant_lease(forever)
    assert store.claim(lease, "192.0.2.1:8080", "192.0.2.1:50051", forever)
    store.load()
    assert store.holder is not None and store.holder.lease == lease
    epoch = store.holder.epoch
    store.deciding_epoch = lambda: epoch
    return epoch


def test_what_the_leader_writes_is_there_whole_and_others_are_refused(
    stores: tuple[EtcdStore, EtcdStore],
) -> None:
    one, other = stores
    assert one.load() == {}
    first = lead(one)
    assert not other.claim(other.grant_lease(forever), "", "", forever), "the key is taken"
    one.write([RecordChange("flow", "f1", BIG), RecordChange("link", "S0-S1", {"rate_bps": 5e6})])
    one.write(
        [
            RecordChange("flow", "f1", None),
            RecordChange("flow", "f2", BIG),
            RecordChange("flow", "f2", {"a": 2}),
        ]
    )
    assert other.load() == {"flow": {"f2": {"a": 2}}, "link": {"S0-S1": {"rate_bps": 5e6}}}
    other.depose(first + 1000, forever)  # of another epoch: nothing happens
    one.write([RecordChange("flow", "f3", {})])
    other.depose(first, forever)
    assert lead(other) > first
    with pytest.raises(Fenced, match="another replica leads"):
        one.write([RecordChange("flow", "f4", {})])
    other.write([RecordChange("flow", "f5", {})])
    assert set(one.load()["flow"]) == {"f2", "f3", "f5"}
    one.deciding_epoch = lambda: 0
    with pytest.raises(Fenced):
        one.write([RecordChange("flow", "f4", {})])


def test_thousands_of_records_are_one_transaction_and_are_read_in_pages(
    stores: tuple[EtcdStore, EtcdStore],
) -> None:
    one, other = stores
    lead(one)
    one.load()
    before = one.revision
    one.write([RecordChange("flow", f"{number:04}", {"number": number}) for number in range(2500)])
    assert len(other.load()["flow"]) == 2500
    assert other.revision == before + 1
    one.write([RecordChange("flow", f"{number:04}", {"x": "y" * 2000}) for number in range(1500)])  # 3 MB
    assert len(other.load()["flow"]["0007"]["x"]) == 2000


def test_a_repeated_transaction_that_arrives_late_changes_nothing(
    stores: tuple[EtcdStore, EtcdStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the simulation: an answer was late, and the transaction that was sent again came last."""
    one, _ = stores
    lead(one)
    sent: list[pb.Transaction] = []
    call = one._client.call

    def lossy(method, request, answer, goes_on, stream=False):  # type: ignore[no-untyped-def]
        result = call(method, request, answer, goes_on, stream)
        if method == "KV/Txn":
            sent.append(request)
            result = call(method, request, answer, goes_on, stream)  # the first answer was lost
        return result

    monkeypatch.setattr(one._client, "call", lossy)
    one.write([RecordChange("flow", "f", {"rate": 1})])
    one.write([RecordChange("flow", "f", {"rate": 2})])
    monkeypatch.undo()
    assert not call("KV/Txn", sent[0], pb.TransactionResult, forever).succeeded
    assert one.load()["flow"]["f"] == {"rate": 2}
    one.write([RecordChange("flow", "f", {"rate": 3})])


def test_a_watch_tells_records_and_leaders_in_order_and_goes_on_where_it_was(
    stores: tuple[EtcdStore, EtcdStore],
) -> None:
    one, other = stores
    other.load()
    watch = other.watch(other.revision)
    heard: list[Update] = []

    def follow() -> None:
        with pytest.raises(grpc.RpcError):
            for update in watch:
                heard.append(update)  # noqa: PERF402  # each as it comes

    thread = threading.Thread(target=follow)
    thread.start()
    epoch = lead(one)
    one.write([RecordChange("flow", "f1", {"a": 1}), RecordChange("flow", "f2", {})])
    one.write([RecordChange("flow", "f1", None)])
    one.depose(epoch, forever)
    wait_until(lambda: len(heard) == 4, "four updates")
    assert one.holder is not None
    holder = Holder(epoch, one.holder.lease, "192.0.2.1:8080", "192.0.2.1:50051")
    assert heard[0] == Update((), holder, is_of_holder=True)
    assert heard[1] == Update((RecordChange("flow", "f1", {"a": 1}), RecordChange("flow", "f2", {})))
    assert heard[2:] == [Update((RecordChange("flow", "f1", None),)), Update((), None, is_of_holder=True)]
    watch.cancel()
    thread.join()
    lead(other)
    other.write([RecordChange("flow", "f3", {})])
    following = iter(other.watch(watch.revision))
    assert next(following).is_of_holder and next(following).changes == (RecordChange("flow", "f3", {}),)


def test_the_leaders_key_goes_with_its_lease(stores: tuple[EtcdStore, EtcdStore]) -> None:
    one, other = stores
    lead(one)
    assert one.holder is not None
    assert one.renew_lease(one.holder.lease, forever)
    one.revoke_lease(one.holder.lease, forever)
    assert not one.renew_lease(one.holder.lease, forever)
    other.load()
    assert other.holder is None


def test_another_version_of_the_state_is_refused_with_what_to_do(
    stores: tuple[EtcdStore, EtcdStore], servers: EtcdServers
) -> None:
    one, other = stores
    put = pb.Transaction(success=[pb.Operation(put=pb.PutRequest(key=one._key("format"), value=b"2"))])
    one._client.call("KV/Txn", put, pb.TransactionResult, forever)
    for begin in (other.load, other._check_format):
        with pytest.raises(StoreError, match="has format 2 and this controller knows 1; use the version"):
            begin()


def test_servers_that_are_gone_are_a_bounded_wait_and_nothing_half_done(tmp_path: Path) -> None:
    with EtcdServers(tmp_path, 3) as servers:
        store = EtcdStore(EtcdClient(EtcdAccess(servers.endpoints)), "/test", LEASE_S)
        epoch = lead(store)
        store.write([RecordChange("flow", "f1", {})])
        servers.processes[0].kill()  # one of three: it goes on
        store.write([RecordChange("flow", "f2", {})])
        servers.processes[1].kill()
        began = time.monotonic()
        goes_on = until(began + 1.0)
        store.deciding_epoch = lambda: epoch if goes_on() else 0
        with pytest.raises(Fenced, match="no server has answered in time"):
            store.write([RecordChange("flow", "f3", {})])
        for number in (0, 1):
            servers.processes[number].wait()
            servers.processes[number] = servers.start(number)
        wait_until(servers.is_healthy, "etcd to have a leader again")
        assert {"f1", "f2"} <= set(store.load()["flow"]) <= {"f1", "f2", "f3"}
        assert json.dumps(store.load())
        store.close()


def test_certificates_and_a_user_are_asked_for_and_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    with EtcdServers(tmp_path, authority=authority) as servers:
        ask = partial(servers.ask, servers.endpoints[0])
        everything = {"permType": "READWRITE", "key": "L210", "range_end": "L210MA=="}  # /mt to /mt0
        ask("/v3/auth/role/add", name="controllers")
        ask("/v3/auth/role/grant", name="controllers", perm=everything)
        for name, role in (("root", "root"), ("mstcp", "controllers")):
            ask("/v3/auth/user/add", name=name, password=f"word of {name}")
            ask("/v3/auth/user/grant", user=name, role=role)
        ask("/v3/auth/enable", any=1)
        own = authority.issue_cert("controller")
        access = EtcdAccess(
            servers.endpoints,
            authority.cert_pem.bytes(),
            (own.cert_chain_pems[0].bytes(), own.private_key_pem.bytes()),
            ("mstcp", "word of mstcp"),
        )
        store = EtcdStore(EtcdClient(access), "/mt", LEASE_S)
        lead(store)
        store.write([RecordChange("flow", "f1", {"a": 1})])
        watch = store.watch(store.revision)
        assert next(iter(watch)).changes == (RecordChange("flow", "f1", {"a": 1}),)
        watch.cancel()
        servers.processes[0].kill()  # it forgets the tokens that it has given
        servers.processes[0].wait()
        servers.processes[0] = servers.start(0)
        store.write([RecordChange("flow", "f2", {})])
        assert set(store.load()["flow"]) == {"f1", "f2"}
        store.close()
        with pytest.raises(StoreError, match="permission denied"):
            EtcdStore(EtcdClient(access), "/of-others", LEASE_S)
        monkeypatch.setattr(etcd, "_START_S", 3.0)
        for wrong, why in (
            (replace(access, user=("mstcp", "a guess")), "invalid user ID or password"),
            (replace(access, user=None), "permission denied"),
            (replace(access, authority=trustme.CA().cert_pem.bytes()), "CERTIFICATE_VERIFY_FAILED"),
            (replace(access, certificate=None), "no server has answered in time"),
        ):
            with pytest.raises(StoreError, match=why):
                EtcdStore(EtcdClient(wrong), "/mt", LEASE_S)
