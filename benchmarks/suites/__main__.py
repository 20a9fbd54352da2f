"""Other projects' tests over the library's transports: python -m benchmarks.suites [SUITE ...] [--json].

Each suite comes from its source package (CPython's from this interpreter), in an environment of its own below
build/suites. It is run over plain asyncio, and then with each TCP connection over MSTCP: of one stream, and
of three, through a relay where the server is not ours. A test that passes over asyncio and not over MSTCP is
a difference; those on purpose are named here with the reason. The exit status is 1 if there is another one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.command_line import command_line
from benchmarks.pages import markdown_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "suites"
LIMIT_S = 1800
STREAMS = (1, 3)
"""Of how many streams the connections are, in turn."""
NEEDED = [
    *(
        "pytest",
        "pytest-timeout",
        "pytest-mock",
        "pytest-xdist",
        "trustme",
        "blockbuster",
        "hypothesis",
        "sniffio",
    ),
    *("truststore", "psutil", "proxy.py", "re-assert", "time-machine", "freezegun", "isal", "zlib_ng"),
    *("pytest-codspeed", "python-on-whales", "brotli"),
    *("httpx[cli,http2,brotli,zstd,socks]", "uvicorn", "chardet"),
]


@dataclass(frozen=True)
class Suite:
    """Tests of another project.

    Attributes:
        package: Whose source package has them, as pip names it; None: this interpreter has.
        tests: Arguments for pytest.
        on_purpose: Regular expressions of tests that differ, and why.
        with_several: Further ones, over several streams.
        environment: For the plugin.
    """

    package: str | None
    tests: list[str]
    on_purpose: dict[str, str] = field(default_factory=dict)
    with_several: dict[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


_PRIVATE = "it asks asyncio's own attributes"
SUITES = {
    "asyncio": Suite(
        None,
        [
            "--pyargs",
            *(
                f"test.test_asyncio.test_{name}"
                for name in ("streams", "server", "buffered_proto", "sendfile")
            ),
        ],
        {
            "prevents_bare_write|force_unsupported_native": "a file is read and written, as in TLS",
            "close_peer_in_the_middle": "who has closed discards what still comes",
            "test_start_server_1": _PRIVATE,
            "_no_loop_ssl": "TLS that ends without a close_notify may be cut short: ConnectionLost",
        },
        {"exception_after_close": "they end when the peer has everything, a round trip after `close`"},
    ),
    "aiohttp": Suite("aiohttp==3.14.5", ["tests/test_web_functional.py", "tests/test_client_functional.py"]),
    "httpx": Suite(
        "httpx==0.28.1",
        # Their server's port is always the same: one process at a time.
        ["-n", "0", "tests/client/test_async_client.py", "tests/test_timeouts.py", "tests/test_main.py"],
    ),
    "anyio": Suite(
        "anyio==4.16.0",
        ["tests/test_sockets.py", "-k", "(TestTCPStream or TestTCPListener) and not uvloop and not ipv6"],
        {
            "cancelled_receive_pauses|closes_winner|refcycles": _PRIVATE.replace("asyncio", "anyio"),
            "connection_refused": "errors of `connect` are those of the system, not wrapped",
            r"(forcefully|close_during_send|in_cancelled_scope).*trio": "its thread closes it later",
        },
        {
            "connect_tcp_with_local_port": "a local port is one stream's",
            "test_extra_attributes": "a relay stands before a server that is not ours",
            "(cancelled_send|receive_after_peer|test_send_receive).*asyncio": "it blocks the hello's loop",
        },
        {"MSTCP_SUITE_ANYIO": "1"},
    ),
}


def main() -> int:
    """Run the suites and print what differs."""
    parser = command_line(__doc__, with_json=True)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)} (default: all)")
    arguments = parser.parse_args()
    if unknown := set(arguments.suites) - set(SUITES):
        parser.error(f"there is no suite {', '.join(sorted(unknown))}")
    python = _environment()
    rows = [row for name in arguments.suites or SUITES for row in _compared(name, SUITES[name], python)]
    if arguments.json:
        print(json.dumps(rows))
        return any(row["different"] for row in rows)
    head = ("suite", "streams", "pass over asyncio", "pass over MSTCP", "differ on purpose", "differ")
    cells = []
    for row in rows:
        counts = [str(row[key]) for key in ("streams", "plain", "passed")]
        cells.append([row["suite"], *counts, *(str(len(row[key])) for key in ("on_purpose", "different"))])
    print(*markdown_table(head, cells), sep="\n")
    for row in rows:
        for test, reason in row["different"].items():
            print(f"{row['suite']}, {row['streams']} streams: {test}: {reason}")
    return any(row["different"] for row in rows)


def _environment() -> str:
    """Return the interpreter of an environment with what the suites need."""
    uv = [sys.executable, "-m", "uv"]
    if not (FOLDER / "bin").exists():
        subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(FOLDER)], check=True)
    packages = [suite.package for suite in SUITES.values() if suite.package]
    python = str(FOLDER / "bin" / "python")
    subprocess.run(
        [*uv, "pip", "install", "--quiet", "--python", python, *NEEDED, *packages, "trio"], check=True
    )
    return python


def _sources(package: str) -> Path:
    """Return the folder with a package's sources."""
    name = package.replace("==", "-")
    folder = FOLDER / "sources" / name
    if not folder.exists():
        fetch = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            ":all:",
            package,
        ]
        subprocess.run([*fetch, "--dest", str(FOLDER)], check=True)
        with tarfile.open(FOLDER / f"{name}.tar.gz") as archive:
            archive.extractall(folder.parent, filter="data")
        # The package as it is installed, which is compiled, not its sources.
        (folder / package.partition("==")[0]).rename(folder / "unused") if (
            folder / "aiohttp"
        ).exists() else None
    return folder


def _compared(name: str, suite: Suite, python: str) -> Iterator[dict[str, Any]]:
    plain = _outcomes(suite, 0, python)
    passed = {test for test, (outcome, _) in plain.items() if outcome == "passed"}
    for streams in STREAMS:
        on_purpose = suite.on_purpose | (suite.with_several if streams > 1 else {})
        ours = _outcomes(suite, streams, python)
        failed = {
            test: ours.get(test, ("none", "it was not run"))[1]
            for test in sorted(passed)
            if ours.get(test, ("",))[0] != "passed"
        }
        reasons = {
            test: why for test in failed for pattern, why in on_purpose.items() if re.search(pattern, test)
        }
        yield {
            "suite": name,
            "streams": streams,
            "plain": len(passed),
            "passed": len(passed) - len(failed),
            "on_purpose": reasons,
            "different": {test: why for test, why in failed.items() if test not in reasons},
        }


def _outcomes(suite: Suite, streams: int, python: str) -> dict[str, tuple[str, str]]:
    """Run a suite; return the outcome of each test, and why it failed."""
    file = FOLDER / "outcomes.jsonl"
    file.unlink(missing_ok=True)
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL"))},
        **suite.environment,
        "PYTHONPATH": str(ROOT),
        "MSTCP_SUITE_STREAMS": str(streams),
        "MSTCP_SUITE_OUTCOMES": str(file),
    }
    call = [
        python,
        "-m",
        "pytest",
        "-q",
        "-p",
        "benchmarks.suites.plugin",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
    ]
    call += ["--timeout", "60", "-o", "addopts=", "-o", "filterwarnings=", *suite.tests]
    folder = FOLDER if suite.package is None else _sources(suite.package)
    subprocess.run(call, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False, timeout=LIMIT_S)
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return {test: (outcome, reason) for test, outcome, reason in lines}


if __name__ == "__main__":
    sys.exit(main())
