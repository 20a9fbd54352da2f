"""The documentation site: every link inside it leads somewhere, and it loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from inspect import ismodule
from pathlib import Path

import pytest

from tests.paths import ROOT

LOADED = re.compile(
    r'<(?:script|img|iframe|source)[^>]+src="([^"]+)"|<link[^>]+rel="stylesheet"[^>]+href="([^"]+)"'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    call = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(folder)]
    done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.timeout(600)
def test_every_page_is_in_the_site_and_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in (ROOT / "docs").glob("*.md"):
        text = (site / f"{page.stem}.html").read_text()
        loaded = [first or second for first, second in LOADED.findall(text)]
        assert loaded
        assert [url for url in loaded if "//" in url] == []


@pytest.mark.timeout(600)
def test_the_reference_has_what_users_import(site: Path) -> None:
    import gomr

    import mstcp

    for page, module in (("reference-mstcp", mstcp), ("reference-gomr", gomr)):
        text = (site / f"{page}.html").read_text()
        named = [(name, getattr(module, name)) for name in module.__all__]
        # Constants have no docstring that the reference could take.
        names = [f"{module.__name__}.{name}" for name, value in named if callable(value) or ismodule(value)]
        missing = [name for name in names if f'id="{name}"' not in text and f'id="module-{name}"' not in text]
        assert missing == [], page


@pytest.mark.timeout(600)
def test_the_reference_has_what_the_library_s_page_names_of_connections(site: Path) -> None:
    table = (
        (ROOT / "docs" / "mstcp.md")
        .read_text()
        .partition("## Beyond asyncio")[2]
        .partition("**Logging.**")[0]
    )
    methods = re.findall(r"^\| `(\w+)\(", table, re.MULTILINE)
    assert "stats" in methods
    text = (site / "reference-mstcp.html").read_text()
    assert [name for name in methods if f'id="mstcp.ConnectionTransport.{name}"' not in text] == []
