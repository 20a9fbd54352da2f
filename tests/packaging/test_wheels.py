"""The wheels, as `make wheels` builds them, in environments that hold nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT

SOLVER = ROOT / "crates" / "gomr-py"
QUIC = ROOT / "lab" / "mpquic" / "target" / "release" / "mpquic"
UV = Path(sys.prefix) / "bin" / "uv"
MINORS = range(10, 15)

# Each waits for compilers, or for packages to be copied.
pytestmark = pytest.mark.timeout(900)


def run(*argv: object, cwd: Path, status: int = 0) -> str:
    """Run a command outside of the checkout's environment; return what it wrote."""
    clean = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH")}
    done = subprocess.run([*map(str, argv)], cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == status, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def interpreters() -> list[str]:
    """Return one Python of each supported minor version that this machine has, on PATH or of pyenv."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    present = []
    for minor in MINORS:
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *sorted(versions.glob(f"3.{minor}.*/bin/{name}"))]
        present += [str(path) for path in candidates if path and answers(path)][:1]
    return present


def answers(python: str | Path) -> bool:
    """Return whether a program starts: pyenv's stand-ins do so for chosen versions alone."""
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheels")
    # To build it takes minutes, where `make mpquic` has not done so.
    options = () if QUIC.exists() else ("env", "WHEELS_WITHOUT_QUIC=1")
    run(*options, ROOT / "scripts" / "build-wheels", folder, cwd=ROOT)
    return folder


def test_the_images_constraints_are_those_of_the_lock_without_hashes() -> None:
    """With hashes in its constraints pip refuses our own wheels, which have none."""
    [expression] = re.findall(r"RUN sed -E '(.*?)' /tmp/requirements.lock", (ROOT / "Dockerfile").read_text())
    lock = ROOT / "requirements.lock"
    constraints = run("sed", "-E", expression, lock, cwd=ROOT)
    kept = [line for line in constraints.splitlines() if line and not line.lstrip().startswith("#")]
    pinned = [
        line.removesuffix(" \\") for line in lock.read_text().splitlines() if "==" in line.split(";")[0]
    ]
    assert len(pinned) > 50
    assert kept == pinned


def environment(folder: Path, python: str, *requirements: object) -> Path:
    """Make an environment with what is asked for; return its folder of programs."""
    run(UV, "venv", "--quiet", "--python", python, folder, cwd=folder.parent)
    run(
        UV,
        "pip",
        "install",
        "--quiet",
        "--python",
        folder / "bin" / "python",
        *requirements,
        cwd=folder.parent,
    )
    return folder / "bin"


def contents(wheels: Path, distribution: str) -> tuple[set[str], str]:
    """Return a wheel's files, and its metadata."""
    [path] = wheels.glob(f"{distribution}-*.whl")
    assert "-cp310-abi3-linux_" in path.name
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        [metadata] = (name for name in names if name.endswith(".dist-info/METADATA"))
        return names, archive.read(metadata).decode()


def test_the_librarys_wheel_holds_one_package_and_needs_nothing(wheels: Path) -> None:
    names, metadata = contents(wheels, "mstcp")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"mstcp"}
    assert {
        "mstcp/_core.abi3.so",
        "mstcp/libmstcp_shim.abi3.so",
        "mstcp/py.typed",
        "mstcp/_core.pyi",
    } <= names
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert needed
    assert all("extra ==" in line for line in needed)


def test_the_laboratorys_wheel_holds_all_that_its_packages_have(wheels: Path) -> None:
    names, metadata = contents(wheels, "mstcp_lab")
    packages = ("controller", "switch", "topologies", "experiments")
    tracked = subprocess.check_output(["git", "ls-files", *packages], cwd=ROOT, text=True).splitlines()
    present = {path for path in tracked if (ROOT / path).exists()}
    assert present - names == set()
    assert {"netsim_native.abi3.so", "topologies/link-emulator"} <= names
    # Not the one beside the sources, which may be another architecture's.
    assert ("experiments/apps/mpquic" in names) is QUIC.exists()
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == {*packages, "netsim_native.abi3.so"}
    assert "Requires-Dist: mstcp[control]==" in metadata
    assert "Requires-Dist: gomr[networkx,pulp]==" in metadata


