"""The compiled splitter that is shipped is of the source that is shipped."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from switch.errors import BpfUnavailable, CommandFailed
from switch.ppfs import build, libbpf, splitter
from switch.ppfs.build import SOURCE, is_current, source_sha256
from switch.ppfs.split import COUNTERS_BYTES, MAX_FLOWS, MAX_PATHS, SPLIT

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")


def test_shipped_object_is_of_the_source() -> None:
    assert is_current(), "switch/ppfs/splitter.bpf.c has changed: python -m switch.ppfs.build"


def test_object_tells_another_source(tmp_path: Path) -> None:
    changed = tmp_path / SOURCE.name
    changed.write_bytes(SOURCE.read_bytes() + b"\n")
    assert not is_current(source=changed)
    assert not is_current(compiled=tmp_path / "missing.o")


def test_source_and_python_agree_on_sizes() -> None:
    text = SOURCE.read_text()
    assert re.search(r"#define MAX_FLOWS (\d+)", text)[1] == str(MAX_FLOWS)  # type: ignore[index]
    assert re.search(r"#define MAX_PATHS (\d+)", text)[1] == str(MAX_PATHS)  # type: ignore[index]
    assert SPLIT.size == MAX_PATHS * (8 + 6)
    assert COUNTERS_BYTES == MAX_PATHS * 16


@needs_clang
def test_build_carries_the_hash_and_no_place(tmp_path: Path) -> None:
    made = tmp_path / "made.o"
    build.build(made)
    assert is_current(made)
    assert str(SOURCE.parent).encode() not in made.read_bytes()
    assert source_sha256().encode() in made.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["made.o"]


@needs_clang
def test_what_clang_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int nothing(void) { return missing; }\n")
    monkeypatch.setattr(build, "SOURCE", broken)
    with pytest.raises(CommandFailed, match="undeclared identifier 'missing'"):
        build.build(tmp_path / "made.o")
    assert not (tmp_path / "made.o").exists()


def test_clang_is_wanted_only_where_the_source_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    build.main()
    monkeypatch.setattr(build, "is_current", lambda: False)
    with pytest.raises(SystemExit, match="clang is missing: apt-get install clang"):
        build.main()


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libbpf, "LIBRARIES", ("libbpf.so.nosuch",))
    with pytest.raises(BpfUnavailable, match="libbpf is not installed: apt-get install libbpf1"):
        libbpf.library.__wrapped__()


@pytest.mark.parametrize("release", ["5.8.0-63-generic", "4.19.0", "strange"])
def test_old_kernel_is_named(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: release)
    with pytest.raises(BpfUnavailable, match=rf"Linux {release} has no BPF links.*Linux 5.9 or later"):
        libbpf.library.__wrapped__()


def test_missing_object_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitter, "OBJECT", tmp_path / "splitter.bpf.o")
    with pytest.raises(BpfUnavailable, match="python -m switch.ppfs.build"):
        splitter.Splitter("lo")


def test_big_endian_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(BpfUnavailable, match="little-endian"):
        splitter.Splitter("lo")
