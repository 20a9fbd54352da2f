"""The crates of the end-host library can be packaged, and none depends on files outside its package."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.processes import cargo
from tests.packaging.rust_surface import public_names, public_surface
from tests.paths import ROOT

CRATES = ("mstcp-proto", "mstcp-net", "mstcp", "mstcp-capi")


def _cargo(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([cargo(), *words], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("crate", CRATES)
def test_a_crate_holds_all_that_it_includes(crate: str) -> None:
    listed = _cargo("package", "--list", "--allow-dirty", "--offline", "--package", crate)
    assert listed.returncode == 0, listed.stderr
    files = set(listed.stdout.split())
    assert {"README.md", "src/lib.rs"} <= files
    folder = ROOT / "crates" / crate
    for file in sorted(name for name in files if name.endswith(".rs")):
        for named in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', (folder / file).read_text()):
            inside = ((folder / file).parent / named).absolute()
            assert str(inside.relative_to(folder)) in files, f"{file} includes {named}"


def test_the_crates_are_accepted_together() -> None:
    major, minor, *_ = (int(part) for part in re.findall(r"\d+", _cargo("--version").stdout))
    if (major, minor) < (1, 90):
        pytest.skip("cargo before 1.90 packages no crates that depend on unpublished ones")
    words = [word for crate in CRATES for word in ("--package", crate)]
    packaged = _cargo("package", "--offline", "--no-verify", "--allow-dirty", *words)
    assert packaged.returncode == 0, packaged.stderr


@pytest.mark.parametrize(
    ("crate", "surface_of"),  # of mstcp-capi it is mstcp.h
    [("mstcp-proto", public_names), ("mstcp-net", public_names), ("mstcp", public_surface)],
)
def test_the_public_surface_changes_only_knowingly(
    crate: str, surface_of: Callable[[Path], list[str]]
) -> None:
    file = ROOT / "crates" / crate / "public-api.txt"
    surface = surface_of(ROOT / "crates" / crate / "src")
    if "MSTCP_RENEW" in os.environ:
        file.write_text("".join(f"{line}\n" for line in surface))
    assert surface == file.read_text().splitlines(), (
        "renew it: MSTCP_RENEW=1 pytest tests/packaging -k public"
    )
