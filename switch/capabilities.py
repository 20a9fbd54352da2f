"""What this machine can do for an emulated network, found by trying. Nothing that is tried stays behind."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from switch import af_xdp
from switch.bpf import libbpf
from switch.datapath import kernel_datapath_available
from switch.errors import BpfUnavailable
from switch.ovs import INSTALL, SCHEMA

TIMEOUT_S = 15.0
AS_ROOT = "run it with sudo"
IPPROTO_MPTCP = 262
"""Of <linux/in.h>; Python knows it by name from 3.11 on."""
CAP_NET_ADMIN = 12
CAP_SYS_ADMIN = 21
NAMESPACES = ("--net", "--mount", "--pid")
"""Options of unshare(1) for those that a run is made in."""
FEW_NAMESPACES, USUAL_NAMESPACES = 100, 10_000
"""Namespaces of a kind and a user: fewer than a large network has hosts, and about the kernel's default."""
_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
_BPF_PROG_LOAD = 5
_BPF_PROG_TYPE_XDP = 6


@dataclass(frozen=True)
class Capability:
    """One thing a machine can or cannot do.

    `remedy` is the command or setting that fixes it; empty where it is there. `tried` is False where this
    user lacks the right to try, so that nothing is known about the thing itself.
    """

    name: str
    available: bool
    detail: str
    remedy: str = ""
    tried: bool = True


def probe() -> list[Capability]:
    """Return everything that emulated networks use or could use, in the order a reader wants it."""
    return [
        probe_rights(),
        probe_openvswitch(),
        probe_kernel_datapath(),
        probe_netdev_datapath(),
        probe_af_xdp(),
        *probe_link_qdiscs(),
        probe_xdp(),
        probe_mptcp(),
    ]


def probe_rights() -> Capability:
    """Return whether this process may make network namespaces and interfaces, and can."""
    effective = _effective_capabilities()
    if effective is None:
        return Capability("rights", False, "this is not Linux", "use Linux")
    missing = [
        name
        for bit, name in ((CAP_NET_ADMIN, "CAP_NET_ADMIN"), (CAP_SYS_ADMIN, "CAP_SYS_ADMIN"))
        if not effective >> bit & 1
    ]
    if missing:
        return Capability("rights", False, f"this user lacks {' and '.join(missing)}", AS_ROOT)
    if shutil.which("unshare") is None:
        return Capability("rights", False, "unshare is not installed", "apt-get install util-linux")
    done = _run(["unshare", *NAMESPACES, "--fork", "--mount-proc", "--", "true"])
    if done.returncode:
        detail, remedy = why_no_namespaces(" ".join(done.stderr.split()))
        return Capability("rights", False, detail, remedy)
    return Capability("rights", True, "root" if os.geteuid() == 0 else "CAP_NET_ADMIN and CAP_SYS_ADMIN")


def why_no_namespaces(complaint: str) -> tuple[str, str]:
    """Return why root cannot make namespaces, and what to do about it, from what unshare(1) said."""
    if os.strerror(errno.ENOSPC) in complaint:
        limits = {
            f"user.max_{kind}_namespaces": _number_in(Path(f"/proc/sys/user/max_{kind}_namespaces"))
            for kind in ("net", "mnt", "pid")
        }
        shown = ", ".join(f"{name} = {value}" for name, value in limits.items())
        low = [name for name, value in limits.items() if value is not None and value < FEW_NAMESPACES]
        settings = " ".join(f"{name}={USUAL_NAMESPACES}" for name in low or limits)
        return f"no more namespaces may be made ({shown})", f"sysctl -w {settings}"
    forbids = "a seccomp filter" if _has_seccomp() else "this container or the system's policy"
    remedy = "allow it (docker run --privileged, systemd's RestrictNamespaces=no), or take --engine virtual"
    return f"{forbids} forbids new namespaces ({complaint or 'unshare failed'})", remedy


