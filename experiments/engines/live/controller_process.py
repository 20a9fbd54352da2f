"""`mstcp-controller` as a process of its own beside the emulated network."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any

from experiments.engines.live.child import ChildFailed, last_line
from experiments.engines.live.forked import ForkedProgram
from switch.processes import end_process
from topologies.model import Network

LOOPBACK = "127.0.0.1"
MANAGEMENT = "10.255.0.1"
OPENFLOW_PORT = 6653
REST_PORT = 8080
GRPC_PORT = 50051
READY_TIMEOUT_S = 45.0
POLL_S = 0.1
LISTENING_POLL_S = 0.02
REQUEST_TIMEOUT_S = 10.0
REFUSED = 400
"""HTTP statuses from here on are refusals."""


class ControllerSubprocess:
    """Runs the controller for a network; a context manager.

    It listens on loopback and, for the hosts, on the management network. `default_routing`, `planning_s` and
    `store` are as `mstcp-controller` has them. Of several controllers, ports are the usual ones and `number`.
    """

    def __init__(
        self,
        network: Network,
        folder: Path,
        default_routing: str = "shortest",
        planning_s: float = 0.0,
        store: str = "none",
        number: int = 0,
    ) -> None:
        self.openflow = (LOOPBACK, OPENFLOW_PORT + number)
        self.rest_port, self._grpc_port = REST_PORT + number, GRPC_PORT + number
        self.grpc_for_hosts = f"{MANAGEMENT}:{self._grpc_port}"
        self._planning_s = planning_s
        self._store = store
        self._name = name = f"controller{number or ''}"
        self._log = folder / f"{name}.log"
        self._topology = folder / "network.json"
        self._topology.write_text(network.model_dump_json(indent=1))
        self._ready = folder / f"{name}.ready"
        self._default_routing = default_routing
        self._process: ForkedProgram | None = None

    def __enter__(self) -> ControllerSubprocess:
        argv = [
            "--topology",
            str(self._topology),
            "--log-format",
            "json",
            "--default-routing",
            self._default_routing,
            "--planning-time",
            str(self._planning_s),
            "--store",
            self._store,
            "--ready-file",
            str(self._ready),
            # A machine that is busy with packets must not take a link for lost in the midst of a run.
            *("--probe-interval", "1", "--silence", "10"),
            # The run's own counters are read by the runner.
            *("--counter-interval", "0"),
        ]
        argv += ["--openflow", f"{LOOPBACK}:{self.openflow[1]}"]
        # The management network is inside the run's own namespaces: nobody else reaches it.
        argv += ["--insecure", "rest", "--insecure", "grpc"]
        for address in (LOOPBACK, MANAGEMENT):
            argv += ["--rest", f"{address}:{self.rest_port}", "--grpc", f"{address}:{self._grpc_port}"]
        self._process = ForkedProgram(self._name, "controller.cli:main", argv, log=self._log)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            end_process(self._process)

    def begin_stop(self) -> None:
        """Tell it to stop, without waiting."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait_listening(self) -> None:
        """Wait until it takes connections: a refused switch tries again after a second (ChildFailed)."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._ready.exists():
            self._check_alive()
            if time.monotonic() > deadline:
                raise ChildFailed(f"The controller did not start within {READY_TIMEOUT_S:g} s.")
            time.sleep(LISTENING_POLL_S)

    def wait_ready(self) -> None:
        """Wait until it knows every switch and link and all rules are in (ChildFailed: what is missing)."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        missing = "it does not answer"
        while time.monotonic() < deadline:
            self._check_alive()
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

    def _check_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            raise ChildFailed(f"The controller ended.{last_line(self._log)}")

    def get(self, path: str) -> Any:
        """Return the JSON answer of the controller's REST service; OSError if there is none."""
        return _ask(self.rest_port, "GET", path)[1]

    def request_flow(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask for a flow (`POST /v1/flows`); returns it when it is installed (ChildFailed: it is refused)."""
        return _granted(self.rest_port, "POST", "/v1/flows", request)

    def flow(self, flow_id: str) -> dict[str, Any]:
        """Return a flow as it is now: rates change for the good of the whole (ChildFailed: it has ended)."""
        return _granted(self.rest_port, "GET", f"/v1/flows/{flow_id}")


def _ask(port: int, method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Return status and JSON of an answer of the controller's REST service."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=REQUEST_TIMEOUT_S)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.load(answer)
    except http.client.HTTPException as error:
        raise ConnectionError(f"no HTTP answer: {error}") from error
    finally:
        connection.close()


def _granted(port: int, method: str, path: str, body: object = None) -> dict[str, Any]:
    try:
        status, answer = _ask(port, method, path, body)
    except (OSError, ValueError) as error:
        raise ChildFailed(f"The controller does not answer: {error}") from None
    if status >= REFUSED:
        raise ChildFailed(f"The controller refused a flow: {answer['field']}: {answer['reason']}")
    flow: dict[str, Any] = answer
    return flow


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
