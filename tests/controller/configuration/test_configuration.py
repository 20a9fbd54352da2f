"""The configuration file: what is wrong is named with its place; what is right becomes settings."""

import contextlib
import json
import re
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from controller.cli import main
from controller.configuration.access import AccessRole, digest_of
from controller.configuration.file import configure
from controller.errors import ConfigError
from controller.model.requests import LinkChange
from tests.fakes.controller_command import started
from tests.fakes.waiting import TIMEOUT_S, wait_until

FULL = """
topology = "butterfly"
variant = "b"
store = "none"
on_stop = "remove"

[listen]
openflow = ["127.0.0.1:0"]
rest = ["127.0.0.1:0", "[::1]:0"]
grpc = ["127.0.0.1:0"]

[routing]
objective = "fair"
lease_s = 12.5
reserved_share = 0.1

[discovery]
silence_s = 2

[[tokens]]
name = "alice"
role = "request"
sha256 = "{alice}"

[[tokens]]
name = "root"
role = "administer"
sha256 = "{root}"

[links.S0-S4]
rate_bps = 4e6
delay_s = 0.002
"""


def full() -> str:
    return FULL.replace("{alice}", digest_of("a")).replace("{root}", digest_of("r"))


def test_all_settings() -> None:
    configuration = configure(full(), "controller.toml")
    settings = configuration.settings(b"key")
    assert (settings.objective, settings.lease_s, settings.reserved_share) == ("fair", 12.5, 0.1)
    assert (settings.silence_s, settings.lldp_key) == (2.0, b"key")
    assert [(token.name, token.role) for token in configuration.tokens] == [
        ("alice", AccessRole.REQUEST),
        ("root", AccessRole.ADMINISTER),
    ]
    assert configuration.links == {"S0-S4": LinkChange(4e6, 0.002, None)}


def test_options_come_before_the_file() -> None:
    options = {"routing": {"lease_s": 3.0}, "listen": {"rest": ["127.0.0.1:99"]}}
    configuration = configure(full(), "controller.toml", options)
    assert configuration.routing.lease_s == 3.0
    assert configuration.routing.objective == "fair"
    assert configuration.listen.rest == ("127.0.0.1:99",)