def _number_in(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _has_seccomp() -> bool:
    return re.search(r"^Seccomp:\s*[12]$", _own_status(), re.MULTILINE) is not None


def _own_status() -> str:
    try:
        return Path("/proc/self/status").read_text()
    except OSError:
        return ""


def probe_openvswitch() -> Capability:
    """Return whether Open vSwitch is installed, and its version."""
    if shutil.which("ovs-vswitchd") is None or shutil.which("ovs-vsctl") is None or not SCHEMA.exists():
        return Capability("openvswitch", False, "Open vSwitch is not installed", INSTALL)
    first = _run(["ovs-vswitchd", "--version"]).stdout.splitlines()[:1]
    return Capability("openvswitch", True, first[0] if first else "installed")


def probe_kernel_datapath() -> Capability:
    """Return whether the kernel forwards for Open vSwitch."""
    if kernel_datapath_available():
        return Capability("ovs-kernel-datapath", True, f"module openvswitch, Linux {platform.release()}")
    remedy = (
        "modprobe openvswitch (a kernel of the distribution has it); the userspace datapath serves until then"
    )
    return Capability(
        "ovs-kernel-datapath", False, f"Linux {platform.release()} has no module openvswitch", remedy
    )


def probe_netdev_datapath() -> Capability:
    """Return whether Open vSwitch can forward in userspace: it takes its program and /dev/net/tun."""
    if shutil.which("ovs-vswitchd") is None:
        return Capability("ovs-userspace-datapath", False, "Open vSwitch is not installed", INSTALL)
    if not Path("/dev/net/tun").exists():
        return Capability("ovs-userspace-datapath", False, "there is no /dev/net/tun", "modprobe tun")
    return Capability("ovs-userspace-datapath", True, "netdev, one thread forwards for all bridges")


def probe_af_xdp() -> Capability:
    """Return whether Open vSwitch and the kernel have AF_XDP, which costs far less than packet sockets."""
    program = shutil.which("ovs-vswitchd")
    if program is None:
        return Capability("af_xdp", False, "Open vSwitch is not installed", INSTALL)
    # What it was built with shows only when it runs; its version and the kernel show now.
    problem = af_xdp.problem([af_xdp.INTERFACE_TYPE], _run([program, "--version"]).stdout)
    if problem:
        return Capability("af_xdp", False, problem, "use a distribution of 2023 or later (Debian 12)")
    return Capability("af_xdp", True, "AF_XDP sockets open")


def probe_link_qdiscs() -> tuple[Capability, Capability]:
    """Return whether the kernel can delay packets (sch_netem) and cut them into segments (sch_tbf)."""
    return (
        probe_qdisc("netem", ["delay", "1ms", "rate", "10mbit"]),
        probe_qdisc("tbf", ["rate", "10mbit", "burst", "15000", "limit", "15000"]),
    )


def probe_qdisc(kind: str, options: Sequence[str]) -> Capability:
    """Return whether the kernel has a queueing discipline.

    It is used in a network namespace that ends with the probe.

    Args:
        kind: name of the discipline, as `netem`.
        options: the options it is tried with.
    """
    name = f"sch_{kind}"
    for program, package in (("tc", "iproute2"), ("unshare", "util-linux")):
        if shutil.which(program) is None:
            return Capability(name, False, f"{program} is not installed", f"apt-get install {package}")
    qdisc = " ".join([kind, *options])
    script = f"ip link add probe0 type veth peer name probe1 && tc qdisc add dev probe0 root {qdisc}"
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = _run(["unshare", *user, "--net", "--", "sh", "-c", script])
    if done.returncode == 0:
        return Capability(name, True, "tried in a namespace of its own")
    complaint = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    if done.stderr.startswith("unshare"):
        return Capability(name, False, f"cannot be tried by this user ({complaint})", AS_ROOT, tried=False)
    remedy = (
        f"modprobe {name} (Debian, Ubuntu: apt-get install linux-modules-extra-$(uname -r) where it exists)"
    )
    return Capability(name, False, f"the kernel has no {kind} ({complaint})", remedy)


def probe_xdp() -> Capability:
    """Return whether XDP programs can be loaded: by the kernel, which is tried, and by libbpf."""
    number = _BPF_SYSCALL.get(platform.machine())
    if number is None:
        return Capability("xdp", False, f"not known on {platform.machine()}", "use x86_64 or aarch64")
    problem = _load_xdp_pass(number)
    if problem in (errno.EPERM, errno.EACCES):
        detail = f"cannot be tried by this user ({os.strerror(problem)})"
        return Capability("xdp", False, detail, AS_ROOT, tried=False)
    if problem:
        detail = f"the kernel loads no XDP program ({os.strerror(problem)})"
        return Capability("xdp", False, detail, "use a kernel with CONFIG_BPF_SYSCALL")
    try:
        libbpf.library()
    except BpfUnavailable as missing:
        return Capability("xdp", False, missing.reason, missing.remedy)
    btf = "with" if Path("/sys/kernel/btf/vmlinux").exists() else "without"
    return Capability("xdp", True, f"programs load, libbpf is there, kernel {btf} BTF")


def probe_mptcp() -> Capability:
    """Return whether the kernel opens Multipath TCP sockets."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP).close()
    except OSError as failure:
        enabled = Path("/proc/sys/net/mptcp/enabled")
        remedy = (
            "sysctl net.mptcp.enabled=1"
            if enabled.exists()
            else "use a kernel with CONFIG_MPTCP (5.6 or later)"
        )
        return Capability("mptcp", False, f"the kernel opens no MPTCP socket ({failure.strerror})", remedy)
    return Capability("mptcp", True, "MPTCP sockets open")


def _effective_capabilities() -> int | None:
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", _own_status(), re.MULTILINE)
    return int(match[1], 16) if match else None


class _ProgramLoad(ctypes.Structure):
    """The head of `union bpf_attr` for BPF_PROG_LOAD (bpf(2)); the kernel takes the rest as zero."""

    _fields_ = (
        ("prog_type", ctypes.c_uint32),
        ("insn_cnt", ctypes.c_uint32),
        ("insns", ctypes.c_uint64),
        ("license", ctypes.c_uint64),
        ("log_level", ctypes.c_uint32),
        ("log_size", ctypes.c_uint32),
        ("log_buf", ctypes.c_uint64),
        ("kern_version", ctypes.c_uint32),
        ("prog_flags", ctypes.c_uint32),
    )


def _load_xdp_pass(syscall_number: int) -> int:
    """Load `return XDP_PASS` and let it go; return the kernel's error number, 0 if it loads."""
    # mov64 r0, XDP_PASS; exit
    program = ctypes.create_string_buffer(bytes.fromhex("b7000000020000009500000000000000"), 16)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = _ProgramLoad(
        prog_type=_BPF_PROG_TYPE_XDP,
        insn_cnt=2,
        insns=ctypes.addressof(program),
        license=ctypes.addressof(licence),
    )
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(
        syscall_number, _BPF_PROG_LOAD, ctypes.byref(attributes), ctypes.sizeof(attributes)
    )
    if descriptor < 0:
        return ctypes.get_errno()
    os.close(descriptor)
    return 0


def _in_english() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C"}


def _run(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S, env=_in_english()
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(
            command, 124, "", f"{command[0]} gave no answer within {TIMEOUT_S:g} s"
        )
