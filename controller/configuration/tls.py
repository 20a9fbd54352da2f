"""Certificates: what REST, gRPC and OpenFlow are given of the files that the configuration names."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import grpc

from controller.configuration.schema import TlsFiles
from controller.errors import ConfigError

_Pem = tuple[bytes, bytes, bytes | None]
"""Key, certificate, and the authority of clients."""


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


class ServerTls:
    """Certificates of a service, which may be read again: connections that begin later are given the new.

    Raises:
        ConfigError: a file cannot be used.
    """

    def __init__(self, setting: str, files: TlsFiles) -> None:
        self._setting = setting
        self._current, self._pem = self._read(files)
        self.needs_client = files.client_ca is not None
        self.context = self._current
        # OpenSSL asks at the beginning of each handshake, whether the client names a server or not.
        self.context.sni_callback = self._choose

    def read(self, files: TlsFiles) -> Callable[[], None]:
        """Read certificates again; returns what puts them in force.

        Raises:
            ConfigError: a file cannot be used, or whether clients need a certificate would change.
        """
        if (files.client_ca is not None) != self.needs_client:
            raise ConfigError(
                f"{self._setting}.client_ca", "cannot come or go while the controller runs; restart it."
            )
        current, pem = self._read(files)

        def put_in_force() -> None:
            self._current, self._pem = current, pem

        return put_in_force

    def _read(self, files: TlsFiles) -> tuple[ssl.SSLContext, _Pem]:
        context = server_context(self._setting, files)
        names = (files.key, files.certificate, files.client_ca)
        key, certificate, ca = (None if each is None else read_file(self._setting, each) for each in names)
        assert key is not None and certificate is not None
        return context, (key, certificate, ca)

    def _choose(
        self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _: ssl.SSLContext
    ) -> None:
        if self._current is not self.context:
            connection.context = self._current

    def grpc_credentials(self) -> grpc.ServerCredentials:
        """Return the same for gRPC, which asks for the certificates at each handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._grpc_configuration(), self._grpc_configuration, self.needs_client
        )

    def _grpc_configuration(self) -> grpc.ServerCertificateConfiguration:
        key, certificate, ca = self._pem
        return grpc.ssl_server_certificate_configuration([(key, certificate)], ca)


def read_file(setting: str, file: str) -> bytes:
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
