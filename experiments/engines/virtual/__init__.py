"""The virtual engine: the live engine's own code, in a kernel whose clock is virtual."""
