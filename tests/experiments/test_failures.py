"""What is told of runs that fail: in every place, and on disks that fill, a sentence with the reason."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.lab import LAB_COMMAND
from tests.paths import ROOT

ENGINES = Path(__file__).with_name("failing_engines.py")
SIMULATED = ("run", "butterfly", "--engine", "sim", "--protocol", "ospf", "--case", "2")


def lab(*arguments: str, limit_bytes: int | None = None, disk: Path | None = None) -> list[str]:
    """Run `mstcp-lab`, which has to fail; returns what it complains of, line by line.

    Args:
        arguments: of the command.
        limit_bytes: the size that no file can exceed.
        disk: a folder on which a disk of 70 MB is mounted, for this command alone.
    """
    call = [*LAB_COMMAND, *arguments]
    if limit_bytes is not None:
        call = ["prlimit", f"--fsize={limit_bytes}", "--", *call]
    if disk is not None:
        script = 'mount -t tmpfs -o size=70m none "$0" && exec "$@"'
        call = ["unshare", "--mount", "--", "sh", "-c", script, str(disk), *call]
    environment = {key: value for key, value in os.environ.items() if key != "MSTCP_LAB_EXTENSIONS"}
    done = subprocess.run(call, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    told = [line.removeprefix("mstcp-lab: ") for line in done.stderr.splitlines() if "mstcp-lab: " in line]
    for sentence in told:
        assert re.fullmatch(r"[A-Z].*\w.*[.!?]", sentence)
        assert not re.search(r":\s*\.|\.\.$|\[Errno", sentence), sentence
    return told


@pytest.mark.root
def test_a_trace_that_fills_the_disk(tmp_path: Path) -> None:
    trace = ("--duration", "60", "--trace", "csv", "--out", f"{tmp_path}/out")
    (told,) = lab(*SIMULATED, *trace, disk=tmp_path)
    logs = f"{tmp_path}/out/logs/2-ospf-s1"
    assert told == (
        f"Case 2 with ospf, seed 1 failed: its traces cannot be written to {logs}: No space left on device."
    )


@pytest.mark.parametrize(
    ("limit_bytes", "options", "sentence"),
    [
        (5_000, [], "Cannot write the results to {out}/job.json: File too large."),
        (12_000, [], "Cannot write the results to {out}/runs/001.json: File too large."),
        (
            200_000,
            ["--trace", "pcap"],
            "its traces cannot be written to {out}/logs/2-ospf-s1: File too large.",
        ),
        (24_000, [], "Cannot write the results to {out}/results.json: File too large."),
        (50_000, [], "Cannot write the results to {out}: File too large."),  # the report
    ],
)
def test_a_file_that_cannot_be_written(
    tmp_path: Path, limit_bytes: int, options: list[str], sentence: str
) -> None:
    out = tmp_path / "out"
    told = lab(*SIMULATED, "--duration", "2", "--out", str(out), *options, limit_bytes=limit_bytes)
    assert sentence.format(out=out) in " ".join(told)


def test_standard_output_on_a_full_disk(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        call = [*LAB_COMMAND, "list"]
        done = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr == "mstcp-lab: Cannot write the output: No space left on device.\n"


@pytest.mark.timeout(600)
@pytest.mark.root
@pytest.mark.parametrize("place", ["InProcess", "Namespaces", "VirtualKernel"])
def test_every_failure_has_its_reason_in_every_place(tmp_path: Path, place: str) -> None:
    out = tmp_path / "out"
    job = ("run", "butterfly", "--engine", f"failing-{place}", "--protocol", "ospf", "--case", "1")
    run = ("--extend", str(ENGINES), *job, "--jobs", "1")
    told = lab(*run, "--seeds", "2", "--out", str(out))
    logs = f"{out}/logs/1-ospf-s1"
    assert told[0].startswith("Case 1 with ospf, seed 1 failed: NeedsMore in failing_engines.py, line ")
    assert told[0].endswith(f": NeedsMore, which says nothing more. Its logs are in {logs}.")
    assert "NeedsMore" in Path(logs, "traceback.txt").read_text()
    assert told[1] == "Case 1 with ospf, seed 2 failed: nothing is known of the reason."
    disk = tmp_path / "disk"
    disk.mkdir()
    full = lab(*run, "--seeds", "3", "--out", str(disk / "out"), disk=disk)[-1]
    log = disk / "out" / "logs" / "1-ospf-s3"
    assert full.startswith(f"Cannot write the results to {log}"), full
    assert "No space left on device" in full
