"""All settings of the controller, as one TOML file has them; options of the command line are the same."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator, model_validator

from controller.address import Address
from controller.configuration.access import Token
from controller.model.requests import LinkChange
from controller.model.settings import Counters, Discovery, Routing, Settings

Service = Literal["openflow", "rest", "grpc"]

ETCD = "etcd://"
"""Begins the name of a store that several replicas share."""


def _address(text: str) -> str:
    Address.parse(text)
    return text


AddressText = Annotated[str, AfterValidator(_address)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TlsFiles(_Section):
    """Certificate and key in PEM; with `client_ca`, clients need a certificate that it has signed."""

    certificate: str
    key: str
    client_ca: str | None = None


class Listen(_Section):
    """Where clients and switches connect, and what may do without protection off loopback."""

    openflow: tuple[AddressText, ...] = Field(default=("127.0.0.1:6653",), strict=False)
    rest: tuple[AddressText, ...] = Field(default=("127.0.0.1:8080",), strict=False)
    grpc: tuple[AddressText, ...] = Field(default=("127.0.0.1:50051",), strict=False)
    insecure: tuple[Service, ...] = Field(default=(), strict=False)
    tls: TlsFiles | None = None
    openflow_tls: TlsFiles | None = None


class Etcd(_Section):
    """How a store `etcd://…` is reached, and this replica by the others.

    Attributes:
        prefix: Of all keys; the network's name follows.
        ca: PEM of the authority that has signed the servers' certificates; without it there is no TLS.
        certificate: PEM of our certificate, with `key`, where the servers ask for one.
        password_file: Holds the password of `user`.
        lease_s: A leader that is silent for so long is one no more (whole seconds).
        advertise: IP address by which clients and other replicas reach this one; by default the one that it
            listens on, or from which it reaches etcd.
    """

    prefix: str = Field(default="/mstcp", pattern="^(/[A-Za-z0-9_.-]+)+$")
    ca: str | None = None
    certificate: str | None = None
    key: str | None = None
    user: str | None = None
    password_file: str | None = None
    lease_s: int = Field(default=2, ge=1, le=60)
    advertise: str | None = None

    @model_validator(mode="after")
    def _is_whole(self) -> Etcd:
        if (self.certificate is None) != (self.key is None):
            raise ValueError("certificate and key belong together: give both or neither")
        if self.certificate is not None and self.ca is None:
            raise ValueError("certificate is for TLS, which needs ca too")
        if (self.user is None) != (self.password_file is None):
            raise ValueError("user and password_file belong together: give both or neither")
        return self


class Configuration(_Section):
    """Everything. A setting that is left out has its default; an unknown one is an error."""

    topology: str
    variant: str | None = None
    store: str | None = None
    on_stop: Literal["keep", "remove"] = "keep"
    listen: Listen = Listen()
    routing: Routing = Routing()
    discovery: Discovery = Discovery()
    counters: Counters = Counters()
    etcd: Etcd = Etcd()
    tokens: tuple[Token, ...] = Field(default=(), strict=False)
    links: dict[str, LinkChange] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _tokens_are_distinct(self) -> Configuration:
        digests = [token.sha256.lower() for token in self.tokens]
        if len(set(digests)) < len(digests):
            raise ValueError("two tokens have the same sha256: each client needs one of its own")
        return self

    def settings(self, lldp_key: bytes) -> Settings:
        """Return what the core is told."""
        return Settings(
            **vars(self.routing),
            **vars(self.discovery),
            counters=self.counters,
            lldp_key=lldp_key,
            replicated=self.etcd_endpoints() is not None,
        )

    def etcd_endpoints(self) -> tuple[str, ...] | None:
        """Return `HOST:PORT` of each of etcd's servers; None where the store is a file, or none."""
        if self.store is None or not self.store.startswith(ETCD):
            return None
        return tuple(self.store.removeprefix(ETCD).split(","))

    @field_validator("store")
    @classmethod
    def _names_servers(cls, store: str | None) -> str | None:
        for endpoint in store.removeprefix(ETCD).split(",") if store and store.startswith(ETCD) else ():
            host, colon, port = endpoint.rpartition(":")
            if not (host and colon and port.isdigit() and 0 < int(port) < 65536):
                raise ValueError(
                    f"{endpoint!r} is not HOST:PORT; write the servers as etcd://HOST:2379,HOST:2379"
                )
        return store

    def unprotected(self) -> str | None:
        """Return what listens off loopback without the protection that it needs, as a sentence; or None."""
        for service in get_args(Service):
            missing = [] if service in self.listen.insecure else self._missing(service)
            far = [text for text in getattr(self.listen, service) if not Address.parse(text).is_loopback]
            if far and missing:
                return (
                    f"{service} on {far[0]}, which other machines reach, needs {' and '.join(missing)}. "
                    f"Configure them, listen on loopback, or waive this with --insecure {service}"
                )
        return None

    def _missing(self, service: str) -> list[str]:
        if service == "openflow":
            return [] if self.listen.openflow_tls else ["TLS ([listen.openflow_tls])"]
        tls = [] if self.listen.tls else ["TLS ([listen.tls])"]
        return tls + ([] if self.tokens else ["tokens ([[tokens]])"])
