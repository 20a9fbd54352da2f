"""What this program runs from: a checkout, or an environment that the distributions were installed into."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The folder that holds the packages."""


def is_checkout() -> bool:
    """Return whether the packages stand in a clone of the repository."""
    return (ROOT / "lab" / "pyproject.toml").is_file()


def repair_command() -> str:
    """Return the command that brings back what a complete installation has."""
    return "make setup" if is_checkout() else "pip install --force-reinstall mstcp-lab"


def extra_command(extra: str) -> str:
    """Return the command that installs what an extra of `mstcp-lab` brings."""
    return "make setup" if is_checkout() else f"pip install 'mstcp-lab[{extra}]'"
