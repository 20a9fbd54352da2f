"""The controller's parts as one process: started, configured again while they run, and stopped."""

from __future__ import annotations

import gc
import json
import logging
import os
import secrets
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

from gomr import Demand, Edge, Engine, Problem

import topologies
from controller.address import Address, listen
from controller.api.metrics import Metrics
from controller.api.rest_common import Api
from controller.api.servers import ServiceThread
from controller.api.service import Service
from controller.configuration.access import Access
from controller.configuration.checking import check_links
from controller.configuration.options import NO_STORE
from controller.configuration.schema import Configuration
from controller.configuration.tls import ServerTls
from controller.connection_limits import ServiceLimits, raise_file_limit
from controller.core import Core
from controller.errors import ConfigError, RequestError
from controller.instructions import Instruction, Instructions
from controller.leader.replica import Replica
from controller.leader.replication import Replication
from controller.loop import ControllerLoop
from controller.model.event_log import EVENT
from controller.model.events import ConfigurationChanged, ConfigurationRefused, ControllerStopping
from controller.model.messages import ClientMessage, Reply
from controller.model.records import RecordChange, Store, changes_of
from controller.model.settings import Settings
from controller.openflow.runtime import OpenFlowRuntime
from controller.openflow.session import Leadership
from controller.store.null import NullStore
from controller.store.sqlite import SqliteStore
from topologies.model import Network

LOG = logging.getLogger("controller")

Told = Callable[[str | None], object]
"""Takes why a configuration was refused; None: it is applied."""

_TLS = ("tls", "openflow_tls")
_FIXED = (
    "store",
    "etcd",
    *(f"listen.{name}" for name in ("openflow", "rest", "grpc", "insecure")),
    "routing.planning_s",
    "routing.fast_failover",
)
"""Settings that need a restart."""

_ID_BYTES = 16
_IDS_DRAWN = 1024

_TERM = "term"
"""Kind of the records of the terms in which the controller was master of switches."""

_TERM_RANDOM_BITS = 6
_TERMS_REMEMBERED = 16

_RELOAD_TOKEN = -1
"""Token of the event that applies a configuration; clients' tokens begin with 1."""


