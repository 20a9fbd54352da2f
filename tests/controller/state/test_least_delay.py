"""Trees that outlive link changes are those of the links that are up."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.compile.next_hops import next_hops
from controller.model.journal import Journal
from controller.state.least_delay import LeastDelay
from controller.state.live_network import arc_name
from topologies.model import Arc

NAMES = [f"S{number}" for number in range(7)]
PAIRS = [(a, b) for a in NAMES for b in NAMES if a < b]


@given(st.data())
def test_trees_follow_the_links(data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(PAIRS), unique=True, min_size=1))
    arcs: dict[str, Arc] = {}
    for a, b in chosen:
        delay_s = data.draw(st.integers(0, 3)) * 1e-3
        arcs[arc_name(a, b)] = Arc(f"{a}-{b}", a, b, 0, 0, 1e6, delay_s)
        arcs[arc_name(b, a)] = Arc(f"{a}-{b}", b, a, 0, 0, 1e6, delay_s)
    trees = LeastDelay(NAMES, arcs)
    up: set[str] = set()
    for name in data.draw(st.lists(st.sampled_from(sorted(arcs)), max_size=30)):
        up ^= {name}
        trees.set_up(name, name in up)
        root = data.draw(st.sampled_from(NAMES))
        expected = next_hops([arc for each, arc in arcs.items() if each in up], {"host": root})["host"]
        assert trees.hops(root) == expected
        distances_ns = trees.distances_ns(root)
        assert distances_ns.keys() == {root, *expected}
        for start, distance_ns in distances_ns.items():
            steps = pairwise(trees.path(start, root) or ())
            assert distance_ns == sum(round(arcs[arc_name(*step)].delay_s * 1e9) for step in steps)


def test_an_event_that_fails_leaves_the_trees_as_they_were() -> None:
    arc = Arc("S0-S1", "S0", "S1", 0, 0, 1e6, 1e-3)
    trees = LeastDelay(NAMES, {"S0->S1": arc})
    trees.set_up("S0->S1", True)
    assert trees.path("S0", "S1") == ("S0", "S1")
    with pytest.raises(ZeroDivisionError), Journal():
        trees.set_up("S0->S1", False)
        assert trees.path("S0", "S1") is None
        raise ZeroDivisionError
    assert trees.path("S0", "S1") == ("S0", "S1")
