"""What is made of measurements: logs into results, results into tables, and whether a run is valid."""
