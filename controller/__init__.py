"""The SDN controller: network state, globally optimal multipath routing, rules, and services that offer them.

The core (`controller.core`) is pure: events and the time go in, messages come out. os-ken lives in
`osken_*.py` alone; REST and gRPC are two thin doors to one service layer (`controller.service`).
"""
