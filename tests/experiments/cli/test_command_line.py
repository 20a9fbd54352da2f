"""`mstcp-lab`: arguments, exit statuses and sentences."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from experiments import protocols
from experiments.cli import run_and_report
from experiments.cli.command_line import make_parser
from experiments.cli.run import job_from
from tests.fakes.lab import LAB_COMMAND, Lab
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["run", "buterfly"], "There is no scenario called 'buterfly'. Did you mean butterfly? Known: "),
        (["run", "butterfly", "--case", "1,3"], "no case of this scenario called '3'"),
        (["run", "butterfly", "--case", "1,,2"], "has an empty name"),
        (["run", "butterfly", "--protocol", "ospf,ospf"], "names one twice"),
        (["run", "butterfly", "--protocol", "mctcp"], "There is no protocol called 'mctcp'. Did you mean"),
        (["run", "butterfly", "--engine", "lve"], "no engine called 'lve'. Did you mean live?"),
        (["run", "butterfly", "--variant", "c"], "no variant 'c'"),
        (["run", "butterfly", "--seeds", "0"], "--seeds: 0 is not between 1 and 1000"),
        (["run", "butterfly", "--duration", "-1"], "--duration: must be greater than 0"),
        (["run", "butterfly", "--allocation", "best"], "'best' is not given for flow 1, 2"),
        (["run", "butterfly", "--set", "tcp.sak=true"], "the nearest are tcp.sack"),
        (
            ["run", "butterfly", "--protocol", "ospf", "--set", "sim.pacing=allocated"],
            "--set sim.pacing: says nothing to ospf: only ppfs, ppfs-group, mstcp would read it",
        ),
        (
            ["run", "butterfly", "--protocol", "ospf,ecmp", "--set", "mstcp.scheduler=earliest"],
            "--set mstcp.scheduler: says nothing to ospf, ecmp: only mstcp would read it",
        ),
        (
            ["run", "butterfly", "--protocol", "mstcp", "--set", "flows.1.requested_bps.ppfs=1e6"],
            "says nothing to mstcp: only ppfs would read it",
        ),
        (["run", "butterfly", "--protocol", "mptcp", "--allocation", "paper"], "--allocation: says nothing"),
        (["run", "butterfly", "--set", "links.S0-S9.rate_bps=1e6"], "no link 'S0-S9'"),
        (["run", "butterfly", "--set", "links.S0-S4.rate_bps=-1"], "greater than 0"),
        (
            ["run", "butterfly", "--set", "flows.1.given={}", "--set", "flows.1.src=S0"],
            "the network has no host 'S0'",
        ),
        (["run", "butterfly", "--nonsense"], "unrecognized arguments"),
        (["shell", "ring:6", "--mtu", "10"], "10 is not an MTU of 68 to 65535 bytes"),
        (["report", "/nowhere"], "/nowhere: cannot be read"),
        ([], "required"),
    ],
)
def test_wrong_arguments_get_a_sentence_and_status_2(argv: list[str], sentence: str, lab: Lab) -> None:
    assert sentence in lab.refusal(*argv)


def test_a_document_that_is_none_is_named(tmp_path: Path, lab: Lab) -> None:
    (tmp_path / "results.json").write_text('{"format": 2}')
    assert "is not a results document" in lab.refusal("report", tmp_path)


def test_without_root_the_command_for_it_is_named(
    tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr("sys.argv", ["mstcp-lab", "run", "butterfly"])
    told = lab.refusal("run", "butterfly", "--out", tmp_path / "out", status=1)
    assert "needs root. Run: sudo mstcp-lab run butterfly" in told
    assert not (tmp_path / "out").exists()


def test_a_missing_program_is_named_with_its_package(
    tmp_path: Path, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("shutil.which", lambda name: None if name.startswith("ovs") else f"/bin/{name}")
    told = lab.refusal("run", "butterfly", "--out", tmp_path / "out", status=1)
    assert "apt-get install openvswitch-switch" in told


def test_the_job_is_what_was_asked_for(tmp_path: Path) -> None:
    parser = make_parser()
    argv = ["run", "butterfly", "--protocol", "mstcp", "--case", "2", "--seeds", "3", "--duration", "7"]
    argv += ["--allocation", "paper", "--variant", "b"]
    argv += ["--set", "links.S4-S0.rate_bps=8e6", "--set", "tcp.sack=true"]
    job = job_from(parser.parse_args([*argv, "--out", str(tmp_path)]), 0.0)
    assert (job.cases, job.protocols, job.seeds, job.duration_s) == (("2",), ("mstcp",), (1, 2, 3), 7.0)
    assert job.scenario.case("2").allocation == "paper"
    assert job.scenario.case("1").allocation == "even_split"
    assert job.scenario.tcp.sack is True
    assert job.network.link("S0-S4").rate_bps == 8e6
    assert job.network.link("S0-S2").delay_us == 4000
    assert job.overrides == {"links.S4-S0.rate_bps": 8e6, "tcp.sack": True, "allocation": "paper"}
    assert job.variant == "b"


def test_all_stands_for_every_protocol_and_the_time_is_told(tmp_path: Path) -> None:
    argv = ["run", "butterfly", "--protocol", "all", "--duration", "20", "--out", str(tmp_path)]
    job = job_from(make_parser().parse_args(argv), 0.0)
    assert job.protocols == tuple(protocols.usual())
    runs = 2 * len(protocols.usual())
    minutes = runs * (1 + 20 + run_and_report.RUN_OVERHEAD_S) / 60
    assert f"{runs} runs of 20 s: about {minutes:.0f} minutes" in run_and_report.how_long(job)
    one = job.model_copy(update={"cases": ("1",), "protocols": ("ospf",)})
    assert run_and_report.how_long(one).startswith("1 run of 20 s: about a minute")


def test_list_names_everything(lab: Lab) -> None:
    out = lab("list")
    for name in ("butterfly", "ospf", "mstcp", "live"):
        assert name in out


def test_list_needs_no_mininet() -> None:
    program = (
        "from topologies import mininet_path; mininet_path.find_mininet = lambda: None; "
        "from experiments import cli; raise SystemExit(cli.main(['list']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("live", "virtual", "sim"):
        assert f"\n  {name} " in done.stdout


def test_a_reader_that_goes_away_gets_no_traceback() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [*LAB_COMMAND, "list"],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_the_version_is_that_of_the_package(lab: Lab) -> None:
    assert lab("--version") == f"mstcp-lab {version('mstcp-lab')}\n"


def test_programs_are_found_without_the_systems_folders_in_path(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `su - USER` has it on Debian; what the user's own PATH has comes first."""
    monkeypatch.setenv("PATH", "/mine:/usr/sbin:/bin")
    lab("completion", "bash")
    assert os.environ["PATH"] == "/mine:/usr/sbin:/bin:/usr/local/sbin:/sbin"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_gets_a_script_that_knows_commands_and_options(shell: str, lab: Lab) -> None:
    script = lab("completion", shell)
    assert all(word in script for word in ("reproduce", "resume", "--protocol", "--seeds"))


def test_bash_takes_the_script(tmp_path: Path, lab: Lab) -> None:
    script = tmp_path / "completion"
    script.write_text(lab("completion", "bash"))
    words = 'COMP_WORDS=(mstcp-lab repr); COMP_CWORD=1; _shtab_mstcp_lab; echo "${COMPREPLY[@]}"'
    call = ["bash", "-c", f'source "$1"; {words}', "bash", str(script)]
    assert subprocess.run(call, capture_output=True, text=True, check=True).stdout.split() == ["reproduce"]


def test_no_command_waits_for_libraries_that_only_some_need() -> None:
    heavy = ("matplotlib", "networkx", "grpc", "fastapi", "os_ken", "dask")
    loaded = f"[name for name in {heavy} if name in sys.modules]"
    program = f"import sys, experiments.cli.command_line; print({loaded})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "[]"


def test_an_incomplete_installation_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch, lab: Lab) -> None:
    monkeypatch.setitem(sys.modules, "experiments.cli.command_line", None)
    monkeypatch.delattr("experiments.cli.command_line", raising=False)
    said = lab.refusal("list", status=1)
    assert said.startswith("mstcp-lab: ")
    assert said.endswith("the installation is not complete. Run: make setup\n")
