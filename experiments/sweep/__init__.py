"""Sweeps over load: what each protocol admits and delivers on a large network (`mstcp-lab sweep`).

`plan` says what is run, `offered_load` what flows ask for and are admitted, `description` says a point to the
simulator, `runner` runs the points on all cores, `store` keeps them, `summary`, `table` and `plot` show them.
"""
