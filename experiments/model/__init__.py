"""What an experiment is, as data: the scenario, the job made of it, its events, and the results document.

Nothing here runs anything; engines, places and reports are built on it.
"""
