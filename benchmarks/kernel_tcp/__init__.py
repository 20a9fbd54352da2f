"""Coupled controls and responses to reordering in the virtual kernel, beside the simulator (docs/tcp.md)."""
