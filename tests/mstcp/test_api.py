"""What the package exports, and that its stubs and generated files are true."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import mstcp
from mstcp.proto.generate import FOLDER, ROOT, STORE, generate


def test_public_names() -> None:
    assert mstcp.__all__ == [
        "Allocation",
        "AllocationChanged",
        "BufferLimitExceeded",
        "ConnectionClosed",
        "ConnectionCounters",
        "ConnectionLost",
        "ConnectionStats",
        "ConnectionTransport",
        "ControllerError",
        "DependencyMissing",
        "Interfaces",
        "LocalProtocolError",
        "MstcpError",
        "ProtocolError",
        "RemoteProtocolError",
        "RequestedPath",
        "Server",
        "ServerLimits",
        "StreamCounters",
        "StreamInfo",
        "StreamReader",
        "StreamSpec",
        "StreamStats",
        "StreamWriter",
        "TcpInfo",
        "UnsupportedVersion",
        "blocking",
        "create_connection",
        "create_server",
        "limit_receive_memory",
        "open_connection",
        "start_server",
    ]
    assert all(hasattr(mstcp, name) for name in mstcp.__all__)


def test_errors_have_one_root_and_fit_the_standard_ones() -> None:
    errors = [getattr(mstcp, name) for name in mstcp.__all__ if isinstance(getattr(mstcp, name), type)]
    errors = [kind for kind in errors if issubclass(kind, Exception)]
    assert all(issubclass(kind, mstcp.MstcpError) for kind in errors)
    assert issubclass(mstcp.ConnectionLost, ConnectionError)
    assert issubclass(mstcp.DependencyMissing, ImportError)


def test_importing_it_needs_no_optional_package() -> None:
    optional = ("grpc", "google.protobuf", "pydantic")
    code = f"import sys, mstcp; sys.exit(any(name in sys.modules for name in {optional}))"
    assert subprocess.run([sys.executable, "-c", code], check=False, cwd=ROOT).returncode == 0


def test_the_stubs_describe_the_compiled_core() -> None:
    argv = [sys.executable, "-m", "mypy.stubtest", "--mypy-config-file", "pyproject.toml", "mstcp._core"]
    result = subprocess.run(argv, check=False, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


def test_generated_files_are_those_of_the_proto_files(tmp_path: Path) -> None:
    made = {path.name: path.read_bytes() for path in generate(tmp_path)}
    folders = (ROOT / FOLDER, ROOT / STORE)
    committed = {path.name: path.read_bytes() for folder in folders for path in folder.glob("*_pb2*.py*")}
    assert made.keys() == committed.keys()
    assert made == committed, "run: python -m mstcp.proto.generate"
