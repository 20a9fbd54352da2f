"""Networks from files and specifications, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import topologies
from topologies.errors import (
    GeneratorError,
    InvalidOverride,
    InvalidTopology,
    TopologyError,
    UnknownTopology,
    UnknownVariant,
)

PAIR = """
format = 1
name = "pair"
nodes = [
    { name = "H0", kind = "host" },
    { name = "H1", kind = "host" },
    { name = "S0", kind = "switch" },
    { name = "S1", kind = "switch" },
]
links = [
    { ends = ["H0", "S0"], rate_bps = 10e6, delay_us = 1000 },
    { ends = ["H1", "S1"], rate_bps = 10e6, delay_us = 1000 },
    { ends = ["S0", "S1"], rate_bps = 5e6, delay_us = 1000 },
]
[variants.slow.links]
S1-S0 = { rate_bps = 1e6 }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "net.toml"
    path.write_text(text)
    return path


def test_public_names() -> None:
    assert topologies.__all__ == [
        "Arc",
        "Link",
        "Network",
        "Node",
        "TopologyError",
        "apply_overrides",
        "builtin_names",
        "check_network",
        "load",
        "positions",
    ]


def test_butterfly_and_its_variants() -> None:
    base, a, b = (topologies.load("butterfly", variant) for variant in (None, "a", "b"))
    assert base == a
    changed = {link.name for link, other in zip(a.links, b.links, strict=True) if link != other}
    assert changed == {"S0-S2", "S3-S4"}
    assert b.link("S0-S2").delay_us == b.link("S4-S3").delay_us == 4000


def test_file_with_variant(tmp_path: Path) -> None:
    path = write(tmp_path, PAIR)
    assert topologies.load(path).link("S0-S1").rate_bps == 5e6
    assert topologies.load(str(path), "slow").link("S0-S1").rate_bps == 1e6


def test_json_round_trip(tmp_path: Path) -> None:
    network = topologies.load("butterfly", "b")
    path = tmp_path / "net.json"
    path.write_text(json.dumps(network.model_dump(mode="json")))
    assert topologies.load(path) == network


def test_unknown_network_lists_the_known_ones_and_the_grammar() -> None:
    with pytest.raises(UnknownTopology, match=r"no network 'moth'.*butterfly.*ring:6:rate_bps=10e6"):
        topologies.load("moth")


@pytest.mark.parametrize("spec", ["butterfly", "ring:4"])
def test_unknown_variant(spec: str) -> None:
    with pytest.raises(UnknownVariant, match="no variant 'c'"):
        topologies.load(spec, "c")


