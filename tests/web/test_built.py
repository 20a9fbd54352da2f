"""The built pages are those of the sources, small, and need nothing from elsewhere."""

import hashlib
import json
import re
import shutil
import subprocess
import zlib

import pytest

from tests.paths import ROOT
from tests.web import page_types

WEB = ROOT / "web"
PAGES = {"controller": ROOT / "controller" / "api" / "page", "lab": ROOT / "experiments" / "page"}
COMMON = ("build.mjs", "package.json", "package-lock.json", "tsconfig.json")
BUDGET_BYTES = 300_000


def hash_of_sources(page: str) -> str:
    """As web/build.mjs does it."""
    files = [path for part in ("shared", page) for path in (WEB / "src" / part).rglob("*") if path.is_file()]
    names = [*COMMON, *(path.relative_to(WEB).as_posix() for path in files)]
    digest = hashlib.sha256()
    for name in sorted(names):
        content = (WEB / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


@pytest.mark.parametrize("page", PAGES)
def test_the_built_page_is_that_of_the_sources(page: str) -> None:
    built = (PAGES[page] / "sources.sha256").read_text().strip()
    assert built == hash_of_sources(page), (
        f"web/ has changed since {PAGES[page].relative_to(ROOT)} was built: run 'make web' and commit it"
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_types_are_those_of_the_servers(page: str) -> None:
    types = page_types.types_of(page)
    assert types.read_text().startswith(page_types.heading(page)), (
        f"REST has changed since {types.relative_to(ROOT)} was generated: run 'make web' and commit it"
    )


@pytest.mark.parametrize("page", PAGES)
def test_the_script_is_small(page: str) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    script = (PAGES[page] / "page.js").read_bytes()
    assert len(packer.compress(script) + packer.flush()) <= BUDGET_BYTES


@pytest.mark.parametrize("page", PAGES)
def test_the_page_asks_nobody_else(page: str) -> None:
    text = (PAGES[page] / "index.html").read_text() + (PAGES[page] / "page.css").read_text()
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//|url\((?!data:)|@import", text)
    assert "<script>" not in text
    assert "style=" not in text


@pytest.mark.parametrize("page", PAGES)
def test_the_licences_of_its_parts_go_with_it(page: str) -> None:
    licenses = (PAGES[page] / "licenses.txt").read_text()
    for name, version in json.loads((WEB / "package.json").read_text())["dependencies"].items():
        assert f"{name} {version} (" in licenses
    assert "Permission is hereby granted" in licenses


def test_the_lock_names_no_registry() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()


@pytest.mark.skipif(
    shutil.which("node") is None or not (WEB / "node_modules").is_dir(),
    reason="node is needed: run 'make web'",
)
def test_the_parts_work() -> None:
    """Format and types are checked by `make lint`."""
    done = subprocess.run(
        ["npm", "run", "--silent", "test"], cwd=WEB, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
