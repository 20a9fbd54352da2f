"""Three controllers that share etcd, for drills and tests: started, frozen, cut off, and asked who leads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

from switch.ovs import PrivateInstance
from tests.fakes.etcd_servers import EtcdServers

__all__ = ["Replica", "Replicas", "ask", "changed_rules", "rule_ages"]

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
_ASK_S = 0.5
_TIMEOUT_S = 60.0


class Replica:
    """A controller; started again it has the same addresses. Relays lead to etcd, and to it from switches.

    Args:
        folder: For its log.
        number: Its place among the replicas.
        etcd: The servers.
        options: Of the command, beside addresses and store.
    """

    def __init__(self, folder: Path, number: int, etcd: EtcdServers, options: Sequence[str]) -> None:
        self.openflow, self.address = (HOST, 6653 + number), f"{HOST}:{8080 + number}"
        self.grpc_port = 50061 + number
        self.log = folder / f"controller{number}.log"
        own_port, first = 16_653 + number, 20_000 + 10 * number
        etcd_ports = [int(endpoint.rpartition(":")[2]) for endpoint in etcd.endpoints]
        self._relays = {
            "switches": [_relay(self.openflow[1], own_port)],
            "etcd": [_relay(first + place, port) for place, port in enumerate(etcd_ports)],
        }
        store = "etcd://" + ",".join(f"{HOST}:{first + place}" for place in range(len(etcd_ports)))
        # Hosts reach it over the management network, which nobody else does.
        grpc = ["--insecure", "grpc", "--grpc", f"0.0.0.0:{self.grpc_port}"]
        self._words = ["--openflow", f"{HOST}:{own_port}", "--rest", self.address, *grpc]
        self._words += ["--store", store, *options]
        self.start()

    def start(self) -> None:
        """Start it; returns once it listens."""
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "controller.cli", *self._words],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
        assert self.process.stdout is not None
        if not self.process.stdout.readline():
            raise RuntimeError(f"a controller did not start: {self.log.read_text()}")

    def kill(self) -> None:
        """End it as a crash would."""
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        """Stop its process until `go_on`."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def cut_off(self, *from_what: str) -> None:
        """Let nothing pass between it and these, `etcd` or `switches`."""
        for relay in (each for what in from_what for each in self._relays[what]):
            relay.send_signal(signal.SIGSTOP)

    def reconnect(self) -> None:
        """Let all pass again."""
        for relay in chain.from_iterable(self._relays.values()):
            relay.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, however it is."""
        self.kill()
        for relay in chain.from_iterable(self._relays.values()):
            relay.kill()
            relay.wait()

    def ask(self, method: str, path: str, body: Any = None, timeout_s: float = _TIMEOUT_S) -> Any:
        """Return what REST answers; raises OSError where it refuses, or does not answer in time."""
        return ask(self.address, method, path, body, timeout_s)

    def standing(self) -> str:
        """Return what it is; empty where it does not answer."""
        try:
            return str(self.ask("GET", "/leader", timeout_s=_ASK_S)["standing"])
        except OSError:
            return ""


def ask(address: str, method: str, path: str, body: Any = None, timeout_s: float = _TIMEOUT_S) -> Any:
    """Return what the REST service at an address answers (OSError: it refuses, or does not in time)."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    asked = urllib.request.Request(f"http://{address}/v1{path}", data, headers, method=method)
    with urllib.request.urlopen(asked, timeout=timeout_s) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def _relay(port: int, to: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "benchmarks.drills.relay", str(port), str(to)], cwd=ROOT)


class Replicas:
    """Three controllers and three etcd servers, ended with the stack.

    Args:
        folder: For logs and data.
        stack: Ends them.
        options: Of each controller.
    """

    def __init__(self, folder: Path, stack: ExitStack, *options: str) -> None:
        self.etcd = stack.enter_context(EtcdServers(folder, 3))
        self.all: list[Replica] = []
        for number in range(3):
            self.all.append(Replica(folder, number, self.etcd, options))
            stack.callback(self.all[-1].close)

    def leader(self, *without: Replica) -> Replica:
        """Wait for a replica that leads, one of the others where some are named."""
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            for each in self.all:
                if each not in without and each.standing() == "leader":
                    return each
            time.sleep(0.01)
        logs = [each.log.read_text().splitlines()[-3:] for each in self.all]
        raise RuntimeError(f"no replica leads after {_TIMEOUT_S:g} s; the logs end with {logs}")

    def serve_again(self, request: Callable[[int], dict[str, Any]], *without: Replica) -> float:
        """Ask for a flow until one is granted, release it, and return how many seconds that took."""
        began = time.monotonic()
        for port in range(42_000, 65_000):
            granted_at = self._serves(self.leader(*without), request(port))
            if granted_at is not None:
                return granted_at - began
            if time.monotonic() > began + _TIMEOUT_S:
                break
            time.sleep(0.01)
        raise RuntimeError(f"no flow is granted after {_TIMEOUT_S:g} s")

    @staticmethod
    def _serves(leader: Replica, request: dict[str, Any]) -> float | None:
        """Return when a flow was granted; None where it is not."""
        try:
            flow = leader.ask("POST", "/flows", request, timeout_s=5.0)
            granted_at = time.monotonic()
            leader.ask("DELETE", f"/flows/{flow['flow_id']}")
        except OSError:
            return None
        return granted_at


def rule_ages(ovs: PrivateInstance, bridges: Sequence[str]) -> dict[str, float]:
    """Return how old each rule is, by bridge and rule."""
    ages = {}
    for bridge in bridges:
        for line in ovs.ofctl("dump-flows", bridge).splitlines():
            age = re.search(r"duration=([\d.]+)s", line)
            if age is not None:
                rule = re.sub(r"(duration|n_packets|n_bytes|idle_age|hard_age)=[^,]*,? ?", "", line)
                ages[f"{bridge} {rule}"] = float(age[1])
    return ages


def changed_rules(before: dict[str, float], now: dict[str, float]) -> int:
    """Return how many rules came, went, or were put there again."""
    again = sum(rule in now and now[rule] < age_s for rule, age_s in before.items())
    return again + len(before.keys() ^ now.keys())
