"""Where simulations are made, and how many at once: the one scheduler of `run`, `sweep` and `reproduce`.

`scheduler` makes many runs with a `Simulator`: processes of this machine (`engines.sim.process`) or the
workers of a Dask cluster (`cluster`, which has `remote` called there). `journal` keeps what is finished,
`progress` shows it.
"""
