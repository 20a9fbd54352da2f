"""What this machine can run, what a missing thing means, and the command that fixes it (`mstcp-lab doctor`).

Needs no root; what cannot be probed without it is reported as unknown, never as there.
"""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.analysis.validity import CpuMeter
from experiments.engines.live.requirements import PROGRAMS
from experiments.errors import MissingRequirement
from experiments.installation import repair_command
from experiments.places.virtual import kernel_image, machine
from switch import capabilities
from switch.capabilities import Capability
from topologies import system_switches
from topologies.link_emulator import EmulatorMissingError, find_binary
from topologies.mininet_path import find_mininet

State = Literal["ok", "degraded", "missing", "unknown"]

CPU_SAMPLE_S = 0.5
CPU_FREE_MIN = 0.5
"""Half of the cores: the switch, the wires and both ends of the flows run at once."""
MEMORY_MIN_BYTES = 512 * 1024**2
DISK_MIN_BYTES = 512 * 1024**2
PACKAGES = (
    "fastapi", "google.protobuf", "grpc", "grpc_health", "grpc_reflection", "highspy", "httpx", "jinja2",
    "matplotlib", "networkx", "numpy", "os_ken", "pulp", "pydantic", "rich", "scipy", "uvicorn",
)  # fmt: skip
SETUP = repair_command()


@dataclass(frozen=True)
class Check:
    """One capability: its state, what was found, what a lack means and the command that fixes it.

    `required` is True where the live engine cannot run without it.
    """

    name: str
    state: State
    detail: str
    meaning: str = ""
    remedy: str = ""
    required: bool = False

    @property
    def blocks(self) -> bool:
        """Whether the live engine cannot run because of this."""
        return self.required and self.state != "ok"


# What each lack means: the state it puts the machine in, and the words for the user.
CONSEQUENCES: dict[str, tuple[State, str]] = {
    "rights": ("missing", "the live engine makes network namespaces: it cannot run for this user"),
    "openvswitch": ("missing", "there are no switches: the live engine cannot run"),
    "ovs-kernel-datapath": ("degraded", "the userspace datapath serves instead, one core for all switches"),
    "ovs-userspace-datapath": ("missing", "without the kernel's datapath either, the live engine cannot run"),
    "af_xdp": (
        "degraded",
        "in userspace Open vSwitch reads by packet sockets and takes four times the processor",
    ),
    "sch_netem": ("degraded", "the link emulator makes the links instead"),
    "sch_tbf": ("degraded", "the link emulator makes the links instead"),
    "xdp": ("missing", "PPFS cannot split packets on real switches"),
    "mptcp": ("missing", "MPTCP cannot be compared"),
}
_REQUIRED = {"rights", "openvswitch"}
_LINK_QDISCS = ("sch_netem", "sch_tbf")


def can_run_live(checks: Iterable[Check]) -> bool:
    """Return whether nothing that the live engine requires is missing."""
    return not any(check.blocks for check in checks)


def examine() -> list[Check]:
    """Probe everything, by a boot of the virtual kernel too; takes some two seconds."""
    probed = {capability.name: capability for capability in capabilities.probe()}
    meter = CpuMeter()
    time.sleep(CPU_SAMPLE_S)
    busy = meter.busy()
    return [
        *map(from_capability, probed.values()),
        check_datapaths(probed),
        check_programs(shutil.which),
        check_mininet(find_mininet()),
        check_system_switches(system_switches.why_none()),
        check_links(probed, _emulator_problem()),
        check_packages(_is_importable),
        check_core(_is_importable),
        check_virtual(_virtual_problem()),
        check_cpu(busy),
        check_memory(_memory_available(Path("/proc/meminfo"))),
        check_disk(shutil.disk_usage(Path.cwd()).free),
    ]


def from_capability(capability: Capability) -> Check:
    """Return the check for something that `switch.capabilities` probed."""
    required = capability.name in _REQUIRED
    if capability.available:
        return Check(capability.name, "ok", capability.detail, required=required)
    state, meaning = CONSEQUENCES.get(capability.name, ("missing", ""))
    if not capability.tried:
        state = "unknown"
    return Check(capability.name, state, capability.detail, meaning, capability.remedy, required)


def _either(
    name: str,
    found: str | None,
    lack: str,
    meaning: str,
    remedy: str,
    state: State = "missing",
    *,
    needed: bool,
) -> Check:
    """Return the check for what was found; where that is None, for its lack."""
    if found is not None:
        return Check(name, "ok", found, required=needed)
    return Check(name, state, lack, meaning, remedy, needed)


def check_datapaths(probed: Mapping[str, Capability]) -> Check:
    """Return whether Open vSwitch has any datapath."""
    known = {"ovs-kernel-datapath": "the kernel", "ovs-userspace-datapath": "userspace"}
    chosen = next((place for name, place in known.items() if _has(probed, name)), None)
    return _either(
        "datapath",
        chosen and f"Open vSwitch will forward in {chosen}",
        "neither the kernel's nor the userspace one",
        "switches cannot forward: the live engine cannot run",
        probed["ovs-userspace-datapath"].remedy if "ovs-userspace-datapath" in probed else SETUP,
        needed=True,
    )


