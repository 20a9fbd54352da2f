"""Experiments: scenarios as data, the engines that run them, the metrics and the `mstcp-lab` command.

A scenario (`experiments.model.scenario`) is a TOML file that is checked and never executed. An engine
(`experiments.engines`) runs one of its cases with one protocol and one seed and returns a
`experiments.model.results.RunResult`; all engines read the same scenario and write the same document.
"""
