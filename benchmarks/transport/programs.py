"""The Rust API and the C interface as ends of a transfer, by their example programs, which are built."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.transport import network

ROOT = Path(__file__).resolve().parents[2]
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


def run(role: str, kind: str, port: int, offset: int, seconds: float) -> None:
    """Run one end, which says what it has to say on our standard output."""
    address = [network.FAR, str(port)] if kind == "mstcp_c" else [f"{network.FAR}:{port}"]
    command = [str(_PROGRAMS[kind]), role, *address]
    if role == "source":
        ports = (network.FIRST_PATH_PORT + offset, network.SECOND_PATH_PORT + offset)
        command += [str(seconds), *(f"{network.NEAR}:{port}" for port in ports)]
    sys.stdout.flush()
    # Who measures awaits JSON after the first line of a sink, and from a source nothing but that.
    subprocess.run(command, check=True)
