"""What a release says of itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_all_files_name_one_version() -> None:
    done = subprocess.run([ROOT / "scripts" / "set-version", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_bill_of_materials_has_every_locked_crate_with_its_licence() -> None:
    printed = subprocess.check_output([sys.executable, "scripts/sbom"], cwd=ROOT, text=True)
    listed = {entry["purl"]: entry for entry in json.loads(printed)["components"]}
    lock = (ROOT / "Cargo.lock").read_text()
    locked = re.findall(r'^name = "(.*)"\nversion = "(.*)"\nsource = ', lock, re.MULTILINE)
    crates = {f"pkg:cargo/{name}@{version}" for name, version in locked}
    here = {purl for purl in listed if purl.startswith("pkg:cargo/")}
    # Cargo.lock also has what other platforms need.
    assert here
    assert here <= crates
    assert all("licenses" in listed[purl] for purl in here)
