"""The client without links: where it finds the program, and what it says when that is of no use."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from topologies.errors import TopologyError
from topologies.link_emulator import (
    EmulatorDiedError,
    EmulatorMissingError,
    LinkEmulator,
    LinkError,
    RequestRefusedError,
    find_binary,
)


def test_a_missing_program_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LINK_EMULATOR", str(tmp_path / "nothing"))
    with pytest.raises(EmulatorMissingError, match=r"nothing is missing.*make setup") as caught:
        find_binary()
    assert caught.value.path == tmp_path / "nothing"


def test_the_variable_names_the_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "emulator"
    program.touch(mode=0o755)
    monkeypatch.setenv("LINK_EMULATOR", str(program))
    assert find_binary() == program


def test_a_program_that_ends_is_reported_with_its_words(tmp_path: Path) -> None:
    program = tmp_path / "emulator"
    program.write_text("#!/bin/sh\necho 'link-emulator: the roof is on fire.' >&2\nexit 3\n")
    program.chmod(0o755)
    with pytest.raises(EmulatorDiedError, match=r"status 3: the roof is on fire\.") as caught:
        LinkEmulator(program)
    assert caught.value.status == 3


def test_all_errors_are_link_errors() -> None:
    for kind in (EmulatorDiedError, EmulatorMissingError, RequestRefusedError):
        assert issubclass(kind, LinkError)
    assert issubclass(LinkError, TopologyError)


@pytest.fixture
def program() -> Path:
    try:
        return find_binary()
    except EmulatorMissingError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    "arguments",
    [["--colour"], ["--realtime-priority"], ["--realtime-priority", "100"], ["--realtime-priority", "x"]],
)
def test_wrong_arguments_are_refused(program: Path, arguments: list[str]) -> None:
    result = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("link-emulator: ")
    assert arguments[-1] in result.stderr


def test_without_privileges_it_says_what_it_needs(program: Path) -> None:
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    result = subprocess.run([*drop, program], capture_output=True, text=True, check=False, input="")
    assert result.returncode == 1
    assert "run as root, or with CAP_NET_RAW and CAP_NET_ADMIN" in result.stderr
