"""MSTCP beside TCP, kernel MPTCP and asyncio over two unlimited paths: `python -m benchmarks.transport`."""
