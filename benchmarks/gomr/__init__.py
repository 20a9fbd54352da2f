"""Benchmarks of the routing engines; importing it adds the engine `highs` to compare with."""

import benchmarks.gomr.highs  # noqa: F401
