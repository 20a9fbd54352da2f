"""Transfers over two paths of unequal rates and delays: `python -m benchmarks.shaped`."""
