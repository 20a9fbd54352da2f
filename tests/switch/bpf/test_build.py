"""The compiled BPF programs that are shipped are of the sources that are shipped."""

from __future__ import annotations

import platform
import re
import shutil
import sys
from pathlib import Path

import pytest

from switch.bpf import build, libbpf
from switch.bpf.build import OBJECTS, is_current, source_of, source_sha256
from switch.errors import BpfUnavailable, CommandFailed
from switch.ppfs import splitter
from switch.ppfs.split import COUNTERS_BYTES, MAX_FLOWS, MAX_PATHS, SPLIT

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="needs clang")


every_object = pytest.mark.parametrize("compiled", OBJECTS, ids=lambda path: path.name)


@every_object
def test_shipped_object_is_of_the_source(compiled: Path) -> None:
    assert is_current(compiled), f"{source_of(compiled)} has changed: python -m switch.bpf.build"


@every_object
def test_object_tells_another_source(compiled: Path, tmp_path: Path) -> None:
    changed = tmp_path / source_of(compiled).name
    changed.write_bytes(source_of(compiled).read_bytes() + b"\n")
    assert not is_current(compiled, changed)
    assert not is_current(tmp_path / "missing.o", changed)


def test_source_and_python_agree_on_sizes() -> None:
    text = source_of(splitter.OBJECT).read_text()
    assert re.search(r"#define MAX_FLOWS (\d+)", text)[1] == str(MAX_FLOWS)  # type: ignore[index]
    assert re.search(r"#define MAX_PATHS (\d+)", text)[1] == str(MAX_PATHS)  # type: ignore[index]
    assert SPLIT.size == MAX_PATHS * (8 + 6)
    assert COUNTERS_BYTES == MAX_PATHS * 16


@needs_clang
@every_object
def test_build_carries_the_hash_and_no_place(compiled: Path, tmp_path: Path) -> None:
    source, made = source_of(compiled), tmp_path / "made.o"
    build.build(source, made)
    assert is_current(made, source)
    assert str(source.parent).encode() not in made.read_bytes()
    assert source_sha256(source).encode() in made.read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["made.o"]


@needs_clang
def test_what_clang_says_is_passed_on(tmp_path: Path) -> None:
    broken = tmp_path / "broken.c"
    broken.write_text("int nothing(void) { return missing; }\n")
    with pytest.raises(CommandFailed, match="undeclared identifier 'missing'"):
        build.build(broken, tmp_path / "made.o")
    assert not (tmp_path / "made.o").exists()


def test_clang_is_wanted_only_where_the_source_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    build.main()
    monkeypatch.setattr(build, "is_current", lambda _: False)
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
    with pytest.raises(BpfUnavailable, match="python -m switch.bpf.build"):
        splitter.Splitter("lo")


def test_big_endian_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "byteorder", "big")
    with pytest.raises(BpfUnavailable, match="little-endian"):
        splitter.Splitter("lo")
