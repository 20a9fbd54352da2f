"""Uplinks that go and come back with other addresses under a transfer: `python -m benchmarks.uplinks`."""
