"""Programs for ns-3: compiled when they have changed, and run once for each case and seed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

FOLDER = Path("build/ns3")

Key = tuple[str, int]
Run = TypeVar("Run")


def is_compiled(name: str, libraries: Iterable[str]) -> bool:
    """Compile NAME.cc of this folder if it has changed; say on standard error why it cannot be."""
    problem = _compile(name, libraries)
    if problem:
        print(f"ns3: {problem}", file=sys.stderr)
    return not problem


def _compile(name: str, libraries: Iterable[str]) -> str | None:
    """Return why it cannot be, if so."""
    source, program = Path(__file__).with_name(f"{name}.cc"), FOLDER / name
    FOLDER.mkdir(parents=True, exist_ok=True)
    if program.exists() and program.stat().st_mtime > source.stat().st_mtime:
        return None
    if shutil.which("g++") is None or not Path("/usr/include/ns3").is_dir():
        return "a C++ compiler and ns-3 are needed: apt-get install g++ libns3-dev"
    linked = [f"-lns3-{library}" for library in libraries]
    command = ["g++", "-std=c++17", "-O2", str(source), "-o", str(program), *linked]
    built = subprocess.run(command, capture_output=True, text=True)
    return (
        None
        if built.returncode == 0
        else f"{name}.cc does not compile with this ns-3 (3.37 is known to work):\n{built.stderr}"
    )


def run_missing(
    journal: str, runs: Iterable[tuple[Key, Run]], make: Callable[[Run], Any], jobs: int | None
) -> dict[Key, Any]:
    """Return what each run gives as JSON has it, made now by `make` or kept in build/ns3/JOURNAL."""
    path = FOLDER / journal
    kept = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    outcomes = {(each["case"], each["seed"]): each["outcome"] for each in kept}
    missing = [(key, run) for key, run in runs if key not in outcomes]
    with ThreadPoolExecutor(jobs) as pool, path.open("a") as file:
        made = pool.map(lambda each: make(each[1]), missing)
        for (key, _), outcome in zip(missing, made, strict=True):
            outcomes[key] = outcome
            print(json.dumps({"case": key[0], "seed": key[1], "outcome": outcome}), file=file, flush=True)
    return outcomes
