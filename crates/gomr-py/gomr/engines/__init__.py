"""Engines that find rates: the compiled one, PuLP (the formulation to read), HiGHS (oracle of the tests)."""
