"""Our networks on Mininet's own command line.

sudo mn --custom topologies/mn.py --topo butterfly --controller remote
sudo mn --custom topologies/mn.py --topo ring,6,rate_bps=5e6 --controller none
sudo mn --custom topologies/mn.py --topo file,my-network.toml

`mn` runs this file with the system's Python and no package around it; the locked packages it needs are those
of the checkout's .venv.
"""

from __future__ import annotations

import sys
from pathlib import Path


def _use_checkout() -> None:
    """Make this checkout and the packages of its .venv importable.

    Raises:
        SystemExit: there is no .venv for this Python; with what to do.
    """
    # mn executes the text of this file, so there is no __file__.
    root = Path(_use_checkout.__code__.co_filename).resolve().parent.parent
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = root / ".venv" / "lib" / version / "site-packages"
    try:
        import pydantic  # noqa: F401 (is it there?)
    except ImportError:
        if not packages.is_dir():
            raise SystemExit(
                f"{root / '.venv'} has no packages for {version}, which runs mn: "
                f"run `make setup` with that Python, or start the network with mstcp-lab"
            ) from None
        # In front: the system's own packages may be older than pydantic needs.
        sys.path.insert(0, str(packages))
    sys.path.insert(0, str(root))


def _require_switches() -> None:
    """Stop where `mn` would end with a traceback for want of Open vSwitch.

    Raises:
        SystemExit: with what is missing and what to do.
    """
    from switch.program_path import search_system_folders
    from topologies.system_switches import REMEDY, are_wanted, why_none

    search_system_folders()
    if are_wanted(sys.argv[1:]) and (reason := why_none()):
        raise SystemExit(
            f"mn has no switches: {reason}. Start it: {REMEDY}. `mstcp-lab shell` starts its own instead."
        )


_use_checkout()
_require_switches()

from topologies.mininet_topo import make_topos

topos = make_topos()
