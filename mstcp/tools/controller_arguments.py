"""The arguments of the commands that say which controller to ask, and how to speak to it."""

from __future__ import annotations

import argparse
from pathlib import Path

from mstcp.control import TOKEN_VARIABLE, ControllerAddress
from mstcp.endpoints import check_readable, parse_endpoints


def add_controller(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """Add the arguments of a command that asks a controller, or may."""
    group = parser.add_argument_group("controller")
    group.add_argument(
        "--controller",
        required=required,
        metavar="ADDRESS:PORT,…",
        help="controller to request the streams from, or several that share their state; needs --rate",
    )
    group.add_argument(
        "--controller-token-file",
        metavar="FILE",
        help=f"file with the token for the controller (default: the variable {TOKEN_VARIABLE}, if set)",
    )
    group.add_argument(
        "--controller-ca",
        metavar="FILE",
        help="connect to the controller over TLS and trust this authority (PEM)",
    )
    group.add_argument(
        "--controller-cert",
        metavar="FILE",
        help="client certificate for a controller that requires one (PEM)",
    )
    group.add_argument(
        "--controller-key",
        metavar="FILE",
        help="key of the client certificate (default: in the file of --controller-cert)",
    )


def controller_of(arguments: argparse.Namespace) -> ControllerAddress | None:
    """Return the controller that the arguments name, if they do.

    Raises:
        ValueError: An address is none, the arguments do not go together, or the token's file is empty.
        OSError: A file cannot be read.
    """
    token_file, ca_file = arguments.controller_token_file, arguments.controller_ca
    certificate, key = arguments.controller_cert, arguments.controller_key
    if arguments.controller is None:
        if any(file is not None for file in (token_file, ca_file, certificate, key)):
            raise ValueError("the --controller-... options need --controller")
        return None
    parse_endpoints(arguments.controller)
    if key is not None and certificate is None:
        raise ValueError("--controller-key is the key of --controller-cert: give both")
    if certificate is not None and ca_file is None:
        raise ValueError("--controller-cert is for TLS, which needs --controller-ca")
    for file in (ca_file, certificate, key):
        if file is not None:
            check_readable(file)
    return ControllerAddress(
        arguments.controller,
        token=None if token_file is None else _token(token_file),
        ca_file=ca_file,
        certificate_files=None if certificate is None else (certificate, key or certificate),
    )


def _token(file: str) -> str:
    token = Path(file).read_text(encoding="ascii").strip()
    if not token:
        raise ValueError(f"{file} is empty: it has no token")
    return token
