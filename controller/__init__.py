"""The SDN controller: network state, globally optimal multipath routing, rules, and services that offer them.

`core`, `network`, `flows` and `rules` are pure: events and the time go in, messages come out. `openflow`
alone imports os-ken; `api` offers REST and gRPC; `loop` runs the core in a thread, `cli` the whole process.
"""
