"""Failures on the live butterfly: 8.5 Mbit/s over two paths by MSTCP, and something goes wrong.

sudo .venv/bin/python -m benchmarks.drills --quick --json

Mininet, Open vSwitch and the real controller in namespaces of their own; needs root. For each drill:

- `gap_s`: the longest time after the failure in which no byte arrived;
- `goodput_after_bps`: what arrived from 3 s after the failure until the sender's end;
- `flows_after`: flows that the controller has then;
- `bytes_lost`: of those that were written; 0 where every byte has arrived (the digests are compared).

Those of three controllers that share etcd (`leader_kill`, `leader_freeze`; `leader_cut_off` from etcd and
switches, or from either; `etcd_server_kill`, `etcd_gone`), in which the sender has a session with the one
that leads, also print

- `answers_again_s`: from the failure (`etcd_gone`: from its end) until a request for another flow is granted;
- `rules_changed`: rules of all switches that came, went, or were installed again.

`grow` is another flow: one path carries it until a port goes down, then it takes two, and its host opens a
second stream (`streams_after`).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.drills.replicas import Replica, Replicas, ask, changed_rules, rule_ages
from switch.ovs import PrivateInstance
from topologies.management import CONTROLLER_IP

ROOT = Path(__file__).resolve().parents[2]
NAMESPACES = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
_PORT = 5001
_GRPC_PORT = 50051
_BEFORE_S = 3.0
_SETTLED_S = 3.0
_TAKEN_UP_S = 8.0  # a session leaves a controller that is silent after seven seconds
_TIMEOUT_S = 60.0
_BFD_UP_S = 2.0
_ETCD_GONE_S = 60.0

Result = dict[str, float | int]


def main() -> int:
    """Parse the command line; run the drills in namespaces of their own, and print."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("--quick", action="store_true", help="10 s of traffic a drill instead of 30")
    parser.add_argument(
        "--drill", choices=sorted(DRILLS | REPLICATED), action="append", help="only this, repeatable"
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if os.geteuid() != 0:
        print("drills: network namespaces need root; run this with sudo", file=sys.stderr)
        return 2
    if not options.inside:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [*NAMESPACES, sys.executable, "-m", "benchmarks.drills", "--inside", *sys.argv[1:]]
        return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    duration_s = 10.0 if options.quick else 30.0
    results: dict[str, Result] = {}
    for name in options.drill or DEFAULT_DRILLS:
        with tempfile.TemporaryDirectory(prefix="drill-") as folder, ExitStack() as stack:
            drill = _Drill(Path(folder), stack, OVERRIDES.get(name), name in REPLICATED)
            results[name] = _run(name, drill, duration_s)
    if options.json:
        print(json.dumps(results))
    else:
        for name, result in results.items():
            print(f"{name:16}" + "  ".join(f"{key} {value:.4g}" for key, value in result.items()))
    return 0


def _run(name: str, drill: _Drill, duration_s: float) -> Result:
    if name in PREPARED:
        PREPARED[name](drill)
    if name in REPLICATED:
        lasts_s = duration_s + 2 * _TAKEN_UP_S + (_ETCD_GONE_S if name == "etcd_gone" else 0.0)
        return drill.run_replicated(REPLICATED[name], lasts_s)
    if name in GROWING:
        return drill.run_growing(DRILLS[name], duration_s)
    return drill.run(DRILLS[name], duration_s)


class _Drill:
    """A network, its controller, and a transfer."""

    def __init__(
        self, folder: Path, stack: ExitStack, overrides: Mapping[str, Any] | None, is_replicated: bool = False
    ) -> None:
        import topologies
        from topologies.interface_names import InterfaceNames
        from topologies.mininet_builder import Emulation

        self._folder = folder
        self.network = topologies.load("butterfly", overrides=overrides)
        self._stack = stack
        self._controller: subprocess.Popen[bytes] | None = None
        self._address = "127.0.0.1:8080"
        self._topology = folder / "network.json"
        self._topology.write_text(self.network.model_dump_json())
        if is_replicated:
            self.replicas = Replicas(folder, stack, "--topology", str(self._topology))
        else:
            self.start_controller()
            stack.callback(self.kill_controller)
        # Short paths for its sockets.
        self.ovs = stack.enter_context(PrivateInstance(folder / "ovs"))
        self.emulation = stack.enter_context(Emulation(self.network, ovs=self.ovs, mtu=576))
        self.names = InterfaceNames(self.network)
        if is_replicated:
            self.emulation.connect_switches(*(each.openflow for each in self.replicas.all))
            self._address = self.replicas.leader().address

    def start_controller(self) -> None:
        """Start the controller with the store that the last one has left."""
        options = ["--topology", str(self._topology), "--store", str(self._folder / "state.sqlite")]
        # Hosts reach it over the management network, which nobody else does.
        options += ["--insecure", "grpc", "--grpc", f"0.0.0.0:{_GRPC_PORT}"]
        with (self._folder / "controller.log").open("ab") as log:
            self._controller = subprocess.Popen(
                [sys.executable, "-m", "controller.cli", *options], cwd=ROOT, stdout=log, stderr=log
            )

    def kill_controller(self) -> None:
        """End the controller as a crash would."""
        if self._controller is not None:
            self._controller.kill()
            self._controller.wait()

    def run(self, fail: Callable[[_Drill], None], duration_s: float, asks: Sequence[str] = ()) -> Result:
        """Let a flow run, let something fail, and return what became of it; the sender may ask itself."""
        self._wait(lambda: bool(ask(self._address, "GET", "/health")["ready"]), "the network to be ready")
        out = self._folder / "arrivals.json"
        program = [sys.executable, "-m", "benchmarks.drills.host"]
        receiver = self.emulation.popen(
            "T2", [*program, "receive", str(_PORT), str(out)], stdout=subprocess.PIPE, cwd=ROOT
        )
        assert receiver.stdout is not None
        receiver.stdout.readline()
        target = [self.emulation.host_ip("T2"), str(_PORT), str(duration_s)]
        sender = self.emulation.popen(
            "T0", [*program, *self._sending(target, asks)], stdout=subprocess.PIPE, cwd=ROOT
        )
        time.sleep(_BEFORE_S)
        failed_at = time.monotonic()
        fail(self)
        sent, digest = sender.communicate(timeout=_TIMEOUT_S)[0].decode().split()
        receiver.wait(_TIMEOUT_S)
        arrived = json.loads(out.read_text())
        if arrived["digest"] != digest:
            raise RuntimeError("what arrived is not what was sent")
        return _figures(arrived["arrivals"], failed_at, int(sent), len(ask(self._address, "GET", "/flows")))

    def run_growing(self, fail: Callable[[_Drill], None], duration_s: float) -> Result:
        """Do the same with a flow that may use more paths later."""
        noted: Result = {}

        def fail_and_look(drill: _Drill) -> None:
            fail(drill)
            time.sleep(_SETTLED_S)
            (flow,) = ask(self._address, "GET", "/flows")
            noted.update(streams_after=len(flow["streams"]), rate_after_bps=flow["rate_bps"])

        return self.run(fail_and_look, duration_s, ["grow", f"{CONTROLLER_IP}:{_GRPC_PORT}"]) | noted

    def run_replicated(self, fail: Callable[[Replicas], Away], duration_s: float) -> Result:
        """Do the same where three controllers share etcd, one of which leads."""
        bridges = [self.names.bridge(switch) for switch in self.network.switches]
        noted: dict[str, Any] = {}

        def fail_and_ask(_: _Drill) -> None:
            before = rule_ages(self.ovs, bridges)
            away = fail(self.replicas)
            noted["answers_again_s"] = self.replicas.serve_again(_other_request, *away)
            self._address = self.replicas.leader(*away).address
            for each in away:
                each.go_on()
                each.reconnect()
            time.sleep(_TAKEN_UP_S)
            noted["flows_after"] = len(ask(self._address, "GET", "/flows"))
            noted["rules_changed"] = changed_rules(before, rule_ages(self.ovs, bridges))

        places = ",".join(f"{CONTROLLER_IP}:{each.grpc_port}" for each in self.replicas.all)
        return self.run(fail_and_ask, duration_s, ["ask", places]) | noted

    def _sending(self, target: list[str], asks: Sequence[str]) -> list[str]:
        """Return the arguments of the sender; where it does not ask itself, request its flow."""
        if asks:
            how, controllers = asks
            return [how, *target, controllers, str(_REQUEST["rate_bps"])]
        flow = ask(self._address, "POST", "/flows", _REQUEST)
        fields = ("source_port", "rate_bps", "delay_s")
        streams = [{key: stream[key] for key in fields} for stream in flow["streams"]]
        return ["send", *target, json.dumps(streams)]

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _TIMEOUT_S
        while time.monotonic() < deadline:
            try:
                if condition():
                    return
            except OSError:
                pass  # it does not serve yet
            time.sleep(0.05)
        log = (self._folder / "controller.log").read_text().splitlines()
        raise RuntimeError(f"in vain for {_TIMEOUT_S:g} s: {what}; the log ends with {log[-5:]}")


_REQUEST = {
    "source": "T0",
    "destination": "T2",
    "destination_port": _PORT,
    "source_ports": [40001, 40002],
    "rate_bps": 8.5e6,
    "packet_bytes": 590,
    "lease_s": 600,
}


def _other_request(port: int) -> dict[str, Any]:
    """Return a request that has nothing to do with the transfer."""
    hosts = {"source": "T1", "destination": "T3", "destination_port": _PORT + 1}
    return {**_REQUEST, **hosts, "source_ports": [port], "rate_bps": 1e5}


def _figures(arrivals: list[tuple[float, int]], failed_at: float, sent: int, flows: int) -> Result:
    times = [failed_at, *(at for at, _ in arrivals if at > failed_at)]
    end = arrivals[-1][0]
    settled = [(at, size) for at, size in arrivals if at >= failed_at + _SETTLED_S]
    return {
        "gap_s": max((b - a for a, b in pairwise(times)), default=0.0),
        "goodput_after_bps": 8 * sum(size for _, size in settled) / (end - failed_at - _SETTLED_S),
        "flows_after": flows,
        "bytes_lost": sent - sum(size for _, size in arrivals),
    }


def _port_down(drill: _Drill) -> None:
    arc = next(arc for arc in drill.network.arcs() if (arc.tail, arc.head) == ("S2", "S3"))
    drill.ovs.ofctl("mod-port", drill.names.bridge("S2"), str(arc.tail_port), "down")


def _only_path_down(drill: _Drill) -> None:
    arc = next(arc for arc in drill.network.arcs() if (arc.tail, arc.head) == ("S0", "S4"))
    drill.ovs.ofctl("mod-port", drill.names.bridge("S0"), str(arc.tail_port), "down")


def _silent_loss(drill: _Drill) -> None:
    drill.emulation.set_link("S2-S3", up=False, silent=True)


def _watch_links(drill: _Drill) -> None:
    """Let the switches watch their links themselves."""
    hosts = set(drill.network.hosts)
    for arc in drill.network.arcs():
        if not {arc.tail, arc.head} & hosts:
            interface = drill.names.port(arc.tail, arc.tail_port)
            rates = ("bfd:min_tx=100", "bfd:min_rx=100")
            drill.ovs.vsctl("set", "Interface", interface, "bfd:enable=true", *rates)
    time.sleep(_BFD_UP_S)


def _controller_kill(drill: _Drill) -> None:
    drill.kill_controller()
    time.sleep(1.0)
    drill.start_controller()


def _ovs_restart(drill: _Drill) -> None:
    drill.ovs.restart_forwarder()


def _leader_kill(replicas: Replicas) -> Away:
    leader = replicas.leader()
    leader.process.kill()
    return (leader,)


def _leader_freeze(replicas: Replicas) -> Away:
    leader = replicas.leader()
    leader.freeze()
    return (leader,)


def _leader_cut_off(replicas: Replicas, *from_what: str) -> Away:
    leader = replicas.leader()
    leader.cut_off(*from_what)
    return (leader,)


def _etcd_server_kill(replicas: Replicas) -> Away:
    replicas.etcd.processes[0].kill()
    return ()


def _etcd_gone(replicas: Replicas) -> Away:
    for process in replicas.etcd.processes:
        process.kill()
        process.wait()
    time.sleep(_ETCD_GONE_S)
    replicas.etcd.processes = [replicas.etcd.start(number) for number in range(3)]
    return ()


Away = tuple[Replica, ...]
"""Replicas that do not serve until the others have taken over."""

REPLICATED: dict[str, Callable[[Replicas], Away]] = {
    "leader_kill": _leader_kill,
    "leader_freeze": _leader_freeze,
    "leader_cut_off": lambda replicas: _leader_cut_off(replicas, "etcd", "switches"),
    "leader_cut_off_from_etcd": lambda replicas: _leader_cut_off(replicas, "etcd"),
    "leader_cut_off_from_switches": lambda replicas: _leader_cut_off(replicas, "switches"),
    "etcd_server_kill": _etcd_server_kill,
    "etcd_gone": _etcd_gone,
}

DRILLS: dict[str, Callable[[_Drill], None]] = {
    "port_down": _port_down,
    "silent_loss": _silent_loss,
    "silent_loss_bfd": _silent_loss,
    "controller_kill": _controller_kill,
    "ovs_restart": _ovs_restart,
    "grow": _only_path_down,
}

GROWING = ("grow",)
"""Their senders ask for their flows themselves, and follow what the controller says."""

OVERRIDES: dict[str, Mapping[str, Any]] = {
    "grow": {
        "links.S0-S4.rate_bps": 10e6,  # carries it alone
        "links.S2-S3.rate_bps": 5e6,  # carries half of it
        "links.S1-S2.rate_bps": 5e6,  # the other half, by S1 and S5
        "links.S3-S4.rate_bps": 12e6,
        "links.S0-S2.rate_bps": 12e6,
    }
}
"""Where the butterfly is another one."""

PREPARED: dict[str, Callable[[_Drill], None]] = {"silent_loss_bfd": _watch_links}
"""What is done before the flow begins."""

DEFAULT_DRILLS = ("port_down", "silent_loss", "controller_kill", "ovs_restart")


if __name__ == "__main__":
    sys.exit(main())
