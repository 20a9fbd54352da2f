"""Three replicas, a store, switches and clients in virtual time, with partitions, pauses and crashes.

The replicas are the real core, `Replica`, `Elector` and `LeaderMachine` (`replica`); the store is a model of
etcd (revisions, leases, guarded transactions, watches in order), the switches are tables with OpenFlow's
roles (`models`). `World(seed).run()` raises AssertionError where a promise is broken (`world`).
"""

from tests.fakes.replicated.world import World

__all__ = ["World"]
