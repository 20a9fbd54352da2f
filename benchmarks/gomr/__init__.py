"""Benchmarks of the routing engines."""
