"""The TLS arguments of the commands, and the contexts that their files make."""

from __future__ import annotations

import argparse
import ssl
from typing import Any

from mstcp.endpoints import check_readable


def add_tls(parser: argparse.ArgumentParser, *, listens: bool = False, connects: bool = False) -> None:
    """Add the arguments of the side that listens, of the one that connects, or of both."""
    group = parser.add_argument_group("TLS")
    if listens:
        group.add_argument(
            "--tls-cert", metavar="FILE", help="accept only TLS, with this certificate chain (PEM)"
        )
        group.add_argument(
            "--tls-key", metavar="FILE", help="key of the certificate (default: in the file of --tls-cert)"
        )
    if connects:
        group.add_argument("--tls", action="store_true", help="use TLS on every stream")
        group.add_argument(
            "--tls-ca", metavar="FILE", help="certificate authority to trust (PEM; default: the system's)"
        )
        group.add_argument(
            "--tls-name", metavar="NAME", help="name that the server's certificate must have (default: HOST)"
        )


def server_tls(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `start_server` for TLS.

    Raises:
        ValueError: The files are no certificate and its key.
        OSError: One cannot be read.
    """
    certificate, key = arguments.tls_cert, arguments.tls_key
    if certificate is None:
        if key is not None:
            raise ValueError("--tls-key is the key of --tls-cert: give both")
        return {}
    for file in (certificate, key or certificate):
        check_readable(file)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    def no_passphrase() -> str:
        raise ValueError(f"{key or certificate} is encrypted: give the key without a passphrase")

    try:
        context.load_cert_chain(certificate, key, no_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"{key or certificate} has not the key of {certificate}") from None
        if key is None:
            raise ValueError(
                f"{certificate} has no certificate with its key in PEM form: --tls-key names another file"
            ) from None
        raise ValueError(f"{certificate} and {key} are no certificate and its key in PEM form") from None
    return {"ssl": context}


def client_tls(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `open_connection` for TLS.

    Raises:
        ValueError: The file has no certificates, or TLS is not asked for.
        OSError: It cannot be read.
    """
    authorities, name = arguments.tls_ca, arguments.tls_name
    if not arguments.tls:
        if authorities is not None or name is not None:
            raise ValueError("--tls-ca and --tls-name need --tls")
        return {}
    if name == "":
        raise ValueError("--tls-name is empty: give the name that the certificate must have")
    if authorities is not None:
        check_readable(authorities)
    try:
        context = ssl.create_default_context(cafile=authorities)
    except ssl.SSLError:
        raise ValueError(f"{authorities} has no certificates in PEM form") from None
    return {"ssl": context, "server_hostname": name}
