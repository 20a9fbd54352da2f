"""Random tests draw the same examples every time: one that passed fails only when the code changes.

`make explore` draws new ones: what it finds becomes a test of its own.
"""

import os
import signal

import hypothesis
import pytest

# A shell's background jobs ignore SIGINT, and the programs under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with long time limits first: at the end one of them would keep the other cores waiting."""

    def limit_s(item: pytest.Item) -> float:
        marker = item.get_closest_marker("timeout")
        return float(marker.args[0]) if marker else 0.0

    longest_s: dict[str, float] = {}
    for item in items:
        file = item.location[0]
        longest_s[file] = max(longest_s.get(file, 0.0), limit_s(item))
    items.sort(key=lambda item: -longest_s[item.location[0]])
