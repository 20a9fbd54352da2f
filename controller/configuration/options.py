"""The command line: each option is a setting of the configuration, which it comes before."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gomr import OBJECTIVES

from controller.address import Address
from controller.configuration.schema import Configuration, Counters, Discovery, Routing

NO_STORE = "none"

_SERVICES = ("openflow", "rest", "grpc")

_SETTINGS = {
    "topology": ("topology",),
    "variant": ("variant",),
    "store": ("store",),
    "on_stop": ("on_stop",),
    "openflow": ("listen", "openflow"),
    "rest": ("listen", "rest"),
    "grpc": ("listen", "grpc"),
    "insecure": ("listen", "insecure"),
    "objective": ("routing", "objective"),
    "default_routing": ("routing", "default_routing"),
    "lease": ("routing", "lease_s"),
    "ack_ratio": ("routing", "ack_ratio"),
    "planning_time": ("routing", "planning_s"),
    "reserved_share": ("routing", "reserved_share"),
    "probe_interval": ("discovery", "probe_interval_s"),
    "silence": ("discovery", "silence_s"),
    "counter_interval": ("counters", "interval_s"),
}
"""Where each option stands in the configuration."""


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that are given by options, in the shape of the configuration."""
    settings: dict[str, Any] = {}
    for name, (*tables, key) in _SETTINGS.items():
        value = getattr(options, name)
        if value is not None:
            table = settings
            for each in tables:
                table = table.setdefault(each, {})
            table[key] = value
    return settings


def parser() -> argparse.ArgumentParser:
    """Return the parser of `mstcp-controller` without a command."""
    made = argparse.ArgumentParser(
        prog="mstcp-controller",
        description="SDN controller: globally optimal multipath routing over OpenFlow 1.3 switches, offered "
        "by REST (OpenAPI at /docs) and gRPC. Listens on loopback unless told otherwise. When all services "
        "listen, one line of JSON with their addresses is printed. SIGHUP reloads the configuration; "
        "SIGTERM or SIGINT stops the controller.",
        epilog="`mstcp-controller check FILE` checks a configuration, `mstcp-controller token NAME` makes a "
        "token, `mstcp-controller step-down` lets another replica lead.",
    )
    made.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="TOML file with settings; options of the command line override it",
    )
    made.add_argument(
        "--topology",
        metavar="NET",
        help="network to control: a built-in name (butterfly), a .toml, .json or .graphml file, or a "
        "generator (ring:6)",
    )
    made.add_argument("--variant", help="variant of the topology, one of those that its file defines")
    _add_listening(made)
    _add_routing(made)
    _add_discovery(made)
    _add_counters(made)
    _add_process(made)
    return made


def _add_listening(made: argparse.ArgumentParser) -> None:
    defaults = Configuration(topology="").listen
    for name in _SERVICES:
        (default,) = getattr(defaults, name)
        made.add_argument(
            f"--{name}",
            action="append",
            type=_address,
            metavar="IP:PORT",
            help=f"address to listen on; repeatable (default {default}; port 0 takes a free one)",
        )
    made.add_argument(
        "--insecure",
        action="append",
        choices=_SERVICES,
        metavar="SERVICE",
        help="allow openflow, rest or grpc to listen on addresses other than loopback without TLS and "
        "tokens; repeatable",
    )


def _add_routing(made: argparse.ArgumentParser) -> None:
    defaults = Routing()
    made.add_argument(
        "--objective",
        choices=sorted(OBJECTIVES),
        help=f"objective of requests that name none (default {defaults.objective})",
    )
    made.add_argument(
        "--default-routing",
        choices=["shortest", "ecmp"],
        help="route traffic without an allocation over the path of least delay, or spread its connections "
        f"over all paths of least delay (default {defaults.default_routing})",
    )
    made.add_argument(
        "--lease",
        type=_positive,
        metavar="SECONDS",
        help=f"end a flow that was not renewed for this time (default {defaults.lease_s:g})",
    )
    made.add_argument(
        "--ack-ratio",
        type=_ratio,
        metavar="RATIO",
        help="load of the ACKs on the reverse path for each bit of data "
        f"(default {defaults.ack_ratio:g}: a 54-byte ACK for two 590-byte packets)",
    )
    made.add_argument(
        "--planning-time",
        type=_seconds,
        metavar="SECONDS",
        help="delay before each request is answered; stands for the processing time in emulations in virtual "
        f"time, where processing takes none (default {defaults.planning_s:g})",
    )
    made.add_argument(
        "--reserved-share",
        type=_ratio,
        metavar="SHARE",
        help="share of every link that is not allocated to flows, for traffic without an allocation "
        f"(default {defaults.reserved_share:g})",
    )


def _add_discovery(made: argparse.ArgumentParser) -> None:
    defaults = Discovery()
    made.add_argument(
        "--probe-interval",
        type=_positive,
        metavar="SECONDS",
        help="interval of the LLDP probes of each port; longer in networks with many ports "
        f"(default {defaults.probe_interval_s:g})",
    )
    made.add_argument(
        "--silence",
        type=_positive,
        metavar="SECONDS",
        help="count a link as lost when its probes were unanswered for this time (default "
        f"{defaults.silence_s:g})",
    )


def _add_counters(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--counter-interval",
        type=_seconds,
        metavar="SECONDS",
        help="interval at which each switch is asked for its port and flow counters; longer in "
        "large networks; "
        f"0 turns this off (default {Counters().interval_s:g})",
    )


def _add_process(made: argparse.ArgumentParser) -> None:
    made.add_argument(
        "--on-stop",
        choices=["keep", "remove"],
        help="whether the rules stay in the switches when the controller stops, so that the network goes on "
        "forwarding, or are removed (default keep)",
    )
    made.add_argument(
        "--store",
        metavar="FILE",
        help="SQLite file that keeps flows, learned hosts and changed links over a restart "
        "(default: one file "
        f"for each topology in the user's state directory; `{NO_STORE}` keeps nothing), or "
        "etcd://HOST:2379,HOST:2379,... shared by several controllers, of which one leads",
    )
    made.add_argument(
        "--log-format",
        choices=["text", "json"],
        default="text",
        help="format of the log (default %(default)s)",
    )
    made.add_argument(
        "--ready-file", type=Path, metavar="PATH", help="also write the line with the addresses to this file"
    )
    made.add_argument("--verbose", action="store_true", help="log details, at level DEBUG")


def _checked(is_right: Callable[[float], bool], what: str) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise argparse.ArgumentTypeError(f"{text!r} is not a number")
        if not is_right(value):
            raise argparse.ArgumentTypeError(f"must be {what}, not {text}")
        return value

    return number


_positive = _checked(lambda value: value > 0, "above 0")
_seconds = _checked(lambda value: 0 <= value <= 3600, "from 0 to 3600")
_ratio = _checked(lambda value: 0 <= value < 1, "from 0 to below 1")


def _address(text: str) -> str:
    try:
        return str(Address.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
