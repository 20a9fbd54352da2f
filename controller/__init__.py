"""The SDN controller: network state, globally optimal multipath routing, rules, and services that offer them.

`core` and the layers below it (`decide`, `install`, `state`, `compile`, `model`) are pure: events and the
time go in, messages come out. `openflow` speaks to switches; `api` offers REST and gRPC; `loop` runs the core
in a thread, `cli` the whole process.
"""
