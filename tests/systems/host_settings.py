"""Hands a fresh root how this machine reaches package registries: what apt, pip, uv and cargo are told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

VARIABLES = re.compile(
    r"(pip|uv|cargo|rustup|npm_config|git|ssl|curl|requests|node)_\w*"
    r"(ca|cert|certs|cafile|cainfo|bundle|proxy|index|index_url|links|host|timeout|file|dir)(_\w+)?"
    r"|(https?|no|all|ftp)_proxy",
    re.IGNORECASE,
)
"""Names of variables that say where packages come from and whom to trust."""
APT = re.compile(r"Acquire::(https?|Check-\w+|Retries|ForceIPv\w|Queue-Mode)\b")
COPIED = (
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/pip.conf",
    "/etc/uv/uv.toml",
    "/etc/apt/auth.conf",
    "/etc/apt/auth.conf.d",
    "/usr/local/share/ca-certificates",
)
OF_USERS = (".config/pip/pip.conf", ".pip/pip.conf", ".config/uv/uv.toml", ".cargo/config.toml", ".netrc")


def mirrors() -> dict[str, str]:
    """Return this machine's Debian mirrors: `main`, and `security` for its updates; none on other systems."""
    if "ID=debian\n" not in Path("/etc/os-release").read_text():
        return {}
    call = [
        "apt-get",
        "indextargets",
        "--format",
        "$(RELEASE) $(REPO_URI)",
        "Created-By: Packages",
        "Origin: Debian",
    ]
    lines = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    found: dict[str, str] = {}
    for release, uri in (line.split() for line in lines):
        found.setdefault("security" if release.endswith("-security") else "main", uri)
    return found


def environment() -> dict[str, str]:
    """Return the variables of this process that are about registries."""
    return {name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)}


def shared_folders() -> list[str]:
    """Return the folders of this machine, outside the system's own, that those variables name."""
    system = ("/etc/", "/usr/", "/lib/", "/proc/")
    return [value for value in environment().values() if _is_folder(value) and not value.startswith(system)]


def apt_lines() -> Iterator[str]:
    """Yield what apt is told of connections, as lines of apt.conf."""
    dump = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=True).stdout
    return (line for line in dump.splitlines() if APT.match(line))


def hand_over(root: Path, homes: list[Path]) -> None:
    """Write the settings into a root file system, for all of its users.

    Args:
        root: the file system.
        homes: the home folders that its users may have, inside.
    """
    for name in COPIED:
        _copy(Path(name), root / name[1:])
    for home in homes:
        inside = root / str(home)[1:]
        if inside.exists():
            for name in OF_USERS:
                _copy(Path.home() / name, inside / name)
            _give_to_owner(inside)
    lines = [f'{name}="{value}"\n' for name, value in environment().items()]
    (root / "etc/environment").write_text("".join(lines))
    (root / "etc/apt/apt.conf.d/99host").write_text("\n".join(apt_lines()) + "\n")


def _is_folder(value: str) -> bool:
    return value.startswith("/") and Path(value).is_dir()


def _give_to_owner(home: Path) -> None:
    owner = home.stat()
    for path in home.rglob("*"):
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def _copy(source: Path, target: Path) -> None:
    if source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    elif source.is_file():
        target.unlink(missing_ok=True)
        shutil.copy(source, target)
