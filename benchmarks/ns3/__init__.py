"""The simulator beside ns-3 3.37: the same networks, sources and draws (docs/simulator.md)."""
