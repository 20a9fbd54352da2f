"""`mstcp-controller`: starts the controller and runs it until SIGTERM or SIGINT."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import math
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import topologies
from controller import logs
from controller.address import Address, listen
from controller.core.core import Core
from controller.core.events import ControllerStopping
from controller.core.messages import DatapathMessage
from controller.core.state import Settings
from controller.errors import ConfigError, ControllerError, CoreFailed
from controller.gomr import OBJECTIVES, Demand, Edge, LiveEngine, Problem
from controller.loop import ControllerLoop
from controller.store.sqlite import SqliteStore
from controller.wire import DEFAULT_ACK_RATIO

__all__ = ["main", "run"]

LOG = logging.getLogger("controller")

_NO_STORE = "none"

_EX_SOFTWARE = 70  # sysexits.h: an internal fault

_DEFAULT_OPENFLOW = Address("127.0.0.1", 6653)
_DEFAULT_REST = Address("127.0.0.1", 8080)
_DEFAULT_GRPC = Address("127.0.0.1", 50051)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 after a signal, 2 if it could not start, 70 if the core failed."""
    options = _parser().parse_args(arguments)
    log = logs.set_up(options.log_format, logging.DEBUG if options.verbose else logging.INFO)
    try:
        run(options)
    except CoreFailed as error:
        print(f"mstcp-controller: {error}", file=sys.stderr)
        return _EX_SOFTWARE
    except (ControllerError, topologies.TopologyError) as error:
        print(f"mstcp-controller: {error}", file=sys.stderr)
        return 2
    finally:
        log.stop()
    return 0


def run(options: argparse.Namespace) -> None:
    """Start all parts, wait for a signal, and stop them.

    Raises:
        ConfigError: a setting cannot be used.
        TopologyError: the topology cannot be loaded.
        CoreFailed: the core could not go on.
    """
    # Imported late: --help and a wrong option need neither os-ken nor gRPC.
    from controller.api.metrics import Metrics
    from controller.api.rest_common import Api
    from controller.api.servers import ServiceThread
    from controller.api.service import Service
    from controller.openflow.runtime import OpenFlowRuntime

    stop = _stop_on_signals()
    network = topologies.load(options.topology, variant=options.variant)
    openflow = [listen("--openflow", address) for address in options.openflow or [_DEFAULT_OPENFLOW]]
    rest = [listen("--rest", address) for address in options.rest or [_DEFAULT_REST]]

    def send(message: DatapathMessage) -> None:
        runtime.send(message)

    failures: list[str] = []

    def fail(reason: str) -> None:
        failures.append(reason)
        stop.set()

    settings = _settings(options)
    metrics = Metrics()
    core = Core(network, settings, lambda _: secrets.token_hex(8), metrics.solved)
    store = _open_store(options.store, network.name)
    loop = ControllerLoop(
        core,
        send,
        lambda message: service.deliver(message),
        write=store.write if store is not None else lambda _: None,
        on_failure=fail,
        planning_s=options.planning_time,
        handled=lambda event, wall_s: metrics.handled(type(event).__name__, wall_s),
    )
    service = Service(loop.post, metrics=metrics)
    api = Api(service, queues=loop.queue_lengths, dropped_packets=lambda: loop.dropped_packets)
    runtime = OpenFlowRuntime([listener for listener, _ in openflow], loop.post, settings.lldp_key)
    services = ServiceThread(api, [listener for listener, _ in rest], options.grpc or [_DEFAULT_GRPC])
    _warm_up()
    # What is there now stays; and thousands of flows are no garbage to look for after every few requests.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    if store is not None:
        loop.carry_out(core.restore(store.load(), time.monotonic()))
    loop.start()
    services.start()
    runtime.start()
    try:
        _announce(
            options.ready_file,
            openflow=[address for _, address in openflow],
            rest=[address for _, address in rest],
            grpc=services.grpc_addresses,
        )
        stop.wait()
    finally:
        services.stop()
        loop.stop(ControllerStopping(remove_rules=options.on_stop == "remove"))
        runtime.stop()
        if store is not None:
            store.close()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)
    if failures:
        raise CoreFailed(failures[0])
    LOG.info("stopped")


def _warm_up() -> None:
    """Load the solvers now, so that the first request, or the first failure, is not what waits for them."""
    edge = Edge("a->b", "a", "b", 1.0, 0.0)
    first, second = (Demand(name, "a", "b", 1.0, fixed_paths=(("a->b",),)) for name in ("first", "second"))
    engine = LiveEngine(Problem((edge,), (first,)), Settings.objective, min_churn=True)
    engine.become([first, second], {"a->b": 1.0})
    engine.become([second, first], {"a->b": 0.5})


def _open_store(place: str | None, network: str) -> SqliteStore | None:
    """Open the store that the options name; by default one for each network in the user's state directory."""
    if place == _NO_STORE:
        return None
    if place is not None:
        return SqliteStore(Path(place))
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    folder = os.environ.get("STATE_DIRECTORY") or Path(home, "mstcp-controller")  # systemd's, else XDG's
    return SqliteStore(Path(folder, f"{network}.sqlite"))


