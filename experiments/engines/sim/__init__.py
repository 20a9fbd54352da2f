"""The simulator as an engine: `mstcp-lab run … --engine sim` (docs/simulator.md).

`routing` finds the flows' paths as the controller does, `description` says the run to the simulator,
`process` runs it in a process of its own, `results` makes its findings the common result.
"""
