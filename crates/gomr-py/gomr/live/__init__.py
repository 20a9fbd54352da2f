"""A problem that changes, kept at its optimum."""
