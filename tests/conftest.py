"""Random tests draw the same examples every time: one that passed fails only when the code changes.

`make explore` draws new ones: what it finds becomes a test of its own.
"""

import os
import signal

import hypothesis

# A shell's background jobs ignore SIGINT, and the programs under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

hypothesis.settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
hypothesis.settings.register_profile("explore", max_examples=1000, deadline=None)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
