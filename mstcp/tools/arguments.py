"""The `mstcp` command's arguments: numbers with their ranges, and the options about streams."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from mstcp import _core
from mstcp.tools.controller_arguments import add_controller

__all__ = [
    "add_connection",
    "checked",
    "count_argument",
    "port_argument",
    "rate_argument",
    "seconds_argument",
]


def checked(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a parser of an argument whose ValueError argparse shows as it is."""

    def parsed(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return parsed


def _number(least: float, most: float, kind: type[float] | type[int], what: str) -> Callable[[str], Any]:
    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = kind(-1)
        if not least <= value <= most:
            raise ValueError(f"{text!r} is not {what}")
        return value

    return checked(parse)


rate_argument = _number(1, 1e15, float, "a rate in bit/s, as 8.5e6")
port_argument = _number(1, 65535, int, "a port of 1 to 65535")
seconds_argument = _number(0.01, 1e6, float, "a time in seconds, as 5")
count_argument = _number(1, _core.MAX_STREAMS, int, f"a number of streams, 1 to {_core.MAX_STREAMS}")


def _rates(text: str) -> list[float]:
    return [rate_argument(part) for part in text.split(",")]


def add_connection(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which streams to open, by hand or by a controller."""
    group = parser.add_argument_group("streams")
    group.add_argument(
        "--streams",
        type=count_argument,
        metavar="N",
        help="number of streams if --rates is not given (default: 2)",
    )
    group.add_argument(
        "--rates", type=_rates, metavar="BPS,...", help="open one stream for each rate, in bit/s: 5e6,3e6"
    )
    group.add_argument(
        "--rate", type=rate_argument, metavar="BPS", help="goodput to request from the controller, in bit/s"
    )
    group.add_argument(
        "--may-grow",
        action="store_true",
        help="let the controller add and remove streams while the connection runs",
    )
    group.add_argument(
        "--source-address",
        metavar="ADDRESS",
        help="local address to connect from (default: the system's choice)",
    )
    group.add_argument(
        "--interfaces",
        action="store_true",
        help="open a stream from each address of this host, also as addresses come and go",
    )
    group.add_argument(
        "--scheduler",
        choices=_core.SCHEDULERS,
        help="how frames are distributed over the streams (default: weighted)",
    )
    add_controller(parser)
