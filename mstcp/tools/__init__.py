"""The command `mstcp`, and what its subcommands do."""
