"""What decides, without I/O: events and the time go in, messages come out (`core.core`)."""