class ControllerProcess:
    """Everything that runs.

    `read` reads the settings again; `fail` is called once, from any thread, with a sentence when the process
    cannot go on.

    Raises:
        ConfigError: a setting cannot be used.
        TopologyError: the topology cannot be loaded.
    """

    def __init__(
        self, configuration: Configuration, read: Callable[[], Configuration], fail: Callable[[str], None]
    ) -> None:
        unprotected = configuration.unprotected()
        if unprotected is not None:
            raise ConfigError("listen", unprotected)
        self.configuration = configuration
        self._read = read
        self._reload_lock = threading.Lock()
        self._reloading: deque[tuple[Configuration, Network, Told]] = deque()  # the core has not answered yet
        self._network = network = topologies.load(configuration.topology, variant=configuration.variant)
        check_links(configuration, network)
        self._lldp_key = secrets.token_bytes(32)
        self._tls = {name: _certificates(name, configuration) for name in _TLS}
        self._sockets = {
            name: [listen(f"--{name}", Address.parse(text)) for text in getattr(configuration.listen, name)]
            for name in ("openflow", "rest")
        }
        metrics = Metrics()
        settings = configuration.settings(self._lldp_key)
        new_flow_id = random_ids()

        def new_core() -> Core:
            return Core(network, settings, lambda _: next(new_flow_id), metrics.solved)

        self._replication: Replication | None = None
        if configuration.etcd_endpoints() is not None:
            self._replication = Replication(configuration, network, new_core)
            self._store: Store = self._replication.store
            self._core: Core | Replica = self._replication.replica
            leadership: Leadership = self._replication.leadership
        else:
            self._core = new_core()
            self._store = _open_store(configuration.store, network.name)
            self._records = self._store.load()
            leadership = self._begin_term()
        self._loop = ControllerLoop(
            self._core,
            lambda message: self._runtime.switches.send(message),
            self._deliver,
            flush=lambda: self._runtime.switches.flush(),
            write=self._store.write,
            on_failure=fail,
            planning_s=configuration.routing.planning_s,
            handled=lambda event, wall_s: metrics.handled(type(event).__name__, wall_s),
            on_fenced=lambda: self._replication.participant.fenced() if self._replication else None,
        )
        self._service = Service(self._loop.post, metrics=metrics, store=self._store.identity)
        self._access = Access(configuration.tokens)
        api = Api(
            self._service,
            self._access,
            queues=self._loop.queue_lengths,
            dropped_packets=lambda: self._loop.dropped_packets,
            is_protected=self._tls["tls"] is not None,
            reload=self.reload,
        )
        limits = ServiceLimits.of(len(network.switches), raise_file_limit())
        openflow_tls = self._tls["openflow_tls"]
        self._runtime = OpenFlowRuntime(
            self._listeners("openflow"),
            self._loop.post,
            self._lldp_key,
            leadership,
            limits.openflow,
            None if openflow_tls is None else openflow_tls.context,
            lambda name, datapath_id: _is_certified(self._network, name, datapath_id),
            fail,
        )
        grpc = [Address.parse(text) for text in configuration.listen.grpc]
        self._services = ServiceThread(api, self._listeners("rest"), grpc, self._tls["tls"], limits, fail)
        if self._replication is not None:
            api.replica = self._replication.join(self._runtime, self._loop.post, self._bound, fail)

    def _begin_term(self) -> Leadership:
        """Begin a term as the master of switches, above those of earlier runs, and remember it."""
        earlier = sorted(map(int, self._records.pop(_TERM, {})))
        now = int(time.time()) << _TERM_RANDOM_BITS | secrets.randbits(_TERM_RANDOM_BITS)
        term = max([now, *(each + 1 for each in earlier)])
        forgotten = earlier[:-_TERMS_REMEMBERED]
        self._store.write(
            [
                RecordChange(_TERM, str(term), {}),
                *(RecordChange(_TERM, str(each), None) for each in forgotten),
            ]
        )
        return Leadership(term, frozenset(earlier))

    def start(self) -> dict[str, list[str]]:
        """Start everything; returns the addresses when all services listen."""
        _warm_up()
        # What is there now stays; and thousands of flows are no garbage to look for after every few requests.
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        if isinstance(self._core, Core):
            self._loop.remember(changes_of({EVENT: self._records.pop(EVENT, {})}))
            self._loop.carry_out(self._core.restore(self._records, time.monotonic()))
        self._loop.start()
        self._services.start()
        self._runtime.start()
        if self.configuration.links:
            self._post_configuration(self.configuration, self._network)
        if self._replication is not None:
            self._replication.participant.start()
        return {name: list(map(str, addresses)) for name, addresses in self._bound().items()}

    def _bound(self) -> dict[str, list[Address]]:
        """Return the addresses on which services listen."""
        bound = {name: [address for _, address in self._sockets[name]] for name in self._sockets}
        return bound | {"grpc": list(self._services.grpc_addresses)}

    def stop(self) -> None:
        """Stop everything; the rules in the switches stay or go, as configured."""
        self._services.stop()
        remove_rules = self.configuration.on_stop == "remove" and self._replication is None
        self._loop.stop(ControllerStopping(remove_rules))
        if self._replication is not None:
            self._replication.participant.stop()
        self._runtime.stop()
        self._store.close()

    def reload(self, told: Told = lambda _: None) -> None:
        """Apply a configuration whole, or keep the old one and say why; may be called from any thread.

        `told` is called, from any thread, with None when it is applied, or with the reason why it is not.
        """
        with self._reload_lock:
            self._reload(told)

    def _reload(self, told: Told) -> None:
        try:
            wanted = self._read()
            self._check_change(wanted)
            network = self._read_topology(wanted)
            renewed = [self._read_certificates(name, wanted) for name in _TLS]
        except (ConfigError, topologies.TopologyError) as error:
            self._loop.post(ConfigurationRefused(str(error)))
            told(str(error))
            return
        for put_in_force in renewed:
            put_in_force()
        self._post_configuration(wanted, network, told)

    def _read_topology(self, wanted: Configuration) -> Network:
        """Read the topology file again: flows and what is stored are those of one network."""
        network = topologies.load(wanted.topology, variant=wanted.variant)
        check_links(wanted, network)
        if network.name != self._network.name:
            text = f"is now {network.name!r}, not {self._network.name!r}: another network needs a restart."
            raise ConfigError("topology", text)
        if self._replication is not None and network != self._network:
            text = "differs, and other replicas follow this one: restart all of them, one after the other."
            raise ConfigError("topology", text)
        return network

    def _read_certificates(self, name: str, wanted: Configuration) -> Callable[[], None]:
        """Read the certificates of a service again; returns what puts them in force."""
        tls, files = self._tls[name], getattr(wanted.listen, name)
        if (tls is None) != (files is None):
            raise ConfigError(f"listen.{name}", "cannot come or go while the controller runs; restart it.")
        return (lambda: None) if tls is None else tls.read(files)

    def _check_change(self, wanted: Configuration) -> None:
        for name in _FIXED:
            setting = attrgetter(name)
            if setting(wanted) != setting(self.configuration):
                raise ConfigError(name, "cannot be changed while the controller runs; restart it.")
        unprotected = wanted.unprotected()
        if unprotected is not None:
            raise ConfigError("listen", unprotected)

    def _post_configuration(
        self, wanted: Configuration, network: Network, told: Told = lambda _: None
    ) -> None:
        self._reloading.append((wanted, network, told))
        settings = wanted.settings(self._lldp_key)
        self._loop.post(ConfigurationChanged(_RELOAD_TOKEN, settings, wanted.links, network))

    def _deliver(self, *messages: ClientMessage) -> None:
        for message in messages:
            if isinstance(message, Reply) and message.token == _RELOAD_TOKEN:
                self._on_configured(message.result)
        self._service.deliver(*messages)

    def _on_configured(self, result: object) -> None:
        """Take the core's answer to a configuration; called from the core's thread."""
        if not self._reloading:
            return  # a replica that has begun to lead applies what was answered already
        configuration, network, told = self._reloading.popleft()
        if isinstance(result, RequestError):
            self._loop.post(ConfigurationRefused(str(result)))
            told(str(result))
        else:
            self.configuration, self._network = configuration, network
            self._access.replace(configuration.tokens)
            told(None)

    def _listeners(self, name: str) -> list[Any]:
        return [listener for listener, _ in self._sockets[name]]


