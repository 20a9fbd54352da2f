"""Several controllers beside the emulated network, that share an etcd server; one of them leads."""

from __future__ import annotations

import shutil
import subprocess
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from experiments.engines.live.child import ChildFailed
from experiments.engines.live.controller_process import (
    LOOPBACK,
    POLL_S,
    READY_TIMEOUT_S,
    ControllerSubprocess,
)
from switch.processes import end_process
from topologies.model import Network

ETCD_PORTS = 2379, 2380


class Replicas:
    """Runs a number of them, a single one without etcd; a context manager.

    `openflow` has address and port of each, for switches; `grpc_for_hosts` those of all, as `--controller`
    takes them.
    """

    def __init__(self, network: Network, folder: Path, number: int) -> None:
        self._folder = folder
        self._has_etcd = number > 1
        store = f"etcd://{LOOPBACK}:{ETCD_PORTS[0]}" if self._has_etcd else "none"
        self._all = [
            ControllerSubprocess(network, folder, store=store, number=each) for each in range(number)
        ]
        self.openflow = [each.openflow for each in self._all]
        self.grpc_for_hosts = ",".join(each.grpc_for_hosts for each in self._all)
        self._stack = ExitStack()

    def __enter__(self) -> Replicas:
        if self._has_etcd and shutil.which("etcd") is None:
            raise ChildFailed(
                "Several controllers share etcd, which is not installed: apt install etcd-server."
            )
        with ExitStack() as stack:
            if self._has_etcd:
                stack.callback(end_process, self._start_etcd())
            for each in self._all:
                stack.enter_context(each)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start_etcd(self) -> subprocess.Popen[bytes]:
        client, peer = (f"http://{LOOPBACK}:{port}" for port in ETCD_PORTS)
        argv = ["etcd", "--data-dir", str(self._folder / "etcd"), "--initial-cluster", f"default={peer}"]
        argv += ["--listen-client-urls", client, "--advertise-client-urls", client]
        argv += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
        with (self._folder / "etcd.log").open("wb") as log:
            return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait_listening(self) -> None:
        """Wait until all take connections (ChildFailed: one has ended, or does not listen in time)."""
        for each in self._all:
            each.wait_listening()

    def wait_ready(self) -> None:
        """Wait until one leads, and knows every switch and link (ChildFailed: that takes too long)."""
        self._leader().wait_ready()

    def _leader(self) -> ControllerSubprocess:
        if not self._has_etcd:
            return self._all[0]
        deadline = time.monotonic() + READY_TIMEOUT_S
        while time.monotonic() < deadline:
            for each in self._all:
                with suppress(OSError, ValueError):
                    if each.get("/v1/leader")["standing"] == "leader":
                        return each
            time.sleep(POLL_S)
        raise ChildFailed(f"No controller leads after {READY_TIMEOUT_S:g} s.")
