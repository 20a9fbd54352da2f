"""Checks of what an application asks for; each raises LocalProtocolError with a sentence."""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Sequence

from mstcp.errors import LocalProtocolError

MAX_PORT = 65_535
MAX_BPS = 1e18
MAX_S = 1e9


def check_whole(name: str, value: object, least: int, most: int, *, optional: bool = False) -> None:
    """Check an option that is a whole number; LocalProtocolError if it is none or out of range."""
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        otherwise = " or None" if optional else ""
        raise LocalProtocolError(f"{name} is a whole number from {least} to {most}{otherwise}, not {value!r}")


def check_seconds(name: str, value: object, *, least: float = 0.001) -> None:
    """Check an option that is a time in seconds; LocalProtocolError if it is none."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and math.isfinite(value) and value >= least):  # type: ignore[arg-type, operator]
        raise LocalProtocolError(f"{name} is a time in seconds from {least:g} on, not {value!r}")


def check_number(name: str, value: object, most: float, unit: str, *, optional: bool = False) -> None:
    """Check an option that is a number from 0 to `most`, which need not be whole."""
    if value is None and optional:
        return
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number and 0 <= value <= most):  # type: ignore[operator]
        otherwise = " or None" if optional else ""
        what = f"a number {unit} from 0 to {most:g}{otherwise}"
        raise LocalProtocolError(f"{name} is {what}, not {value!r}")


def check_flag(name: str, value: object) -> None:
    """Check an option that is True or False."""
    if not isinstance(value, bool):
        raise LocalProtocolError(f"{name} is True or False, not {value!r}")


def check_type(name: str, value: object, kind: type | tuple[type, ...], what: str) -> None:
    """Check an option that is None or of a type; LocalProtocolError if it is neither."""
    if value is not None and not isinstance(value, kind):
        raise LocalProtocolError(f"{name} is {what} or None, not {value!r}")


def check_callable(name: str, value: object) -> None:
    """Check an option that is None or a function."""
    if value is not None and not callable(value):
        raise LocalProtocolError(f"{name} is a function or None, not {value!r}")


def check_list(name: str, value: object, kind: type, least: int = 0) -> None:
    """Check a list or another sequence of things of one type; a single string is none of strings."""
    is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
    if not is_sequence or len(value) < least or any(not isinstance(part, kind) for part in value):  # type: ignore[arg-type, attr-defined]
        number = f"of {least} at least, each " if least else "of "
        raise LocalProtocolError(f"{name} is a list {number}{kind.__name__}, not {value!r}")


def check_ip_addresses(name: str, value: object) -> None:
    """Check a list of pairs of IP address and port."""
    check_list(name, value, tuple)
    for pair in value:  # type: ignore[attr-defined]
        try:
            host, port = pair
            ipaddress.ip_address(str(host))
        except ValueError:
            raise LocalProtocolError(f"{name} has pairs of IP address and port, not {pair!r}") from None
        check_whole(f"port of {name}", port, 1, MAX_PORT)


def check_address(host: object, port: object, least_port: int) -> None:
    """Check host and port of a socket; a port may also be a service's name, as for `getaddrinfo`."""
    check_type("host", host, str, "a name or an address")
    if not isinstance(port, str):
        check_whole("port", port, least_port, MAX_PORT, optional=True)
