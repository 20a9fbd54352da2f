"""Real etcd servers on loopback ports of their own, ended with the context."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

import trustme

from tests.fakes.ports import free_ports
from tests.fakes.waiting import wait_until

HOST = "127.0.0.1"


class EtcdServers:
    """A cluster.

    Args:
        folder: For data and logs.
        number: How many servers.
        authority: With it they speak TLS, and ask clients for a certificate of this authority.
    """

    def __init__(self, folder: Path, number: int = 1, authority: trustme.CA | None = None) -> None:
        self._folder = folder
        ports = free_ports(2 * number)
        self.endpoints = tuple(f"{HOST}:{port}" for port in ports[:number])
        self._peers = [f"http://{HOST}:{port}" for port in ports[number:]]
        self._scheme, self._tls_words, self._tls = "http", [], None
        if authority is not None:
            self._scheme, self._tls = "https", ssl.create_default_context()
            authority.configure_trust(self._tls)
            own = authority.issue_cert(HOST)
            own.configure_cert(self._tls)
            files = [folder / name for name in ("etcd.pem", "etcd.key", "authority.pem")]
            own.cert_chain_pems[0].write_to_path(files[0])
            own.private_key_pem.write_to_path(files[1])
            authority.cert_pem.write_to_path(files[2])
            options = ("--cert-file", "--key-file", "--trusted-ca-file")
            self._tls_words = [word for pair in zip(options, map(str, files), strict=True) for word in pair]
            self._tls_words.append("--client-cert-auth")
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def store(self) -> str:
        """What `--store` takes."""
        return "etcd://" + ",".join(self.endpoints)

    def __enter__(self) -> EtcdServers:
        self.processes = [self.start(number) for number in range(len(self.endpoints))]
        wait_until(self.is_healthy, "etcd to have a leader")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    def start(self, number: int) -> subprocess.Popen[bytes]:
        """Start a server with the data that it has left, if it has run before."""
        data = self._folder / f"etcd{number}"
        cluster = ",".join(f"etcd{each}={peer}" for each, peer in enumerate(self._peers))
        client, peer = f"{self._scheme}://{self.endpoints[number]}", self._peers[number]
        words = ["--name", f"etcd{number}", "--data-dir", str(data), "--initial-cluster", cluster]
        words += ["--listen-client-urls", client, "--advertise-client-urls", client]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, *self._tls_words]
        with (self._folder / f"etcd{number}.log").open("ab") as log:
            return subprocess.Popen(["etcd", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def ask(self, endpoint: str, path: str, **fields: object) -> Any:
        """Return what a server's JSON interface answers."""
        data = json.dumps(fields).encode() if fields else None
        url = f"{self._scheme}://{endpoint}{path}"
        with urllib.request.urlopen(url, data, timeout=2.0, context=self._tls) as answer:
            return json.load(answer)

    def is_healthy(self) -> bool:
        """Return whether every server that runs answers and has a leader."""
        for endpoint, process in zip(self.endpoints, self.processes, strict=True):
            if process.poll() is None:
                try:
                    if self.ask(endpoint, "/health")["health"] != "true":
                        return False
                except OSError:
                    return False
        return True


def is_there() -> bool:
    """Return whether etcd is installed."""
    return shutil.which("etcd") is not None
