"""What a release says of itself."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.paths import ROOT


def test_all_files_name_one_version() -> None:
    done = subprocess.run([ROOT / "scripts" / "set-version", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_new_version_leaves_the_lock_file_valid(tmp_path: Path) -> None:
    """Everything is built with --locked."""
    kinds = ("*.toml", "*.lock", "*.cff", "crates", "mstcp/__init__.py", "scripts/set-version")
    for name in subprocess.check_output(["git", "ls-files", *kinds], cwd=ROOT, text=True).splitlines():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for command in (["scripts/set-version", "98.7.6"], ["scripts/set-version", "--check"]):
        subprocess.run(command, cwd=tmp_path, check=True)
    cargo = subprocess.check_output([ROOT / "scripts" / "find-cargo"], text=True).strip()
    tree = [cargo, "tree", "--locked", "--offline", "--workspace", "--depth", "0", "--prefix", "none"]
    printed = subprocess.check_output(tree, cwd=tmp_path, text=True)
    assert set(re.findall(r"^[a-z-]+ v(\S+)", printed, re.MULTILINE)) == {"98.7.6"}


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
