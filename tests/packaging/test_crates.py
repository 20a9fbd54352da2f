"""The crates of the end-host library can be packaged, and none depends on files outside its package."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.fakes.processes import cargo
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


_PUBLIC = re.compile(
    r"(?:^ *#\[(?:cfg|derive|non_exhaustive)[^\n]*\n)*"  # those attributes that users notice
    r"(?:^pub enum [^{]*\{.*?^\}|^ *pub use [^;]*|^ *pub \w+: [^\n]*"
    r"|^(?:impl| *pub (?!enum|use))(?:[^{;=\[]|\[[^\]]*\])*)",
    re.DOTALL | re.MULTILINE,
)


def _declarations(file: Path) -> list[str]:
    """Return what a module declares public, enums whole, and its `impl` lines, each on one line."""
    code = re.sub(r"//[^\n]*", "", file.read_text()).partition("#[cfg(test)]\nmod ")[0]
    declared = _PUBLIC.findall(code) if re.search(r"^pub \w", code, re.MULTILINE) else []
    return [f"{file.parent.name}/{file.name}: {' '.join(each.split())}" for each in declared]


def test_the_public_surface_changes_only_knowingly() -> None:
    crate = ROOT / "crates/mstcp"
    surface = [line for file in sorted((crate / "src").rglob("*.rs")) for line in _declarations(file)]
    snapshot = crate / "public-api.txt"
    if "MSTCP_RENEW" in os.environ:
        snapshot.write_text("".join(f"{line}\n" for line in surface))
    assert surface == snapshot.read_text().splitlines(), (
        "renew it: MSTCP_RENEW=1 pytest tests/packaging -k public"
    )
