"""The controller's page under load; see `benchmarks.web.__main__`."""
