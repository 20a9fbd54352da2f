"""What survives a restart: an interface, and SQLite behind it."""
