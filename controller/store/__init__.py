"""What survives a restart, in SQLite (the interface is `model.records`)."""
