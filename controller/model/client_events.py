"""What clients are told of as it happens (`GET /v1/events`, gRPC's `Watch`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class ClientEventKind(str, Enum):
    """What happened; the names that clients see."""

    FLOW_GRANTED = "flow_granted"
    FLOW_REFUSED = "flow_refused"
    FLOW_CHANGED = "flow_changed"  # its client asked for another rate
    FLOW_RELEASED = "flow_released"
    FLOW_EXPIRED = "flow_expired"
    FLOW_ENDED = "flow_ended"  # by the controller
    FLOW_REPLANNED = "flow_replanned"
    FLOW_DEGRADED = "flow_degraded"
    FLOW_RESTORED = "flow_restored"
    FLOW_STREAMS_ADDED = "flow_streams_added"  # to the running flow, for its host to open
    FLOW_STREAMS_REMOVED = "flow_streams_removed"
    LINK_DOWN = "link_down"
    LINK_UP = "link_up"
    LINK_CHANGED = "link_changed"  # its rate, delay or state were set
    PORT_DOWN = "port_down"
    PORT_UP = "port_up"
    UNREQUESTED_TRAFFIC = "unrequested_traffic"  # of no flow, on a link: it began, or ended (0 bit/s)
    SWITCH_DOWN = "switch_down"  # its connection ended; it is assumed to forward still
    SWITCH_LOST = "switch_lost"  # it did not come back in time
    SWITCH_UP = "switch_up"
    SWITCH_HELD = "switch_held"  # another controller decides for it
    RULES_REPAIRED = "rules_repaired"  # a switch had not those that it should have
    HOST_LEARNED = "host_learned"
    HOST_MOVED = "host_moved"  # to another port
    HOST_LOST = "host_lost"  # it does not answer, or has said nothing for long
    HOST_CONFLICT = "host_conflict"  # another claims the address of a host that answers
    DESTINATION_UNKNOWN = "destination_unknown"  # a host sends to an address that none has
    GROUP_PACKETS_DROPPED = "group_packets_dropped"  # to multicast and broadcast addresses, by a switch
    TOPOLOGY_CHANGED = "topology_changed"  # its file was read again: switches, links or hosts came or went
    CONFIGURATION_APPLIED = "configuration_applied"
    CONFIGURATION_REFUSED = "configuration_refused"


@dataclass(frozen=True)
class ClientEvent:
    """Something that happened.

    Attributes:
        number: Its place in the store's log of events, from 1: the same at all replicas, and after a restart.
        kind: A name of `ClientEventKind`.
        time_s: When, in seconds since 1970.
        text: It as a sentence.
        data: It as fields.
    """

    number: int
    kind: str
    time_s: float
    text: str
    data: Mapping[str, object]
