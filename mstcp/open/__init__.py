"""How connections are opened and accepted: addresses, streams, hellos."""
