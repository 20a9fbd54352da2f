"""Real etcd servers on loopback ports of their own, ended with the context."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path
from types import TracebackType

from tests.fakes.waiting import wait_until

HOST = "127.0.0.1"


class EtcdServers:
    """A cluster.

    Args:
        folder: For data and logs.
        number: How many servers.
        host: Where they listen.
    """

    def __init__(self, folder: Path, number: int = 1, host: str = HOST) -> None:
        self._folder = folder
        ports = _free_ports(host, 2 * number)
        self.endpoints = tuple(f"{host}:{port}" for port in ports[:number])
        self._peers = [f"http://{host}:{port}" for port in ports[number:]]
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
        client, peer = f"http://{self.endpoints[number]}", self._peers[number]
        words = ["--name", f"etcd{number}", "--data-dir", str(data), "--initial-cluster", cluster]
        words += ["--listen-client-urls", client, "--advertise-client-urls", client]
        words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        with (self._folder / f"etcd{number}.log").open("ab") as log:
            return subprocess.Popen(["etcd", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)

    def is_healthy(self) -> bool:
        """Return whether every server that runs answers and has a leader."""
        for endpoint, process in zip(self.endpoints, self.processes, strict=True):
            if process.poll() is None:
                try:
                    with urllib.request.urlopen(f"http://{endpoint}/health", timeout=2.0) as answer:
                        if json.load(answer)["health"] != "true":
                            return False
                except OSError:
                    return False
        return True


def is_there() -> bool:
    """Return whether etcd is installed."""
    return shutil.which("etcd") is not None


def _free_ports(host: str, number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for each in sockets:
        each.bind((host, 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