@pytest.mark.parametrize(
    ("old", "new", "place", "reason"),
    [
        ("rate_bps = 5e6", "rate_bps = 0", "links[2].rate_bps", "greater than 0"),
        ("rate_bps = 5e6", 'rate_bps = "fast"', "links[2].rate_bps", "must be a number"),
        ("rate_bps = 5e6", "rate_bps = nan", "links[2].rate_bps", "finite"),
        ("rate_bps = 5e6", "rate_bps = 5e6, speed = 1", "links[2].speed", "unknown key"),
        ("rate_bps = 5e6, ", "", "links[2].rate_bps", "must be given"),
        ("rate_bps = 5e6", "rate_bps = 5e6, loss = 1.0", "links[2].loss", "less than 1"),
        ('["S0", "S1"]', '["S0", "S9"]', "links[2].ends", "no node S9"),
        ('["S0", "S1"]', '["S0", "S0"]', "links[2].ends", "to itself"),
        ('["S0", "S1"]', '["S0", "H0"]', "links[2].ends", "same nodes as links[0]"),
        ('["S0", "S1"]', '["H0", "H1"]', "links[2].ends", "two hosts"),
        ('["S0", "S1"]', '["H0", "S1"]', "links", "not connected: S1"),
        ('["H1", "S1"]', '["H0", "S1"]', "links", "host H1 has no link"),
        ('name = "H1"', 'name = "H0"', "nodes[1].name", "already a node H0"),
        ('name = "H1"', 'name = "1H"', "nodes[1].name", "pattern"),
        ('name = "H1", kind = "host"', 'name = "H1", kind = "router"', "nodes[1].kind", "'host' or 'switch'"),
        ("format = 1", "format = 2", "format", "1"),
        ("format = 1", "format = 1\nhosts = 3", "hosts", "unknown key"),
        (
            "S1-S0 = { rate",
            "S1-S9 = { rate",
            "variants.slow.links.S1-S9.rate_bps",
            "no link 'S1-S9'; the nearest are",
        ),
        (
            "S1-S0 = { rate_bps = 1e6",
            "S1-S0 = { rate_bps = -1",
            "variants.slow.links.S1-S0.rate_bps",
            "greater than 0",
        ),
        ("S1-S0 = { rate_bps", "S1-S0 = { speed", "variants.slow.links.S1-S0.speed", "no such key"),
        ("variants.slow.links", "variants.slow.edges", "variants.slow.edges", "unknown key"),
        ("format = 1", "format = ", "", "not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, place: str, reason: str
) -> None:
    assert old in PAIR
    path = write(tmp_path, PAIR.replace(old, new, 1))
    with pytest.raises(InvalidTopology) as caught:
        topologies.load(path)
    error = caught.value
    assert error.file == str(path)
    assert error.place.replace("S0-S1", "S1-S0") == place
    assert reason in error.reason
    assert str(error).startswith(f"{path}: ")


@pytest.mark.parametrize("kind", ["host", "switch"])
def test_network_needs_hosts_and_switches(tmp_path: Path, kind: str) -> None:
    text = f'format = 1\nname = "x"\nnodes = [{{ name = "A", kind = "{kind}" }}]\nlinks = []\n'
    with pytest.raises(InvalidTopology, match=r"there is no (host|switch)"):
        topologies.load(write(tmp_path, text))


@pytest.mark.parametrize("name", ["missing.toml", "missing.json", "missing.graphml"])
def test_missing_file(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidTopology, match="No such file"):
        topologies.load(tmp_path / name)


@pytest.mark.parametrize(("name", "content"), [("a.toml", b"\xff"), ("a.json", b"{"), ("a.json", b"[]")])
def test_file_that_is_not_what_its_name_says(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidTopology):
        topologies.load(tmp_path / name)


@pytest.mark.parametrize(
    "overrides",
    [
        {"links": {"S0-S4": {"rate_bps": 8e6, "loss": 0.01}}},
        {"links.S0-S4.rate_bps": 8e6, "links.S4-S0.loss": 0.01},
        {"links": {"S4-S0.rate_bps": 8e6}, "links.S0-S4": {"loss": 0.01}},
    ],
)
def test_overrides(overrides: dict[str, object]) -> None:
    before = topologies.load("butterfly")
    after = topologies.load("butterfly", overrides=overrides)
    assert after.link("S0-S4").rate_bps == 8e6
    assert after.link("S0-S4").loss == 0.01
    assert [link for link in after.links if link.name != "S0-S4"] == [
        link for link in before.links if link.name != "S0-S4"
    ]


def test_override_without_queue_limit() -> None:
    limited = topologies.load("butterfly", overrides={"links.S0-S4.queue_packets": 10})
    assert limited.link("S0-S4").queue_packets == 10
    unlimited = topologies.apply_overrides(limited, {"links.S0-S4.queue_packets": None})
    assert unlimited.link("S0-S4").queue_packets is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("links.S0-S9.rate_bps", 1e6, "nearest are S0-S4"),
        ("links.S0-S4.ends", ["S0", "S1"], "there are rate_bps"),
        ("links.S0-S4.rate_bps", 0, "greater than 0"),
        ("links.S0-S4", 3, "links.<name>.<key>"),
        ("links.S0-S4.rate_bps.x", 3, "links.<name>.<key>"),
        ("nodes.T9.x", 3, "no node 'T9'"),
        ("nodes.T0.kind", "switch", "there are x, y"),
        ("tcp.sack", True, "a network has links"),
    ],
)
def test_override_that_does_not_fit(key: str, value: object, reason: str) -> None:
    with pytest.raises(InvalidOverride) as caught:
        topologies.load("butterfly", overrides={key: value})
    assert caught.value.place == key
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("ring", "write line:N"),
        ("ring:x", "whole number"),
        ("ring:-3", "whole number"),
        ("ring:2", "3 to 1000"),
        ("fat-tree:3", "even K"),
        ("waxman:5:alpha=0", "alpha must be above 0"),
        ("waxman:5:beta=2", r"beta must be in \(0, 1\]"),
        ("ring:4:seed=1", "KEY=VALUE with a key of rate_bps"),
        ("ring:4:rate_bps", "KEY=VALUE"),
        ("ring:4:rate_bps=fast", "not a number"),
        ("ring:4:rate_bps=inf", "not finite"),
        ("ring:4:queue_packets=1.5", "whole number"),
        ("ring:4:delay_us=1:delay_us=2", "given twice"),
    ],
)
def test_wrong_generator_specification(spec: str, reason: str) -> None:
    with pytest.raises(GeneratorError, match=reason):
        topologies.load(spec)


def test_generator_settings_pass_the_schema() -> None:
    with pytest.raises(TopologyError, match=r"links\.\S+\.rate_bps.*greater than 0"):
        topologies.load("ring:4:rate_bps=0")
