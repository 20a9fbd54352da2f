"""MSTCP over paths that break: in virtual time and over relays on the loopback."""
