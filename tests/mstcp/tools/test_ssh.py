"""ssh and rsync over MSTCP, as they come, against an SSH server of this test's own."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import pwd
import random
import shlex
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mstcp.tools.preload import SHIM
from tests.fakes.mstcp_command import ended, mstcp_command, result_of
from tests.fakes.ports import free_ports

_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin"
SSHD = shutil.which("sshd", path=_PATH)
MISSING = [name for name in ("sshd", "ssh", "ssh-keygen", "rsync") if shutil.which(name, path=_PATH) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")

PRIVILEGE_SEPARATION = Path("/run/sshd")
"""An sshd that root starts wants this folder; its path is compiled in."""
CONFIGURATION = """\
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
"""
HOST = "server-of-the-test"
LARGEST = "of 3000000/file"


class SshServer:
    """Where it listens, and how its client reaches it."""

    def __init__(self, folder: Path, port: int) -> None:
        self.port = port
        user = pwd.getpwuid(os.getuid()).pw_name
        self.login = f"{user}@127.0.0.1"
        self.options = (
            *("-F", "/dev/null", "-i", str(folder / "key"), "-o", "BatchMode=yes"),
            *("-o", "IdentitiesOnly=yes", "-o", f"UserKnownHostsFile={folder / 'known_hosts'}"),
            *("-o", "StrictHostKeyChecking=yes", "-o", f"HostKeyAlias={HOST}"),
        )

    def ssh(self, port: int | str) -> tuple[str, ...]:
        """Return the client's command up to the login, through a port of this machine."""
        return "ssh", *self.options, "-p", str(port)


@contextlib.contextmanager
def privilege_separation() -> Iterator[None]:
    makes = os.getuid() == 0 and not PRIVILEGE_SEPARATION.exists()
    if makes:
        PRIVILEGE_SEPARATION.mkdir(mode=0o755)
    try:
        yield
    finally:
        if makes:
            PRIVILEGE_SEPARATION.rmdir()


async def run(*command: str) -> None:
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0


@pytest.fixture
async def ssh_server(tmp_path: Path) -> AsyncIterator[SshServer]:
    folder = tmp_path / "ssh"
    folder.mkdir(mode=0o700)
    for key in ("host_key", "key"):
        await run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key))
    (folder / "known_hosts").write_text(f"{HOST} {(folder / 'host_key.pub').read_text()}")
    (port,) = free_ports(1)
    (folder / "sshd_config").write_text(CONFIGURATION.format(folder=folder, port=port))
    log = folder / "log"
    assert SSHD is not None
    with privilege_separation(), log.open("w") as output:
        command = (SSHD, "-D", "-e", "-f", str(folder / "sshd_config"))
        process = await asyncio.create_subprocess_exec(*command, stderr=output)
        try:
            while "Server listening" not in log.read_text():
                assert process.returncode is None, log.read_text()
                await asyncio.sleep(0.02)
            yield SshServer(folder, port)
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with files of several sizes, in folders."""
    folder, draw = tmp_path / "tree", random.Random(4)
    for size in (0, 1, 70_000, 3_000_000):
        (folder / f"of {size}").mkdir(parents=True)
        (folder / f"of {size}" / "file").write_bytes(draw.randbytes(size))
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


async def printed(*arguments: str) -> str:
    """Return what a command prints, which succeeds without complaints."""
    status, out, err = await result_of(*arguments)
    assert (status, err) == (0, ""), err
    return out


async def test_run_leads_ssh_and_rsync(ssh_server: SshServer, tree: Path, tmp_path: Path) -> None:
    assert SHIM.exists(), "run `make setup`"
    there, back = tmp_path / "there", tmp_path / "back"
    ssh = ssh_server.ssh(ssh_server.port)
    remote = f"{ssh_server.login}:{there}/"
    async with mstcp_command("proxy", "exit", "0") as leave:
        led = ("run", "--via", await leave.address(), "--only", f"127.0.0.1:{ssh_server.port}", "--")
        # `run` complains if the program opened no connection over MSTCP.
        assert await printed(*led, "rsync", "-a", "-e", shlex.join(ssh), f"{tree}/", remote) == ""
        assert digests(there) == digests(tree)
        digest = f"sha256sum < {shlex.quote(str(there / LARGEST))}"
        assert (await printed(*led, *ssh, ssh_server.login, digest)).split()[0] == digests(tree)[LARGEST]
        assert await printed(*led, "rsync", "-a", "-e", shlex.join(ssh), remote, f"{back}/") == ""
        assert digests(back) == digests(tree)
        await ended(leave)


async def test_proxies_carry_ssh_and_rsync(ssh_server: SshServer, tree: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    async with mstcp_command("proxy", "exit", "0", f"127.0.0.1:{ssh_server.port}") as leave:
        async with mstcp_command("proxy", "enter", "127.0.0.1:0", await leave.address()) as enter:
            ssh = ssh_server.ssh((await enter.address()).rpartition(":")[2])
            await run("rsync", "-a", "-e", shlex.join(ssh), f"{tree}/", f"{ssh_server.login}:{there}/")
            assert digests(there) == digests(tree)
            await run(*ssh, ssh_server.login, shlex.join(["cmp", str(tree / LARGEST), str(there / LARGEST)]))
            assert (await enter.end())[0] == 130
        # Ctrl-C may break off the last connection's closing, which this side then tells.
        assert (await leave.end())[0] == 130
