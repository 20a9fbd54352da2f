"""Finds Mininet. Distributions install it for their own Python, outside every virtual environment.

Only the package `mininet` itself becomes importable, not the folder around it, so that no other package of
the system can slip in front of the locked ones.
"""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
import warnings
from pathlib import Path

from topologies.errors import MininetMissing

FOLDERS = ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3/dist-packages")
REMEDY = "install Debian's or Ubuntu's package (apt-get install mininet)"


def find_mininet() -> Path | None:
    """Return the folder of the package, None if there is none."""
    spec = importlib.util.find_spec("mininet")
    if spec is not None and spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    versioned = f"/usr/local/lib/python{sys.version_info.major}.{sys.version_info.minor}/dist-packages"
    for folder in (*FOLDERS, versioned):
        path = Path(folder) / "mininet"
        if (path / "net.py").is_file():
            return path
    return None


def find_version() -> str | None:
    """Return Mininet's version as its source has it, without importing it; None if it is not there."""
    folder = find_mininet()
    if folder is None:
        return None
    match = re.search(r'^VERSION = "([^"]+)"', (folder / "net.py").read_text(encoding="utf-8"), re.MULTILINE)
    return match[1] if match else None


def make_importable() -> None:
    """Make `import mininet.net` work, and Mininet quiet: warnings and errors only, on standard error.

    Raises:
        MininetMissing: with the command that installs it.
    """
    if "mininet" not in sys.modules:
        path = find_mininet()
        if path is None:
            raise MininetMissing(f"Mininet is not installed: {REMEDY}")
        _register(path)
    _import_quietly()


def _register(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(
        "mininet", path / "__init__.py", submodule_search_locations=[str(path)]
    )
    if spec is None or spec.loader is None:
        raise MininetMissing(f"{path} is not a Python package: {REMEDY}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["mininet"] = module
    spec.loader.exec_module(module)


def _import_quietly() -> None:
    """Import Mininet's modules without what they do to the rest of the process."""
    logger_class = logging.getLoggerClass()
    try:
        with warnings.catch_warnings():
            # Mininet uses distutils, which warns on Python 3.10 and 3.11; setuptools supplies it from 3.12.
            warnings.simplefilter("ignore", DeprecationWarning)
            if sys.version_info >= (3, 12):
                import setuptools  # noqa: F401 (supplies distutils)
            import mininet.net
    except ImportError as failure:
        raise MininetMissing(f"Mininet cannot be imported ({failure}): {REMEDY}") from failure
    finally:
        # Mininet makes its own class the class of every logger made from then on.
        logging.setLoggerClass(logger_class)
    mininet.log.setLogLevel("warning")
