"""The command line: each option is a setting of the configuration, which it comes before."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from gomr import OBJECTIVES

from controller.address import Address
from controller.configuration.schema import Configuration

NO_STORE = "none"

_SERVICES = ("openflow", "rest", "grpc")


class _Option(NamedTuple):
    """An option that is a setting.

    Attributes:
        setting: Where it stands in the configuration.
        help: What it does, as a phrase; the default follows.
        metavar: What stands for its value; empty where there are choices.
        kind: Makes the value of its text.
        choices: What it may be.
        is_repeatable: It may be given several times.
        shows_default: The default is said by the configuration.
    """

    setting: str
    help: str
    metavar: str = ""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    is_repeatable: bool = False
    shows_default: bool = True


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


_OPTIONS = {
    "--topology": _Option(
        "topology",
        "network to control: a built-in name (butterfly), a .toml, .json or .graphml file, or a generator "
        "(ring:6)",
        "NET",
        shows_default=False,
    ),
    "--variant": _Option(
        "variant", "variant of the topology, one of those that its file defines", "NAME", shows_default=False
    ),
    **{
        f"--{name}": _Option(
            f"listen.{name}",
            "address to listen on; repeatable; port 0 takes a free one",
            "IP:PORT",
            _address,
            is_repeatable=True,
        )
        for name in _SERVICES
    },
    "--insecure": _Option(
        "listen.insecure",
        "allow openflow, rest or grpc to listen on addresses other than loopback without TLS and tokens; "
        "repeatable",
        "SERVICE",
        choices=_SERVICES,
        is_repeatable=True,
        shows_default=False,
    ),
    "--objective": _Option(
        "routing.objective", "objective of requests that name none", choices=tuple(sorted(OBJECTIVES))
    ),
    "--default-routing": _Option(
        "routing.default_routing",
        "route traffic without an allocation over the path of least delay, or spread its connections over "
        "all paths of least delay",
        choices=("shortest", "ecmp"),
    ),
    "--lease": _Option(
        "routing.lease_s", "end a flow that was not renewed for this time", "SECONDS", _positive
    ),
    "--ack-ratio": _Option(
        "routing.ack_ratio",
        "load of the ACKs on the reverse path for each bit of data, as of a 54-byte ACK for two 590-byte "
        "packets",
        "RATIO",
        _ratio,
    ),
    "--planning-time": _Option(
        "routing.planning_s",
        "delay before each request is answered; stands for the processing time in emulations in virtual "
        "time, where processing takes none",
        "SECONDS",
        _seconds,
    ),
    "--reserved-share": _Option(
        "routing.reserved_share",
        "share of every link that is not allocated to flows, for traffic without an allocation",
        "SHARE",
        _ratio,
    ),
    "--probe-interval": _Option(
        "discovery.probe_interval_s",
        "interval of the LLDP probes of each port; longer in networks with many ports",
        "SECONDS",
        _positive,
    ),
    "--silence": _Option(
        "discovery.silence_s",
        "count a link as lost when its probes were unanswered for this time",
        "SECONDS",
        _positive,
    ),
    "--counter-interval": _Option(
        "counters.interval_s",
        "interval at which each switch is asked for its port and flow counters; longer in large networks; 0 "
        "turns this off",
        "SECONDS",
        _seconds,
    ),
    "--on-stop": _Option(
        "on_stop",
        "whether the rules stay in the switches when the controller stops, so that the network goes on "
        "forwarding, or are removed",
        choices=("keep", "remove"),
    ),
    "--store": _Option(
        "store",
        "SQLite file that keeps flows, learned hosts and changed links over a restart (default: one file for "
        f"each topology in the user's state directory; `{NO_STORE}` keeps nothing), or "
        "etcd://HOST:2379,HOST:2379,... shared by several controllers, of which one leads",
        "FILE",
        shows_default=False,
    ),
}


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that are given by options, in the shape of the configuration."""
    settings: dict[str, Any] = {}
    for name, option in _OPTIONS.items():
        value = getattr(options, name.removeprefix("--").replace("-", "_"))
        if value is not None:
            *tables, key = option.setting.split(".")
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
    for name, option in _OPTIONS.items():
        made.add_argument(
            name,
            action="append" if option.is_repeatable else "store",
            type=option.kind,
            metavar=option.metavar or None,
            choices=option.choices or None,
            help=option.help + _default_of(option),
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
    return made


def _default_of(option: _Option) -> str:
    if not option.shows_default:
        return ""
    default = attrgetter(option.setting)(Configuration(topology=""))
    shown = ", ".join(default) if isinstance(default, tuple) else default
    return f" (default {shown:g})" if isinstance(shown, float) else f" (default {shown})"
