"""What set-up asks the system for: no switches for the simulator, and for a user nothing that tests use."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.paths import ROOT

SCRIPT = ROOT / "scripts" / "install-packages"
EMULATION = {"openvswitch-switch", "mininet", "ethtool", "mptcpize"}
TESTS = {"chromium", "nodejs", "npm", "openssh-client", "openssh-server", "iperf3", "etcd-server", "nftables"}


def asked(folder: Path, *options: str) -> set[str]:
    """Return the packages that a machine is asked to install which has nothing but what every Debian has."""
    programs = {"dpkg-query": "exit 1", "sudo": 'exec "$@"', "apt-get": f'echo "$@" >>{folder}/asked'}
    programs["apt-cache"] = "exit 0"
    for name, line in programs.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)
    for needed in ("bash", "env", "id", "mktemp", "rm", "tail", "python3", "sh"):
        (folder / needed).symlink_to(f"/usr/bin/{needed}")
    subprocess.run([SCRIPT, *options], check=True, env={"PATH": str(folder)}, capture_output=True)
    *_, install = (folder / "asked").read_text().splitlines()
    return {word for word in install.split() if not word.startswith("-")} - {"install"}


@pytest.mark.parametrize(
    ("options", "wanted", "unwanted"),
    [
        ((), {"gcc", "make", "git"}, EMULATION | TESTS),
        (("--emulation",), EMULATION, TESTS),
        (("--tests",), TESTS - {"chromium", "openssh-server"}, EMULATION),
    ],
)
def test_each_use_asks_for_its_own_packages(
    options: tuple[str, ...], wanted: set[str], unwanted: set[str], tmp_path: Path
) -> None:
    packages = asked(tmp_path, *options)
    assert wanted <= packages
    assert not unwanted & packages
