"""TLS of the commands: both sides as processes, and a sentence for each mistake."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import sys
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from mstcp.tools.cli import main
from mstcp.tools.preload import SHIM
from tests.fakes.mstcp_command import ended, mstcp_command, result_of
from tests.fakes.ports import free_ports
from tests.fakes.tcp_server import tcp_client, tcp_server

NAME = "copies.example"


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    """Return a folder of `ca`, `cert`, `key` (`locked`: encrypted), `both` and of another authority."""
    authority, other = trustme.CA(), trustme.CA()
    issued = authority.issue_cert(NAME)
    issued.cert_chain_pems[0].write_to_path(tmp_path / "cert")
    issued.private_key_pem.write_to_path(tmp_path / "key")
    issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both")
    authority.cert_pem.write_to_path(tmp_path / "ca")
    other.cert_pem.write_to_path(tmp_path / "other")
    other.private_key_pem.write_to_path(tmp_path / "other key")
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    (tmp_path / "locked").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"passphrase"))
    )
    return tmp_path


def accepting(pem: Path) -> tuple[str, ...]:
    return "--tls-cert", str(pem / "cert"), "--tls-key", str(pem / "key")


def trusting(pem: Path, authority: str = "ca", name: str = NAME) -> tuple[str, ...]:
    return "--tls", "--tls-ca", str(pem / authority), "--tls-name", name


@pytest.mark.parametrize("streams", ["1", "2"])
async def test_a_file_over_tls(pem: Path, streams: str) -> None:
    source, target, port = pem / "source", pem / "target", str(free_ports(1)[0])
    source.write_bytes(random.Random(3).randbytes(2_000_000))
    send = ("send", "127.0.0.1", port, str(source), "--streams", streams, *trusting(pem))
    async with mstcp_command("receive", port, str(target), "--tls-cert", str(pem / "both")) as receive:
        result = (1, "", "Connection refused")
        while "Connection refused" in result[2]:
            result = await result_of(*send)
        digest = hashlib.sha256(source.read_bytes()).hexdigest() + "\n"
        assert result == await receive.end(0) == (0, digest, "")
    assert target.read_bytes() == source.read_bytes()


async def test_bench_over_tls_serves_itself_or_another(pem: Path) -> None:
    ours, theirs = trusting(pem), accepting(pem)
    (pem / "secret").write_text("ours")
    short = ("bench", "--seconds", "0.2", "--json", *ours)
    status, out, err = await result_of(*short, *theirs, "--secret-file", str(pem / "secret"))
    assert (status, err) == (0, "")
    assert json.loads(out)["bytes"] > 0
    async with mstcp_command("bench", "--serve", "127.0.0.1:0", *theirs) as serve:
        assert (await result_of(*short, await serve.address()))[0] == 0
        await ended(serve)


async def upper(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write((await reader.read()).upper())
    writer.close()
    await writer.wait_closed()


async def ask(host: str, port: int) -> bytes:
    async with tcp_client(port, host) as (reader, writer):
        writer.write(b"over tls")
        writer.write_eof()
        return await asyncio.wait_for(reader.read(), 30)


ASK = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
    sock.sendall(b"over tls")
    sock.shutdown(socket.SHUT_WR)
    print(sock.recv(100))
"""


async def test_proxies_and_run_over_tls(pem: Path) -> None:
    assert SHIM.exists(), "run `make setup`"
    async with (
        tcp_server(upper) as served,
        mstcp_command("proxy", "exit", "0", *accepting(pem)) as leave,
    ):
        target = f"127.0.0.1:{served}"
        far = await leave.address()
        entering = ("proxy", "enter", "127.0.0.1:0", far, "--target", target)
        async with mstcp_command(*entering, *trusting(pem)) as enter:
            host, _, port = (await enter.address()).rpartition(":")
            assert await ask(host, int(port)) == b"OVER TLS"
            await ended(enter)
        program = (sys.executable, "-c", ASK, target.rpartition(":")[2])
        run = ("run", "--via", far, "--only", target, *trusting(pem), "--", *program)
        assert await result_of(*run) == (0, "b'OVER TLS'\n", "")
        await ended(leave)


@pytest.mark.parametrize(
    ("authority", "name", "ours", "theirs"),
    [
        ("other", NAME, "unable to get local issuer certificate", "the peer does not trust our certificate"),
        ("ca", "other.example", "Hostname mismatch", "the peer does not accept our certificate"),
    ],
)
async def test_a_certificate_that_is_not_trusted_is_told_on_both_sides(
    pem: Path, authority: str, name: str, ours: str, theirs: str
) -> None:
    async with mstcp_command("bench", "--serve", "127.0.0.1:0", *accepting(pem)) as serve:
        to = await serve.address()
        status, out, err = await result_of("bench", to, *trusting(pem, authority, name))
        assert (status, out) == (1, "")
        assert err.startswith("mstcp bench: the peer's certificate is not trusted: ") and ours in err
        async with mstcp_command(
            "proxy", "enter", "127.0.0.1:0", to, *trusting(pem, authority, name)
        ) as enter:
            host, _, port = (await enter.address()).rpartition(":")
            with pytest.raises(ConnectionError):
                await ask(host, int(port))
            err = (await enter.end())[2]
            assert "a connection failed: the peer's certificate is not trusted" in err
        assert f"127.0.0.1 was rejected: TLS failed: {theirs}\n" in (await serve.end())[2]


async def test_who_speaks_no_tls_is_rejected(pem: Path) -> None:
    async with mstcp_command("bench", "--serve", "127.0.0.1:0", *accepting(pem)) as serve:
        assert (await result_of("bench", await serve.address(), "--seconds", "0.1"))[0] == 1
        assert "TLS failed: the peer does not speak it" in (await serve.end())[2]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("receive 9 --tls-cert none", "none: No such file or directory"),
        ("receive 9 --tls-cert cert --tls-key none", "none: No such file or directory"),
        ("receive 9 --tls-cert cert --tls-key other+key", "other key has not the key of cert"),
        ("receive 9 --tls-cert cert", "cert has no certificate with its key in PEM form: --tls-key names"),
        ("receive 9 --tls-cert key --tls-key cert", "key and cert are no certificate and its key"),
        ("receive 9 --tls-cert cert --tls-key locked", "locked is encrypted: give the key without"),
        ("receive 9 --tls-key key", "--tls-key is the key of --tls-cert: give both"),
        ("proxy exit 9 --tls-cert none", "none: No such file or directory"),
        ("proxy enter 9 127.0.0.1:9 --tls --tls-ca none", "none: No such file or directory"),
        ("proxy enter 9 127.0.0.1:9 --tls --tls-ca key", "key has no certificates in PEM form"),
        ("send 127.0.0.1 9 x --tls-ca ca", "--tls-ca and --tls-name need --tls"),
        ("send 127.0.0.1 9 x --tls-name n", "--tls-ca and --tls-name need --tls"),
        ("send 127.0.0.1 9 x --tls --tls-name=", "--tls-name is empty"),
        ("bench --serve 9 --tls", "--tls is for the side that connects"),
        ("bench 127.0.0.1:9 --tls-cert cert", "--tls-cert is for the side that serves"),
        ("bench --tls --tls-cert none", "none: No such file or directory"),
    ],
)
def test_what_is_wrong_with_the_arguments_is_told(
    pem: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: str,
    sentence: str,
) -> None:
    monkeypatch.chdir(pem)
    assert main([argument.replace("+", " ") for argument in arguments.split()]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"mstcp {arguments.split()[0]}: ")
    assert sentence in err
