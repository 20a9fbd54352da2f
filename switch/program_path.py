"""Where the programs that networks are made of are looked for."""

from __future__ import annotations

import os

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where ovs-vswitchd, tc and others are; Debian leaves these out of the PATH of all but root."""


def search_system_folders() -> None:
    """Let this process, and those that it starts, find the system's programs, whatever PATH it was given."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    folders += [folder for folder in SYSTEM_FOLDERS if folder not in folders]
    os.environ["PATH"] = os.pathsep.join(folders)
