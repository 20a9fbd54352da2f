"""A replica's parts, put together from the configuration."""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Callable

from controller.address import Address
from controller.configuration.schema import Configuration
from controller.configuration.tls import read_file
from controller.core import Core
from controller.leader.participant import Mastership, Participant, Places
from controller.leader.replica import Replica
from controller.model.events import Event
from controller.openflow.runtime import OpenFlowRuntime
from controller.openflow.session import ReplicaLeadership
from controller.store.etcd import EtcdStore
from controller.store.etcd_client import EtcdAccess, EtcdClient
from topologies.model import Network


class Replication:
    """What a controller has where its store is etcd.

    Raises:
        ConfigError: a file cannot be read.
        StoreError: etcd cannot be reached, or another version has written there.
    """

    participant: Participant

    def __init__(self, configuration: Configuration, network: Network, new_core: Callable[[], Core]) -> None:
        self._etcd = configuration.etcd
        self._network = network
        access = _access(configuration)
        self._endpoint = access.endpoints[0]
        prefix = f"{self._etcd.prefix}/{network.name}"
        self.store = EtcdStore(
            EtcdClient(access), prefix, self._etcd.lease_s, lambda: self.replica.epoch(time.monotonic())
        )
        self.leadership = ReplicaLeadership()
        self.replica = Replica(new_core, lambda now: self.participant.machine.deciding_epoch(now))

    def join(
        self,
        runtime: OpenFlowRuntime,
        post: Callable[[Event], None],
        bound: Callable[[], dict[str, list[Address]]],
        fail: Callable[[str], None],
    ) -> Participant:
        """Return the participant: with switches' connections, the core's queue and the services' places."""
        ids = frozenset(self._network.datapath_id(switch) for switch in self._network.switches)
        switches = Mastership(
            lead=lambda epoch: runtime.lead(self.leadership, epoch),
            reached=lambda: len(runtime.switches.reached() & ids),
        )

        def places() -> Places:
            listening = bound()
            return Places(*(self._advertised(listening[name][0]) for name in ("rest", "grpc")))

        self.participant = Participant(self.store, switches, len(ids), places, post, fail, self._etcd.lease_s)
        return self.participant

    def _advertised(self, address: Address) -> str:
        host = self._etcd.advertise or address.host
        if ipaddress.ip_address(host).is_unspecified:
            host = _own_address(self._endpoint)
        return str(Address(host, address.port))


def _own_address(endpoint: str) -> str:
    """Return the address from which this machine reaches another; nothing is sent."""
    host, _, port = endpoint.rpartition(":")
    (family, kind, _, _, place), *_ = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_DGRAM)
    with socket.socket(family, kind) as probe:
        probe.connect(place)
        return str(probe.getsockname()[0])


def _access(configuration: Configuration) -> EtcdAccess:
    etcd, endpoints = configuration.etcd, configuration.etcd_endpoints()
    assert endpoints is not None
    names = ("ca", "certificate", "key", "password_file")
    files = {name: file for name in names if (file := getattr(etcd, name)) is not None}
    read = {name: read_file(f"etcd.{name}", file) for name, file in files.items()}
    certificate = (read["certificate"], read["key"]) if "key" in read else None
    user = None if etcd.user is None else (etcd.user, read["password_file"].decode().strip())
    return EtcdAccess(endpoints, read.get("ca"), certificate, user)
