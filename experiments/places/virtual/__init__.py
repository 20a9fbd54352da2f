"""A place in virtual time: a User-Mode Linux kernel of its own for each run (docs/virtual.md)."""
