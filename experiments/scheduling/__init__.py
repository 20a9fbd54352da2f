"""Where simulations are made.

A `Simulator` is the processes of this machine (`engines.sim.process`) or the workers of a Dask cluster
(`cluster`, which has `remote` called there). `journal` keeps what is finished, `progress` shows it.
"""
