"""Where and with what results are made: kernel, versions, settings, revision, load."""

from __future__ import annotations

import functools
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from experiments.installation import ROOT, is_checkout
from experiments.model.results import Environment
from switch import capabilities
from topologies.mininet_path import find_version

PACKAGES = ("mstcp", "mstcp-lab", "os-ken", "numpy", "pydantic", "grpcio", "protobuf", "PuLP", "highspy")
REVISION = "MSTCP_LAB_REVISION"
"""A variable with the checkout's revision, where it is known already."""
SYSCTLS = (
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.default_qdisc",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
)


def read_sysctl(name: str) -> str | None:
    """Return a sysctl's value with single spaces, or None where this kernel or namespace does not have it."""
    try:
        return " ".join(sysctl_path(name).read_text().split())
    except OSError:
        return None


def sysctl_path(name: str) -> Path:
    """Return the file of a sysctl; those of the network are of the namespace of who opens it."""
    return Path("/proc/sys", *name.split("."))


def describe(*, link_backend: str | None, datapath: str | None, simulated: bool = False) -> Environment:
    """Describe this machine; what its programs are is looked up once, for they are those that were loaded.

    The kernel has no part in simulated runs, so its queueing disciplines and settings are left out of those.
    """
    names = () if simulated else SYSCTLS
    sysctls = {name: value for name in names if (value := read_sysctl(name)) is not None}
    return Environment(
        kernel=platform.release(),
        machine=platform.machine(),
        cpus=len(os.sched_getaffinity(0)),
        versions=dict(versions()),
        sysctls=sysctls,
        qdiscs=[] if simulated else list(available_qdiscs()),
        link_backend=link_backend,
        datapath=datapath,
        git_revision=git_revision(),
        host_load=list(os.getloadavg()),
        valid=True,
        why=[],
    )


@functools.cache
def versions() -> dict[str, str]:
    """Return the versions of Python, of the packages that matter, of Open vSwitch and Mininet."""
    installed = {distribution.name: distribution.version for distribution in metadata.distributions()}
    present = {name: installed[name] for name in PACKAGES if name in installed}
    present["python"] = platform.python_version()
    first_line = _output("ovs-vsctl", "--version").partition("\n")[0]
    if first_line:
        present["open_vswitch"] = first_line.split()[-1]
    mininet = find_version()
    if mininet:
        present["mininet"] = mininet
    return present


@functools.cache
def available_qdiscs() -> list[str]:
    """Return which of the queueing disciplines that links can be made of the kernel has."""
    return [qdisc.name.removeprefix("sch_") for qdisc in capabilities.probe_link_qdiscs() if qdisc.available]


@functools.cache
def git_revision() -> str | None:
    """Return the checkout's revision, with `-dirty` where files differ from it; None outside a checkout."""
    if REVISION in os.environ:
        return os.environ[REVISION] or None
    if not is_checkout():
        return None
    return _output("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40").strip() or None


def _output(*argv: str) -> str:
    if shutil.which(argv[0]) is None:
        return ""
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=20)
    return done.stdout if done.returncode == 0 else ""
