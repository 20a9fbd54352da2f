"""The cases of a study as runs of the virtual engine: what the simulator is told, said to a Linux kernel.

A host of a description becomes a switch with a host behind a link that takes no time, since emulated hosts
have one link. A case with something that no kernel here has is not made, and the document says why.
"""

from __future__ import annotations

import itertools
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import topologies
from controller.decide.offline import OfflineController
from experiments import runner
from experiments.errors import MissingRequirement, RunFailed
from experiments.model import scenario
from experiments.model.events import Event, RunFinished
from experiments.model.job import Job
from experiments.model.results import RunResult
from experiments.model.scenario import ETHERNET_BYTES, IP_BYTES, TCP_BYTES, TIMESTAMP_OPTION_BYTES, Scenario
from experiments.model.settings import COUPLED_CONTROLS, RESPONSE_CONTROLS
from experiments.protocols.mptcp import DSS_BYTES
from experiments.studies.cases import cases, changed_scenario
from experiments.studies.evaluate import OnKernel
from experiments.studies.measure import figure_at
from experiments.studies.schema import Study
from topologies import Link, Network, Node

ENGINE = "virtual"
GIVEN = "study"
"""The name of the paths that a description has."""
HOST_RATE_BPS = 10e9
ALLOCATED_SHARE = 0.9
"""Share of a path's rate that is requested: the rest is room for headers."""
MAX_BYTES = 1 << 44
DRAIN_S = 3600.0
"""Enough for send buffers of megabytes over Wi-Fi at its range; in virtual time waiting costs nothing."""
KNOWN: Mapping[str, frozenset[str]] = {
    "description": frozenset({"format", "seed", "duration_s", "warm_up_s", "tcp", "links", "flows"}),
    "tcp": frozenset(
        {"mss_bytes", "congestion_control", "send_buffer_bytes", "receive_buffer_bytes"}
        | {"reordering", "timestamps"}
    ),
    "links": frozenset(
        {"ends", "rate_bps", "delay_us", "jitter_us", "queue_packets", "queue_bytes", "loss", "wifi"}
    ),
    "flows": frozenset(
        {"name", "src", "dst", "protocol", "traffic", "paths", "mptcp", "congestion_control", "start_s"}
    ),
    "mptcp": frozenset({"congestion_control", "send_buffer_bytes", "receive_buffer_bytes", "scheduler"}),
}
"""What of a description a kernel can be told, too."""
IS_LINUX = {"profile": "linux", "opportunistic_retransmission": False, "penalisation": False}
"""What is said to the simulator alone, since it is so of Linux."""
PROTOCOLS = {"tcp": "ospf", "mptcp": "mptcp-sdn"}


class NotOnKernels(Exception):
    """A case that no kernel can run; the text says why, as the end of a sentence."""


def jobs(study: Study, seeds: int, out: Path) -> tuple[dict[str, Job], dict[str, str]]:
    """Return the runs of each case that a kernel can make, and for the others why it cannot."""
    numbered = enumerate(cases(study).items(), start=1)
    folders = ((case, described, out / f"{study.name}-{number:03}") for number, (case, described) in numbered)
    found = {case: _possible(study, case, described, seeds, folder) for case, described, folder in folders}
    made = {case: each for case, each in found.items() if isinstance(each, Job)}
    return made, {case: each for case, each in found.items() if isinstance(each, str)}


def _possible(study: Study, case: str, description: dict[str, Any], seeds: int, out: Path) -> Job | str:
    """Return the runs of a case, or why there are none."""
    try:
        job = _job(study, case, description, seeds, out)
        runner.checked_engine(job)
    except (NotOnKernels, MissingRequirement) as error:
        return str(error).rstrip(".")
    return job


