"""The command line: each option is a setting of the configuration, which it comes before."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from gomr import OBJECTIVES
from pydantic import TypeAdapter, ValidationError

from controller.address import Address
from controller.configuration.schema import Configuration, Service
from controller.model.settings import Counters, Discovery, Routing
from topologies.validation import requirement

NO_STORE = "none"


class _Option(NamedTuple):
    """An option that is a setting.

    Attributes:
        setting: Where it stands in the configuration.
        help: What it does, as a phrase; the default follows.
        metavar: What stands for its value; empty where there are choices.
        kind: Makes the value of its text.
        choices: What it may be.
        is_repeatable: It may be given several times.
    """

    setting: str
    help: str
    metavar: str = ""
    kind: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    is_repeatable: bool = False


def _address(text: str) -> str:
    try:
        return str(Address.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_SECTIONS: dict[str, Any] = {"routing": Routing, "discovery": Discovery, "counters": Counters}


def _of_section(setting: str) -> _Option:
    """Return the option for a number, or for one of several words, of a section of the configuration."""
    table, key = setting.split(".")
    section = _SECTIONS[table]
    words = OBJECTIVES if key == "objective" else get_args(get_type_hints(section)[key])

    def number(text: str) -> float:
        try:
            value = float(text)
            TypeAdapter(section).validate_python({key: value})
        except ValidationError as error:
            raise argparse.ArgumentTypeError(requirement(error.errors()[0])) from None
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
        return value

    text = section.__dataclass_fields__[key].metadata["description"]
    if words:
        return _Option(setting, text, choices=tuple(sorted(words)))
    return _Option(setting, text, "SECONDS" if key.endswith("_s") else key.split("_")[1].upper(), number)


_OPTIONS = {
    "--topology": _Option(
        "topology",
        "network to control: a built-in name (butterfly), a .toml, .json or .graphml file, or a generator "
        "(ring:6)",
        "NET",
    ),
    "--variant": _Option("variant", "variant of the topology, one of those that its file defines", "NAME"),
    **{
        f"--{name}": _Option(
            f"listen.{name}",
            "address to listen on; repeatable; port 0 takes a free one",
            "IP:PORT",
            _address,
            is_repeatable=True,
        )
        for name in get_args(Service)
    },
    "--insecure": _Option(
        "listen.insecure",
        "allow openflow, rest or grpc to listen on addresses other than loopback without TLS and tokens; "
        "repeatable",
        "SERVICE",
        choices=get_args(Service),
        is_repeatable=True,
    ),
    "--objective": _of_section("routing.objective"),
    "--default-routing": _of_section("routing.default_routing"),
    "--lease": _of_section("routing.lease_s"),
    "--ack-ratio": _of_section("routing.ack_ratio"),
    "--planning-time": _of_section("routing.planning_s"),
    "--reserved-share": _of_section("routing.reserved_share"),
    "--policing-burst": _of_section("routing.policing_burst_s"),
    "--probe-interval": _of_section("discovery.probe_interval_s"),
    "--silence": _of_section("discovery.silence_s"),
    "--counter-interval": _of_section("counters.interval_s"),
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
    default = attrgetter(option.setting)(Configuration(topology=""))
    if default in (None, "", ()):
        return ""
    shown = ", ".join(default) if isinstance(default, tuple) else default
    return f" (default {shown:g})" if isinstance(shown, float) else f" (default {shown})"