def check_programs(which: Callable[[str], str | None]) -> Check:
    """Return whether the programs that the live engine starts are on PATH."""
    missing = [name for name in (*PROGRAMS, "unshare") if which(name) is None]
    packages = sorted({PROGRAMS.get(name, "util-linux") for name in missing})
    return _either(
        "programs",
        None if missing else ", ".join(PROGRAMS),
        f"not on PATH: {', '.join(missing)}",
        "the live engine cannot run",
        f"apt-get install {' '.join(packages)}",
        needed=True,
    )


def check_mininet(folder: Path | None) -> Check:
    """Return whether Mininet was found."""
    meaning = "there is no emulated network: the live engine cannot run"
    found = None if folder is None else str(folder)
    return _either(
        "mininet", found, "Mininet is not installed", meaning, "apt-get install mininet", needed=True
    )


def check_system_switches(reason: str | None) -> Check:
    """Return whether `mn --custom` has switches; our own commands start an Open vSwitch of their own."""
    found = "ovsdb-server answers, as mn --custom needs" if reason is None else None
    meaning = "mn --custom cannot run; mstcp-lab starts its own and needs none"
    remedy = system_switches.REMEDY
    return _either("system-switches", found, reason or "", meaning, remedy, "degraded", needed=False)


def check_links(probed: Mapping[str, Capability], emulator_problem: str | None) -> Check:
    """Return whether links can have a rate and a delay, by the kernel's netem or by the link emulator."""
    found = "the link emulator" if emulator_problem is None else None
    if all(_has(probed, qdisc) for qdisc in _LINK_QDISCS):
        found = "the kernel's netem and tbf"
    unknown = any(q in probed and from_capability(probed[q]).state == "unknown" for q in _LINK_QDISCS)
    return _either(
        "links",
        found,
        f"netem or tbf {'cannot be tried' if unknown else 'is missing'}, and {emulator_problem}",
        "links cannot have the rates and delays asked for: the live engine cannot run",
        SETUP,
        "unknown" if unknown else "missing",
        needed=True,
    )


def check_packages(importable: Callable[[str], bool]) -> Check:
    """Return whether the Python packages of the laboratory are installed for this interpreter."""
    missing = [name for name in PACKAGES if not importable(name)]
    found = None if missing else f"{len(PACKAGES)} packages, Python {sys.version.split()[0]}"
    meaning = "the controller, the experiments or the report cannot run"
    detail = f"not importable: {', '.join(missing)}"
    return _either("python-packages", found, detail, meaning, SETUP, needed=True)


def check_core(importable: Callable[[str], bool]) -> Check:
    """Return whether the library's compiled core is built."""
    found = "mstcp._core" if importable("mstcp._core") else None
    meaning = "the MSTCP library cannot run"
    return _either("compiled-core", found, "mstcp._core is not built", meaning, SETUP, needed=True)


def check_virtual(problem: MissingRequirement | None) -> Check:
    """Return whether the kernel of the virtual engine boots."""
    what, remedy = (problem.what, problem.remedy) if problem else ("", "")
    found = None if problem else f"User-Mode Linux {kernel_image.record().release} boots"
    return _either("virtual-kernel", found, what, "the virtual engine cannot run", remedy, needed=False)


def check_cpu(busy: float | None) -> Check:
    """Return whether enough of the processor is free for a run in real time."""
    if busy is None:
        return Check(
            "free-cpu", "unknown", "/proc/stat does not tell", "runs may come late and be marked invalid"
        )
    detail = f"{1 - busy:.0%} of all cores free over {CPU_SAMPLE_S:g} s"
    if 1 - busy >= CPU_FREE_MIN:
        return Check("free-cpu", "ok", detail)
    meaning = "live runs may come late and be marked invalid"
    return Check("free-cpu", "degraded", detail, meaning, "end what else is running (top shows it)")


def check_memory(available_bytes: int | None) -> Check:
    """Return whether there is memory enough for a run."""
    if available_bytes is None:
        return Check("memory", "unknown", "/proc/meminfo does not tell", "a run may run out of memory")
    return _room(
        "memory", available_bytes, MEMORY_MIN_BYTES, "a run may run out of memory", "end what uses it"
    )


def check_disk(free_bytes: int) -> Check:
    """Return whether the current folder has room for logs and results."""
    meaning = "logs and results may not fit"
    return _room("disk", free_bytes, DISK_MIN_BYTES, meaning, "free some, or write elsewhere with --out")


def _room(name: str, free_bytes: int, needed_bytes: int, meaning: str, remedy: str) -> Check:
    detail = f"{free_bytes / 1024**3:.1f} GiB free"
    if free_bytes >= needed_bytes:
        return Check(name, "ok", detail)
    return Check(name, "degraded", f"{detail}, {needed_bytes / 1024**3:.1f} wanted", meaning, remedy)


def _has(probed: Mapping[str, Capability], name: str) -> bool:
    return name in probed and probed[name].available


def _emulator_problem() -> str | None:
    try:
        find_binary()
    except EmulatorMissingError:
        return "the link emulator is not built"
    return None


def _virtual_problem() -> MissingRequirement | None:
    try:
        machine.require_boot()
    except MissingRequirement as missing:
        return missing
    return None


def _is_importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # of the package around it
        return False


def _memory_available(meminfo: Path) -> int | None:
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None
