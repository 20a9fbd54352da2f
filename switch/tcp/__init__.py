"""Congestion controls of our own: one arithmetic, as BPF for running kernels and built into the virtual one.

    with Controls(["lia"]) as controls:
        sock.setsockopt(IPPROTO_TCP, TCP_CONGESTION, controls.registered("lia").encode())

`coupled.h` and `door.h` are the arithmetic; `controls.bpf.c` and `tcp_controls.c` call it (docs/tcp.md).
"""

from switch.tcp.controls import COUPLED, NAMES, RESPONSES, Controls, given_name

__all__ = ["COUPLED", "NAMES", "RESPONSES", "Controls", "given_name"]