@pytest.mark.parametrize(
    ("wrong", "right", "said"),
    [
        ("lease_s = 12.5", "lease_s = -1", "routing.lease_s: must be greater than 0"),
        ("lease_s = 12.5", 'lease_s = "long"', "routing.lease_s"),
        ("lease_s = 12.5", "leese_s = 12.5", "routing.leese_s: there is no such setting"),
        ('objective = "fair"', 'objective = "best"', "routing.objective: there is no objective"),
        ('role = "administer"', 'role = "king"', "tokens[1].role"),
        ('name = "alice"\n', "", "tokens[0].name: must be given."),
        (
            'rest = ["127.0.0.1:0", "[::1]:0"]',
            'rest = ["127.0.0.1"]',
            "listen.rest[0]: '127.0.0.1' is not",
        ),
        ("rate_bps = 4e6", "rate_bps = 0", "links.S0-S4.rate_bps"),
        ("[discovery]", "[discovry]", "discovry: there is no such setting"),
        ('topology = "butterfly"', "topology = 5", "topology"),
        ('variant = "b"', "variant = b", "is not TOML: Invalid value (at line 3"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(wrong: str, right: str, said: str) -> None:
    text = full().replace(wrong, right)
    with pytest.raises(ConfigError) as error:
        configure(text, "controller.toml")
    lines = text.splitlines()
    line = lines.index(right.strip() or "[[tokens]]") + 1
    place = "controller.toml: is not TOML" if "TOML" in said else f"controller.toml, line {line}, "
    assert str(error.value).startswith(place)
    assert said in str(error.value)


def test_two_tokens_must_differ() -> None:
    with pytest.raises(ConfigError, match="two tokens have the same sha256"):
        configure(full().replace(digest_of("r"), digest_of("a")), "controller.toml")


@pytest.mark.parametrize(
    ("listen", "insecure", "missing"),
    [
        ({"rest": ["0.0.0.0:8080"]}, [], "rest on 0.0.0.0:8080.*TLS.*tokens"),
        ({"grpc": ["10.255.0.1:50051"]}, ["rest"], "grpc on 10.255.0.1:50051.*--insecure grpc"),
        ({"openflow": ["[::]:6653"]}, [], "openflow on .*TLS"),
        ({"openflow": ["[::]:6653"]}, ["openflow"], None),
        ({"rest": ["127.0.0.1:1", "[::1]:1"]}, [], None),
    ],
)
def test_off_loopback_protection_is_needed_unless_waived_by_name(
    listen: dict[str, Any], insecure: list[str], missing: str | None
) -> None:
    options = {"topology": "butterfly", "listen": listen | {"insecure": insecure}}
    unprotected = configure("", "options", options).unprotected()
    if missing is None:
        assert unprotected is None
    else:
        assert re.search(missing, unprotected or "")


@hypothesis.given(st.text(max_size=200))
def test_any_text_is_a_configuration_or_an_error(text: str) -> None:
    for whole in (text, full() + text, text + full()):
        with contextlib.suppress(ConfigError):
            configure(whole, "controller.toml")


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(full())
    assert main(["check", str(file)]) == 0
    assert "is right: butterfly with 6 switches" in capsys.readouterr().out
    for wrong, right, said in (
        ("[links.S0-S4]", "[links.S0-S9]", "links.S0-S9: the topology has no such link"),
        ('topology = "butterfly"', 'topology = "nowhere.toml"', "nowhere.toml"),
        ('"127.0.0.1:0", "[::1]:0"', '"0.0.0.0:0"', "listen: rest on 0.0.0.0:0"),
        (
            "[routing]",
            '[listen.tls]\ncertificate = "none.pem"\nkey = "none.pem"\n[routing]',
            "listen.tls: none.pem and none.pem cannot be used",
        ),
    ):
        file.write_text(full().replace(wrong, right))
        assert main(["check", str(file)]) == 2
        assert said in capsys.readouterr().err
    assert main(["check", str(tmp_path / "missing.toml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_token_and_its_entry_belong_together(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["token", "alice", "--role", "read"]) == 0
    comment, *entry = capsys.readouterr().out.splitlines()
    configuration = configure('topology = "butterfly"\n' + "\n".join(entry), "controller.toml")
    (token,) = configuration.tokens
    assert (token.name, token.role, token.sha256) == (
        "alice",
        AccessRole.READ,
        digest_of(comment.split()[-1]),
    )


@contextmanager
def running(file: Path, log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    with started(log, "--config", str(file)) as (process, ready):
        yield process, ready["rest"][0]


def ask(address: str, path: str, token: str) -> Any:
    request = urllib.request.Request(f"http://{address}{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        return json.load(answer)


def reload_over_rest(address: str, token: str) -> dict[str, Any]:
    """Ask the controller to read its configuration again; returns the problem that it has with it."""
    headers = {"Authorization": f"Bearer {token}"}
    url = f"http://{address}/v1/configuration/reload"
    try:
        with urllib.request.urlopen(
            urllib.request.Request(url, method="POST", headers=headers), timeout=TIMEOUT_S
        ):
            return {}
    except urllib.error.HTTPError as error:
        with error:
            problem: dict[str, Any] = json.load(error)
            return problem


def rate_of(address: str, token: str) -> float:
    links = ask(address, "/v1/links", token)
    return float(next(link["capacity_bps"] for link in links if link["link"] == "S0->S4"))


def test_sighup_applies_a_configuration_whole_or_keeps_the_old_one(tmp_path: Path) -> None:
    file, log = tmp_path / "controller.toml", tmp_path / "log"
    file.write_text(full())
    with running(file, log) as (process, address):
        wait_until(lambda: rate_of(address, "a") == 4e6, "the file's rate of the link")
        file.write_text(
            full().replace("rate_bps = 4e6", "rate_bps = 3e6").replace(digest_of("a"), digest_of("b"))
        )
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: knows(address, "b") and rate_of(address, "b") == 3e6, "the new rate and token")
        assert not knows(address, "a")
        for wrong, why in (
            (full().replace("rate_bps = 4e6", "rate_bps = -1"), "links.S0-S4.rate_bps"),
            (full().replace("[links.S0-S4]", "[links.S0-S9]"), "links.S0-S9: the topology has no such link"),
            (full().replace('topology = "butterfly"', 'topology = "ring:3"'), "variant"),
            (full().replace('store = "none"', 'store = "elsewhere"'), "store: cannot be changed while"),
            (
                full().replace("[routing]", "[routing]\nfast_failover = false"),
                "routing.fast_failover: cannot be changed while",
            ),
        ):
            file.write_text(wrong)
            process.send_signal(signal.SIGHUP)
            wait_until(partial(_says, log, why), f"the log to say {why}")
            assert "the configuration is as before" in log.read_text()
            answer = reload_over_rest(address, "r")
            assert (answer["status"], answer["field"]) == (422, "configuration")
            assert why in answer["reason"]
            assert rate_of(address, "b") == 3e6
        file.write_text(full().replace("rate_bps = 4e6", "rate_bps = 2e6"))
        assert reload_over_rest(address, "b")["status"] == 403, "not for those who may request flows"
        assert reload_over_rest(address, "r") == {}
        assert rate_of(address, "a") == 2e6
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 0


def _says(log: Path, text: str) -> bool:
    return text in log.read_text()


def knows(address: str, token: str) -> bool:
    try:
        ask(address, "/v1/version", token)
    except urllib.error.HTTPError as error:
        error.close()
        return False
    return True
