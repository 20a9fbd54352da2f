"""The simulated tables of docs/, a file for each page: python -m benchmarks.tables (`make tables`)."""