def _stop_on_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        objective=options.objective,
        lease_s=options.lease,
        ack_ratio=options.ack_ratio,
        reserved_share=options.reserved_share,
        default_routing=options.default_routing,
        probe_interval_s=options.probe_interval,
        silence_s=options.silence,
        lldp_key=secrets.token_bytes(32),
    )


def _announce(ready_file: Path | None, **addresses: Sequence[Address]) -> None:
    """Say on standard output, and in a file that appears whole, that all services listen, and where."""
    ready: dict[str, Any] = {"ready": True, "pid": os.getpid()}
    ready.update({name: [str(address) for address in found] for name, found in addresses.items()})
    line = json.dumps(ready)
    if ready_file is not None:
        part = ready_file.with_name(ready_file.name + ".part")
        try:
            part.write_text(line + "\n")
            part.replace(ready_file)
        except OSError as error:
            raise ConfigError("--ready-file", f"cannot write {ready_file}: {error.strerror}.") from None
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mstcp-controller",
        description="SDN controller: globally optimal multipath routing over OpenFlow 1.3 switches, offered "
        "by REST (OpenAPI at /docs) and gRPC. Listens on loopback unless told otherwise. When all services "
        "listen, one line of JSON with their addresses is printed. SIGTERM or SIGINT ends it.",
    )
    parser.add_argument(
        "--topology",
        required=True,
        metavar="NET",
        help="built-in name (butterfly), .toml, .json or .graphml file, or a generator (ring:6)",
    )
    parser.add_argument("--variant", help="variant of the topology, as its file has it")
    for name, default in (("openflow", _DEFAULT_OPENFLOW), ("rest", _DEFAULT_REST), ("grpc", _DEFAULT_GRPC)):
        parser.add_argument(
            f"--{name}",
            action="append",
            type=_address,
            metavar="IP:PORT",
            help=f"listen here, repeatable (default {default}; port 0: any free one)",
        )
    parser.add_argument(
        "--objective",
        default=Settings.objective,
        choices=sorted(OBJECTIVES),
        help="for requests that name none (default %(default)s)",
    )
    parser.add_argument(
        "--default-routing",
        default="shortest",
        choices=["shortest", "ecmp"],
        help="routes of all traffic without an allocation: the path of least delay, or all paths of least "
        "delay by a hash of each connection (default %(default)s)",
    )
    parser.add_argument(
        "--lease",
        type=_positive,
        default=Settings.lease_s,
        metavar="SECONDS",
        help="a flow that is not renewed for so long ends (default %(default)g)",
    )
    parser.add_argument(
        "--ack-ratio",
        type=_ratio,
        default=DEFAULT_ACK_RATIO,
        metavar="RATIO",
        help="load of the ACKs on the reverse path, per bit of data (default %(default)g: a 54-byte ACK for "
        "two 590-byte packets)",
    )
    parser.add_argument(
        "--planning-time",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="wait so long before each request is answered, in place of the processing that takes no time in "
        "emulations in virtual time (default %(default)g)",
    )
    parser.add_argument(
        "--reserved-share",
        type=_ratio,
        default=Settings.reserved_share,
        metavar="SHARE",
        help="share of every link that no flow is given, for default traffic (default %(default)g)",
    )
    parser.add_argument(
        "--probe-interval",
        type=_positive,
        default=Settings.probe_interval_s,
        metavar="SECONDS",
        help="each port is probed for its link so often, where there are not too many (default %(default)g)",
    )
    parser.add_argument(
        "--silence",
        type=_positive,
        default=Settings.silence_s,
        metavar="SECONDS",
        help="a link that answers no probe for so long is lost (default %(default)g)",
    )
    parser.add_argument(
        "--on-stop",
        default="keep",
        choices=["keep", "remove"],
        help="what becomes of the rules in the switches when the controller is stopped: the network forwards "
        "on, or they are removed (default %(default)s)",
    )
    parser.add_argument(
        "--store",
        metavar="FILE",
        help="SQLite file of what survives a restart: flows and learned hosts (default: one for each "
        f"topology in the state directory; `{_NO_STORE}`: keep nothing)",
    )
    parser.add_argument(
        "--log-format", choices=["text", "json"], default="text", help="(default %(default)s)"
    )
    parser.add_argument(
        "--ready-file", type=Path, metavar="PATH", help="write the line with the addresses here too"
    )
    parser.add_argument("--verbose", action="store_true", help="log details")
    return parser


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number")
    return value


def _positive(text: str) -> float:
    value = _number(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"must be above 0, not {text}")
    return value


def _seconds(text: str) -> float:
    value = _number(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"must be from 0 to 3600, not {text}")
    return value


def _ratio(text: str) -> float:
    value = _number(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to below 1, not {text}")
    return value


if __name__ == "__main__":
    sys.exit(main())
