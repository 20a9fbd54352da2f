"""All settings: the TOML file, options of the command line, tokens and certificates."""
