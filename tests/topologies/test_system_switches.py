"""When `mn` needs Open vSwitch's switches."""

from __future__ import annotations

import pytest

from topologies.system_switches import are_wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("--topo butterfly", True),
        ("--topo butterfly --switch ovs,datapath=user", True),
        ("--switch=ovsk --topo ring,6", True),
        ("--switch lxbr --topo ring,6", False),
        ("--switch=user", False),
        ("-h", False),
        ("-c", False),
    ],
)
def test_other_switches_and_help_need_none(arguments: str, wanted: bool) -> None:
    assert are_wanted(arguments.split()) is wanted
