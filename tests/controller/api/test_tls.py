"""TLS on REST, gRPC and OpenFlow: certificates are checked on both sides, and a switch is who it says."""

import asyncio
import contextlib
import os
import signal
import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
import trustme

from mstcp.control import ControllerClient
from mstcp.errors import ControllerError
from switch.model import ModelSwitch
from tests.fakes.controller_command import started
from tests.fakes.requests import OF_CLIENT
from tests.fakes.waiting import TIMEOUT_S, wait_until

HELLO = bytes([4, 0, 0, 8, 0, 0, 0, 1])


class Files:
    """A certificate authority and what it has signed, as PEM files."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        self.ca = self._write(folder / "ca.pem", authority.cert_pem)
        self.client_view = self._write(folder / "seen-by-clients.pem", authority.cert_pem)
        self.server = self._pair(folder / "server", authority.issue_cert("127.0.0.1", "localhost"))
        self.client = self._pair(folder / "client", authority.issue_cert("client", common_name="client"))
        self.switch = self._pair(folder / "switch", authority.issue_cert("S0", common_name="S0"))
        self.stranger = self._pair(folder / "stranger", trustme.CA().issue_cert("S0", common_name="S0"))

    @staticmethod
    def _write(path: Path, *blobs: trustme.Blob) -> str:
        path.write_bytes(b"".join(blob.bytes() for blob in blobs))
        return str(path)

    def _pair(self, path: Path, leaf: trustme.LeafCert) -> tuple[str, str]:
        chain = self._write(path.with_suffix(".pem"), *leaf.cert_chain_pems)
        return chain, self._write(path.with_suffix(".key"), leaf.private_key_pem)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("certificates"))


@contextmanager
def running(files: Files, folder: Path) -> Iterator[dict[str, list[str]]]:
    certificate, key = files.server
    tls = f'certificate = "{certificate}"\nkey = "{key}"\nclient_ca = "{files.ca}"\n'
    listen = "\n".join(f'{name} = ["127.0.0.1:0"]' for name in ("openflow", "rest", "grpc"))
    text = f'topology = "butterfly"\nstore = "none"\n[listen]\n{listen}\n'
    text += f"[listen.tls]\n{tls}[listen.openflow_tls]\n{tls}"
    (folder / "controller.toml").write_text(text)
    with started(folder / "log", "--config", str(folder / "controller.toml")) as (_, ready):
        yield ready


def test_all_three_services(files: Files, tmp_path: Path) -> None:
    with running(files, tmp_path) as ready:
        _check_rest(files, ready["rest"][0])
        asyncio.run(_check_grpc(files, ready["grpc"][0]))
        _check_openflow(files, ready["openflow"][0], tmp_path / "log")


def _check_rest(files: Files, address: str) -> None:
    trusting = ssl.create_default_context(cafile=files.ca)
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{address}/healthz", timeout=TIMEOUT_S)
    with pytest.raises(httpx.HTTPError):  # without a certificate of its own
        httpx.get(f"https://{address}/healthz", verify=trusting, timeout=TIMEOUT_S)
    trusting.load_cert_chain(*files.client)
    answer = httpx.get(f"https://{address}/healthz", verify=trusting, timeout=TIMEOUT_S)
    assert answer.json() == {"status": "ok"}


async def _check_grpc(files: Files, address: str) -> None:
    async with ControllerClient(address, ca_file=files.ca, certificate_files=files.client) as client:
        with pytest.raises(ControllerError, match="cannot be reached from"):  # no switch is there: an answer
            await client.request(**OF_CLIENT)
    for options, reason in (
        ({}, "where it speaks TLS, give the certificate of its authority: ca_file="),
        ({"ca_file": files.ca}, ""),
        ({"ca_file": files.ca, "certificate_files": files.stranger}, ""),
        ({"ca_file": files.stranger[0]}, "its certificate is not one for this address by an authority in "),
    ):
        async with ControllerClient(address, timeout_s=TIMEOUT_S, **options) as client:
            with pytest.raises(ControllerError, match=f"cannot reach {address}: .*{reason}"):
                await client.request(**OF_CLIENT)


def _check_openflow(files: Files, address: str, log: Path) -> None:
    with contextlib.suppress(OSError), _connected(address, None, files) as plain:
        plain.sendall(HELLO)
        assert plain.recv(8)[:2] != HELLO[:2]
    with contextlib.suppress(OSError), _connected(address, files.stranger, files) as stranger:
        stranger.sendall(HELLO)
        assert stranger.recv(8) == b""
    with _connected(address, files.switch, files) as switch:
        assert _is_given_rules(switch, datapath_id=1), "S0 has datapath id 1"
    with _connected(address, files.switch, files) as switch:
        with contextlib.suppress(OSError):
            assert not _is_given_rules(switch, datapath_id=2)
    # Written by a thread of its own.
    wait_until(lambda: "claims datapath id 2" in log.read_text(), "the refusal in the log")


def _connected(address: str, pair: tuple[str, str] | None, files: Files) -> socket.socket:
    host, port = address.split(":")
    connected = socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
    if pair is None:
        return connected
    context = ssl.create_default_context(cafile=files.ca)
    context.load_cert_chain(*pair)
    return context.wrap_socket(connected, server_hostname="127.0.0.1")


def _is_given_rules(switch: socket.socket, datapath_id: int) -> bool:
    """Answer as the switch with this id does; return whether rules come."""
    model = ModelSwitch(datapath_id, frozenset({1}), "S0")
    switch.sendall(model.connect(switch))
    while not len(model.tables) and (data := switch.recv(1 << 16)):
        switch.sendall(model.receive(data, switch))
    return len(model.tables) > 0


def test_certificates_are_read_again(tmp_path: Path) -> None:
    """Of all three services, server's and clients' ones; files that cannot be used change nothing."""
    old = Files(tmp_path)
    with running(old, tmp_path) as ready:
        process = int(ready["pid"])  # type: ignore[call-overload]
        (tmp_path / "renewed").mkdir()
        new = Files(tmp_path / "renewed")
        for before, after in zip((*old.server, old.ca), (*new.server, new.ca), strict=True):
            Path(before).write_bytes(Path(after).read_bytes())
        os.kill(process, signal.SIGHUP)
        addresses = [ready[name][0] for name in ("rest", "grpc", "openflow")]
        for address in addresses:
            wait_until(partial(_is_trusted, address, new), f"the new certificate of {address}")
        for address in addresses:
            assert not _is_trusted(address, old)
        Path(old.server[0]).write_text("no certificate")
        os.kill(process, signal.SIGHUP)
        wait_until(lambda: "configuration is as before" in (tmp_path / "log").read_text(), "the refusal")
        assert all(_is_trusted(address, new) for address in addresses)


def _is_trusted(address: str, files: Files) -> bool:
    """Return whether a client of an authority and a service trust each other."""
    host, port = address.split(":")
    context = ssl.create_default_context(cafile=files.client_view)
    context.load_cert_chain(*files.client)
    context.set_alpn_protocols(["h2", "http/1.1"])
    try:
        with socket.create_connection((host, int(port)), timeout=TIMEOUT_S) as plain:
            with context.wrap_socket(plain, server_hostname="127.0.0.1") as protected:
                protected.settimeout(1.0)
                with contextlib.suppress(TimeoutError):
                    protected.recv(1)  # TLS 1.3: a client learns then that its certificate is refused
                return True
    except (ssl.SSLError, ConnectionError):
        return False
