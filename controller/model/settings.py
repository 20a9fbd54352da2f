"""How the controller behaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from controller.wire import DEFAULT_ACK_RATIO


@dataclass(frozen=True)
class Settings:
    """How the controller behaves.

    Attributes:
        objective: For requests that name none.
        lease_s: A flow that is not renewed for so long ends.
        ack_ratio: Load of the acknowledgements on the reverse path, per bit of data.
        reserved_share: Share of every link that no flow is given: it is for default traffic.
        confirm_timeout_s: A switch that has not confirmed a stage of rules after this fails the request.
        default_routing: Of all traffic without an allocation: `shortest`, the one path of least delay, or
            `ecmp`, all paths of least delay by a hash of each connection.
        probe_interval_s: Each port is probed for its link so often; less often where there are many.
        silence_s: A link that answers no probe for so long is lost.
        switch_grace_s: A switch whose connection ended is assumed to forward as before for so long; after a
            restart of the controller, all are.
        host_age_s: A learned host that says nothing for so long is forgotten.
        lldp_key: Signs probes, so that hosts cannot forge them.
        min_gain: A running flow is moved to better paths only where it gains more than this share of what it
            has asked for.
        moves_per_s: Running flows that are moved to better paths, at most.
        fast_failover: Switches heal a port that goes down by themselves, with groups (`rules.protection`).
        solve_limit_s: A solve may take so long; then the best rates that are known by then are taken.
        counter_interval_s: Each switch is asked for its counters so often; less often where there are many.
            0: none is.
        counter_messages_per_s: Questions for counters and answers to them together, at most.
        yielded_share: Of each link, at most this share is left to traffic that nobody asked for, where the
            counters show that there is any; what flows have already is not taken from them.
        replicated: Others follow the store, so that it is told of leases too.
        boot_id: Begins the ids of flows where nothing else makes them.
    """

    objective: str = "max_throughput_min_delay"
    lease_s: float = 30.0
    ack_ratio: float = DEFAULT_ACK_RATIO
    reserved_share: float = 0.0
    confirm_timeout_s: float = 3.0
    default_routing: Literal["shortest", "ecmp"] = "shortest"
    probe_interval_s: float = 0.1
    silence_s: float = 0.4
    switch_grace_s: float = 10.0
    host_age_s: float = 300.0
    lldp_key: bytes = b""
    min_gain: float = 0.01
    moves_per_s: float = 50.0
    fast_failover: bool = True
    solve_limit_s: float = 10.0
    counter_interval_s: float = 1.0
    counter_messages_per_s: float = 40.0
    yielded_share: float = 0.5
    replicated: bool = False
    boot_id: str = "f"
