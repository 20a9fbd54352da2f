"""What a process on one of two hosts knows of them; `network` makes them.

Each host has an address of its own beside those of its interfaces; source ports from `SECOND_PATH_PORT` on
take the second path, as a controller would have it.
"""

NEAR, FAR = "10.77.9.1", "10.77.9.2"
FIRST_PATH_PORT, SECOND_PATH_PORT = 40000, 41000


def path_address(path: int, side: int) -> str:
    """Return the address of a side (0 near, 1 far) on a path."""
    return f"10.77.{path}.{side + 1}"
