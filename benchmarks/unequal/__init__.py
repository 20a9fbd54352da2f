"""One connection over two unequal paths, against TCP on the better one: `python -m benchmarks.unequal`."""
