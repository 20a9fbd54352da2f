"""The golden results of the virtual engine; `make golden` renews them.

The butterfly, all protocols, both cases. They are exact for the programs that they were made with, whose
versions stand with them; with others the analytic bounds beside them must hold all the same.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from experiments import environment, protocols
from experiments.model.results import Results
from experiments.places.virtual import kernel_image
from tests.fakes.lab import lab_process
from tests.paths import ROOT

GOLDEN = Path(__file__).with_name("golden.json")
DURATION_S = 2
CASES = ("1", "2")


def run(out: Path, *options: str, scenario: str = "butterfly", engine: str = "virtual") -> Results:
    """Run `mstcp-lab` and return its document; AssertionError has what it said where it failed."""
    words = ["run", scenario, "--engine", engine, *options, "--out", str(out), "--json", "--no-report"]
    done = lab_process(ROOT, *words)
    assert done.returncode == 0, done.stderr
    return Results.model_validate_json(done.stdout)


def run_all(out: Path) -> Results:
    """Make the golden runs."""
    names = ",".join(protocols.usual())
    return run(out, "--protocol", names, "--case", ",".join(CASES), "--duration", str(DURATION_S))


def programs() -> dict[str, str]:
    """Return what decides on every packet's time, with versions."""
    versions = environment.versions()
    used = {name: versions[name] for name in ("python", "open_vswitch", "mininet", "grpcio", "os-ken")}
    for package, call in (("iproute2", ["ip", "-V"]), ("libc", ["ldd", "--version"])):
        used[package] = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()[
            0
        ]
    used["kernel"] = kernel_image.record().kernel_sha256
    return used


def summary(results: Results) -> dict[str, Any]:
    """Return what is kept of each run."""
    return {
        f"{run.protocol}, case {run.case}": {
            "digest": run.digest,
            "flows": [
                {
                    "goodput_bps": flow.goodput_bps,
                    "delay_s": flow.delay_s.model_dump() if flow.delay_s else None,
                    "bytes_read": flow.bytes_read,
                }
                for flow in run.flows
            ],
        }
        for run in results.runs
    }


def main() -> None:
    """Renew the file."""
    with tempfile.TemporaryDirectory() as folder:
        results = run_all(Path(folder, "out"))
    document = {"programs": programs(), "runs": summary(results)}
    GOLDEN.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