def run(
    study: Study, seeds: int, out: Path | None, begin: Callable[[int], None], report: Callable[[str], None]
) -> OnKernel:
    """Make the runs of a study in the virtual kernel, going on where a folder has some (RunFailed)."""
    with ExitStack() as stack:
        folder = out or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mstcp-lab-")))
        planned, reasons = jobs(study, seeds, folder / "kernel")
        begin(sum(len(job.pending()) for job in planned.values()))

        figures: dict[tuple[str, str], list[float]] = {}
        for case, job in planned.items():

            def told(event: Event, case: str = case) -> None:
                if isinstance(event, RunFinished):
                    seed = event.run.rpartition("seed")[2]
                    report(f"Study {study.name}, case {case}, in the kernel, seed{seed}")

            outcome = runner.run(job, told, resume=True)
            if outcome.failures:
                raise RunFailed(f"Study {study.name}, case {case}, in the kernel", outcome.failures[0])
            for result in outcome.results.runs:
                for name, value in _figures(study, result):
                    figures.setdefault((case, name), []).append(value)
        counted = {name for _, name in figures}
        absent = {
            name: f"a kernel does not count {name}"
            for name in study.metrics
            if planned and name not in counted
        }
        return OnKernel(figures, {**absent, **reasons})


def _figures(study: Study, result: RunResult) -> Iterator[tuple[str, float]]:
    document = result.model_dump(mode="json")
    for name, metric in study.metrics.items():
        try:
            value: Any = figure_at(document, metric.kernel or metric.of)
        except (KeyError, IndexError, ValueError, TypeError):
            continue
        if isinstance(value, list):
            value = statistics.fmean(each for each in value if each is not None) if any(value) else 0.0
        if value is not None:
            yield name, float(value) * metric.scale


def _job(study: Study, case: str, description: dict[str, Any], seeds: int, out: Path) -> Job:
    base = study.scenario.get(case)
    if base is not None:
        told, protocol, name = changed_scenario(study, base), base.protocol, base.case
        network = topologies.load(told.network, variant=told.variant)
    else:
        _check_known(study, description)
        network = _network(study, description)
        told, protocol, name = _scenario(study, description, network), "ospf", "1"
    return Job(
        engine=ENGINE,
        scenario=told,
        network=network,
        variant=told.variant,
        overrides={},
        cases=(name,),
        protocols=(protocol,),
        seeds=tuple(range(1, seeds + 1)),
        duration_s=study.duration_s,
        out=out.absolute(),
    )


def _check_known(study: Study, description: Mapping[str, Any]) -> None:
    """Raise NotOnKernels for the first thing that a kernel cannot be told, unless the study says so."""
    flows = description["flows"]
    parts = [("description", description), ("tcp", description.get("tcp", {}))]
    parts += [("links", link) for link in description["links"]] + [("flows", flow) for flow in flows]
    parts += [("mptcp", flow["mptcp"]) for flow in flows if "mptcp" in flow]
    for kind, part in parts:
        otherwise = {key.removeprefix(f"{kind}.") for key in study.otherwise_in_kernels}
        unknown = sorted(set(part) - KNOWN[kind] - otherwise)
        found = next((key for key in unknown if part[key] != IS_LINUX.get(key)), None)
        if found is not None:
            raise NotOnKernels(f"{found} ({kind}) is the simulator's alone")
    for flow in flows:
        if flow["protocol"] not in PROTOCOLS or flow["traffic"] != {"kind": "bulk"}:
            raise NotOnKernels(f"flow {flow['name']} is neither TCP nor MPTCP with a file")
        response, coupled = description.get("tcp", {}).get("reordering"), _coupled(flow)
        if response in RESPONSE_CONTROLS and coupled != "uncoupled":
            raise NotOnKernels(f"{response} is a congestion control to a kernel, and so is {coupled}")


