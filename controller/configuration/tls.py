"""Certificates: what REST, gRPC and OpenFlow are given of the files that the configuration names."""

from __future__ import annotations

import ssl
from pathlib import Path

from controller.configuration.schema import TlsFiles
from controller.errors import ConfigError

__all__ = ["openflow_context", "read_pem", "server_context"]


def server_context(setting: str, files: TlsFiles) -> ssl.SSLContext:
    """Return a server's context; with `client_ca`, clients need a certificate.

    Raises:
        ConfigError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(
            setting, f"{files.certificate} and {files.key} cannot be used: {_reason(error)}."
        ) from None
    if files.client_ca is not None:
        try:
            context.load_verify_locations(files.client_ca)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(setting, f"{files.client_ca} cannot be used: {_reason(error)}.") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def openflow_context(files: TlsFiles | None) -> ssl.SSLContext | None:
    """Return the context of switches' connections; None where they are not protected."""
    return None if files is None else server_context("listen.openflow_tls", files)


def read_pem(setting: str, file: str) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(setting, f"{file} cannot be read: {error.strerror}.") from None


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