def run(
    configuration: Configuration,
    read: Callable[[], Configuration],
    instructions: Instructions,
    ready_file: Path | None,
) -> None:
    """Start all parts, do what signals say, and stop them.

    Raises:
        ConfigError: a setting cannot be used.
        TopologyError: the topology cannot be loaded.
        CoreFailed: the process could not go on.
    """
    threading.excepthook = lambda thread: _thread_failed(thread, instructions.fail)
    controller = ControllerProcess(configuration, read, instructions.fail)
    addresses = controller.start()
    try:
        _announce(ready_file, addresses)
        while instructions.wait() is Instruction.RELOAD:
            controller.reload()
    finally:
        controller.stop()
        if ready_file is not None:
            ready_file.unlink(missing_ok=True)
    LOG.info("stopped")


def _thread_failed(thread: threading.ExceptHookArgs, fail: Callable[[str], None]) -> None:
    """Log what has ended a thread, and end the process."""
    name = "a thread" if thread.thread is None else f"the thread {thread.thread.name}"
    error = thread.exc_value or thread.exc_type()
    LOG.error("%s failed", name, exc_info=error)
    fail(f"{name} ended: {type(error).__name__}: {error}")


def random_ids() -> Iterator[str]:
    """Yield 128 random bits as text, again and again.

    They are drawn many at a time: each call of the system lets go of Python's lock, which another thread may
    then keep for five milliseconds.
    """
    while True:
        drawn = secrets.token_hex(_IDS_DRAWN * _ID_BYTES)
        for start in range(0, len(drawn), 2 * _ID_BYTES):
            yield drawn[start : start + 2 * _ID_BYTES]


def _certificates(name: str, configuration: Configuration) -> ServerTls | None:
    """Read the certificates of a service; None where it has none."""
    files = getattr(configuration.listen, name)
    return None if files is None else ServerTls(f"listen.{name}", files)


def _is_certified(network: Network, name: str, datapath_id: int) -> bool:
    """Return whether a certificate with a common name is that of the switch with a datapath id.

    The name is that of the switch in the topology file, or its datapath id as 16 hexadecimal digits.
    """
    switches = {network.datapath_id(switch): switch for switch in network.switches}
    return name == switches.get(datapath_id) or name.lower() == f"{datapath_id:016x}"


def _warm_up() -> None:
    """Load the solvers now, so that the first request, or the first failure, is not what waits for them."""
    edge = Edge("a->b", "a", "b", 1.0, 0.0)
    first, second = (Demand(name, "a", "b", 1.0, fixed_paths=(("a->b",),)) for name in ("first", "second"))
    engine = Engine(Problem((edge,), (first,)), objective=Settings.objective, min_reallocation=True)
    engine.become([first, second], {"a->b": 1.0})
    engine.become([second, first], {"a->b": 0.5})


def _open_store(place: str | None, network: str) -> Store:
    """Open the store that is configured; by default one for each network in the user's state directory."""
    if place == NO_STORE:
        return NullStore()
    if place is not None:
        return SqliteStore(Path(place))
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = os.environ.get("STATE_DIRECTORY") or Path(home, "mstcp-controller")  # systemd's, else XDG's
    return SqliteStore(Path(folder, f"{network}.sqlite"))


def _announce(ready_file: Path | None, addresses: dict[str, Sequence[str]] | dict[str, list[str]]) -> None:
    """Say on standard output, and in a file that appears whole, that all services listen, and where."""
    line = json.dumps({"ready": True, "pid": os.getpid(), **addresses})
    if ready_file is not None:
        part = ready_file.with_name(ready_file.name + ".part")
        try:
            part.write_text(line + "\n")
            part.replace(ready_file)
        except OSError as error:
            raise ConfigError("--ready-file", f"cannot write {ready_file}: {error.strerror}.") from None
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