def _network(study: Study, description: Mapping[str, Any]) -> Network:
    hosts = dict.fromkeys(flow[end] for flow in description["flows"] for end in ("src", "dst"))
    switches = dict.fromkeys(end for link in description["links"] for end in link["ends"])
    nodes = [
        *(Node(name=name, kind="switch") for name in switches),
        *(Node(name=_host(name), kind="host") for name in hosts),
    ]
    links = [_link(link) for link in description["links"]]
    links += [Link(ends=(_host(name), name), rate_bps=HOST_RATE_BPS, delay_us=0.0) for name in hosts]
    return Network(name=_word(study), nodes=tuple(nodes), links=tuple(links))


def _link(link: Mapping[str, Any]) -> Link:
    wifi = dict(link.get("wifi", {}))
    standard = wifi.pop("standard", None)
    wired = {key: value for key, value in link.items() if key != "wifi"}
    return Link(**wired, wifi=standard, **wifi)


def _word(study: Study) -> str:
    return re.sub(r"\W", "_", study.name)


def _host(name: str) -> str:
    return f"{name}_host"


def _scenario(study: Study, description: Mapping[str, Any], network: Network) -> Scenario:
    tcp = description.get("tcp", {})
    controller = OfflineController(network)
    headers = ETHERNET_BYTES + IP_BYTES[4] + TCP_BYTES + TIMESTAMP_OPTION_BYTES
    mptcp = {key: value for flow in description["flows"] for key, value in flow.get("mptcp", {}).items()}
    data = {
        "format": 1,
        "name": _word(study),
        "network": _word(study),
        "packet_bytes": tcp.get("mss_bytes", 1448 - DSS_BYTES) + DSS_BYTES + headers,
        "duration_s": study.duration_s,
        "warm_up_s": description.get("warm_up_s", 0.0),
        "drain_s": DRAIN_S,
        "tcp": {key: tcp[key] for key in ("congestion_control", "reordering", "timestamps") if key in tcp},
        "mptcp": {
            key: mptcp[key]
            for key in ("receive_buffer_bytes", "send_buffer_bytes", "scheduler")
            if key in mptcp
        },
        "cases": {"1": {"allocation": GIVEN, "flows": {}}},
    }
    for flow in description["flows"]:
        data["cases"]["1"]["flows"][flow["name"]] = _flow(flow, network, controller)
    return scenario.parse(data, study.name)


def _flow(flow: Mapping[str, Any], network: Network, controller: OfflineController) -> dict[str, Any]:
    src, dst = _host(flow["src"]), _host(flow["dst"])
    ways = [[src, *path["path"], dst] for path in flow.get("paths", ())]
    ways = ways or [list(controller.shortest(src, dst))]
    rate_bps = [ALLOCATED_SHARE * _room_bps(way, ways, network) for way in ways]
    coupled = _coupled(flow)
    own = {"congestion_control": coupled} if coupled != "uncoupled" and coupled in COUPLED_CONTROLS else {}
    own |= {key: flow[key] for key in ("congestion_control", "start_s") if key in flow}
    paths = [{"path": way, "rate_bps": rate} for way, rate in zip(ways, rate_bps, strict=True)]
    return {
        "src": src,
        "dst": dst,
        "requested_bps": sum(rate_bps),
        "workload": {"kind": "bulk", "size_bytes": MAX_BYTES},
        "protocol": PROTOCOLS[flow["protocol"]],
        "given": {GIVEN: {"default": paths}},
        **own,
    }


def _coupled(flow: Mapping[str, Any]) -> str:
    return str(flow.get("mptcp", {}).get("congestion_control", "uncoupled"))


def _room_bps(way: Sequence[str], ways: Sequence[Sequence[str]], network: Network) -> float:
    """Return a path's part of its narrowest link, of which each of a flow's paths has the same."""

    def links(nodes: Sequence[str]) -> set[str]:
        return {network.link("-".join(pair)).name for pair in itertools.pairwise(nodes)}

    return min(
        link.rate_bps / sum(link.name in links(other) for other in ways)
        for link in network.links
        if link.name in links(way)
    )
