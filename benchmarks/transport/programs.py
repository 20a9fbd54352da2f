"""The Rust API and the C interface as ends of a transfer, by their example programs, which are built."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.peak_memory import peak_memory_mib
from benchmarks.transport import addresses

ROOT = Path(__file__).resolve().parents[2]
POLL_S = 0.05
KINDS = ("mstcp_rust", "mstcp_c")
_CAPI = ROOT / "build" / "capi"
_PROGRAMS = {
    "mstcp_rust": ROOT / "target" / "release" / "examples" / "transfer",
    "mstcp_c": _CAPI / "transfer",
}


def build() -> None:
    """Build both (RuntimeError: A compiler is missing, or fails)."""
    try:
        found = subprocess.run([ROOT / "scripts" / "find-cargo"], capture_output=True, text=True, check=True)
        rust = ["build", "--quiet", "--release", "--locked", "--package", "mstcp", "--example", "transfer"]
        subprocess.run([found.stdout.strip(), *rust], cwd=ROOT, check=True)
        subprocess.run([ROOT / "scripts" / "build-capi", _CAPI], check=True)
        flags = [f"-I{_CAPI}/include", f"-L{_CAPI}/lib", f"-Wl,-rpath,{_CAPI}/lib", "-lmstcp"]
        source = ROOT / "crates" / "mstcp-capi" / "examples" / "c" / "transfer.c"
        subprocess.run(["gcc", "-O2", source, *flags, "-o", _PROGRAMS["mstcp_c"]], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"the Rust API and the C interface cannot be built: {error}") from None


def run(role: str, kind: str, port: int, offset: int, seconds: float) -> float:
    """Run one end, which says what it has to say on our standard output; return its peak of memory in MiB."""
    address = [addresses.FAR, str(port)] if kind == "mstcp_c" else [f"{addresses.FAR}:{port}"]
    command = [str(_PROGRAMS[kind]), role, *address]
    if role == "source":
        ports = (addresses.FIRST_PATH_PORT + offset, addresses.SECOND_PATH_PORT + offset)
        command += [str(seconds), *(f"{addresses.NEAR}:{port}" for port in ports)]
    sys.stdout.flush()
    # Who measures awaits JSON after the first line of a sink, and from a source nothing but that.
    peak_mib = 0.0
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            peak_mib = max(peak_mib, peak_memory_mib(process.pid) or 0.0)
            time.sleep(POLL_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return peak_mib
