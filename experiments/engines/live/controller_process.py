"""`mstcp-controller` as a process of its own beside the emulated network."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any

from experiments.engines.live.child import ChildFailed, last_line, stop_process
from topologies.model import Network

LOOPBACK = "127.0.0.1"
MANAGEMENT = "10.255.0.1"
OPENFLOW_PORT = 6653
REST_PORT = 8080
GRPC_PORT = 50051
READY_TIMEOUT_S = 45.0
POLL_S = 0.1
REQUEST_TIMEOUT_S = 5.0


class ControllerProcess:
    """Runs the controller for a network; a context manager.

    It listens on loopback and, for the hosts, on the management network.

    Args:
        network: what it is told of the topology.
        folder: for its topology file and log.
    """

    openflow = (LOOPBACK, OPENFLOW_PORT)
    grpc_for_hosts = f"{MANAGEMENT}:{GRPC_PORT}"

    def __init__(self, network: Network, folder: Path) -> None:
        self._log = folder / "controller.log"
        self._topology = folder / "network.json"
        self._topology.write_text(network.model_dump_json(indent=1))
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ControllerProcess:
        argv = [
            sys.executable,
            "-m",
            "controller.cli",
            "--topology",
            str(self._topology),
            "--log-format",
            "json",
        ]
        argv += ["--openflow", f"{LOOPBACK}:{OPENFLOW_PORT}"]
        for address in (LOOPBACK, MANAGEMENT):
            argv += ["--rest", f"{address}:{REST_PORT}", "--grpc", f"{address}:{GRPC_PORT}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            stop_process(self._process)

    def wait_ready(self) -> None:
        """Wait until it knows every switch and link and all rules are in.

        Raises:
            ChildFailed: it ended, or is not ready in time; the text says what is missing.
        """
        deadline = time.monotonic() + READY_TIMEOUT_S
        missing = "it does not answer"
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                raise ChildFailed(f"The controller ended.{last_line(self._log)}")
            try:
                health = self.get("/v1/health")
            except (OSError, ValueError):
                time.sleep(POLL_S)
                continue
            if health["ready"]:
                return
            missing = _what_is_missing(health)
            time.sleep(POLL_S)
        raise ChildFailed(f"The controller was not ready within {READY_TIMEOUT_S:g} s: {missing}.")

    def get(self, path: str) -> Any:
        """Return the JSON answer of the controller's REST service; OSError if there is none."""
        url = f"http://{LOOPBACK}:{REST_PORT}{path}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(url, timeout=REQUEST_TIMEOUT_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)


def _what_is_missing(health: dict[str, Any]) -> str:
    switches = health.get("switches", [])
    lists = {
        "switches not connected": [switch["name"] for switch in switches if not switch["connected"]],
        "switches without confirmed rules": [
            switch["name"] for switch in switches if not switch["rules_confirmed"]
        ],
        "links not seen": health.get("links_down", []),
        "faults": health.get("faults", []),
    }
    texts = [f"{title}: {', '.join(names)}" for title, names in lists.items() if names]
    return "; ".join(texts) or "it does not say why"