def test_the_solvers_wheel_holds_one_package_and_needs_little(wheels: Path) -> None:
    names, metadata = contents(wheels, "gomr")
    assert {name.split("/")[0].split("-")[0] for name in names} == {"gomr"}
    tracked = subprocess.check_output(["git", "ls-files", "gomr"], cwd=SOLVER, text=True).splitlines()
    assert {*tracked, "gomr/_native.abi3.so"} <= names
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    assert [line for line in needed if "extra ==" not in line] == [
        "Requires-Dist: highspy>=1.7",
        "Requires-Dist: numpy>=1.26",
    ]


def test_all_have_the_version_of_the_crates(wheels: Path) -> None:
    versions = {path.name.split("-")[1] for path in wheels.glob("*.whl")}
    [crates] = [
        line for line in (ROOT / "Cargo.toml").read_text().splitlines() if line.startswith("version = ")
    ]
    assert versions == {crates.split('"')[1]}


@pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).name)
def test_the_library_in_an_empty_environment(wheels: Path, tmp_path: Path, python: str) -> None:
    programs = environment(tmp_path / "env", python, "--no-index", *wheels.glob("mstcp-*.whl"))
    assert run(programs / "mstcp", "--version", cwd=tmp_path).startswith("mstcp ")
    # Both ends over loopback, and the library of `mstcp run` in front of a program.
    assert "bit/s" in run(programs / "mstcp", "bench", "--seconds", "0.2", cwd=tmp_path)
    program = (programs / "python", "-c", "print('carried on')")
    via = ("--via", "127.0.0.1:9", "--", *program)
    assert "carried on" in run(programs / "mstcp", "run", *via, cwd=tmp_path)
    asked = ("127.0.0.1", "--port", "5001", "--rate", "1e6", "--controller", "127.0.0.1:9")
    told = run(programs / "mstcp", "allocate", *asked, cwd=tmp_path, status=1)
    assert "pip install 'mstcp[control]'" in told
    assert "Traceback" not in told


def test_the_solver_in_an_empty_environment(wheels: Path, tmp_path: Path) -> None:
    """The examples of its page and of the guide that need nothing else of this project."""
    lock = ("--constraint", ROOT / "requirements.lock")
    [wheel] = wheels.glob("gomr-*.whl")
    programs = environment(tmp_path / "env", sys.executable, *lock, f"{wheel}[networkx,pandas]")
    pages = [(SOLVER / "README.md").read_text(), (ROOT / "docs" / "gomr.md").read_text()]
    own = [page.partition("## Networks of this project")[0] for page in pages]
    for examples in (re.findall(r"```python\n(.*?)```", page, re.DOTALL) for page in own):
        said = [line[2:] for code in examples for line in code.splitlines() if line.startswith("# ")]
        assert run(programs / "python", "-c", "".join(examples), cwd=tmp_path).splitlines() == said
    loaded = "import sys, gomr.errors; sys.exit('numpy' in sys.modules)"
    assert run(programs / "python", "-c", loaded, cwd=tmp_path) == ""
    table = "import gomr; print(gomr.solve({'a': {'b': 2}}, {('a', 'b'): 1}).to_pandas().rate_bps[0])"
    assert run(programs / "python", "-c", table, cwd=tmp_path) == "1.0\n"


def test_the_laboratory_in_an_empty_environment(wheels: Path, tmp_path: Path) -> None:
    lock = ("--constraint", ROOT / "requirements.lock")
    programs = environment(tmp_path / "env", sys.executable, *lock, *wheels.glob("*.whl"))
    assert "butterfly" in run(programs / "mstcp-lab", "list", cwd=tmp_path)
    options = ("--engine", "sim", "--protocol", "mstcp,ospf", "--case", "1", "--duration", "2")
    run(programs / "mstcp-lab", "run", "butterfly", *options, "--out", "mine", cwd=tmp_path)
    environments = json.loads((tmp_path / "mine" / "results.json").read_text())["environment"]
    assert environments["git_revision"] is None
    assert environments["versions"]["mstcp-lab"] == environments["versions"]["mstcp"]
    assert (tmp_path / "mine" / "report.html").exists()
    find = "from topologies.link_emulator import find_binary; print(find_binary())"
    emulator = run(programs / "python", "-c", find, cwd=tmp_path).strip()
    assert Path(emulator).is_relative_to(tmp_path / "env")
    assert run(emulator, "--help", cwd=tmp_path)
    told = run(programs / "mstcp-lab", "export", "mine", "--parquet", "tables", cwd=tmp_path, status=1)
    assert "pip install 'mstcp-lab[parquet]'" in told
    assert "usage: mstcp-controller" in run(programs / "mstcp-controller", "--help", cwd=tmp_path)
