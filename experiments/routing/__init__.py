"""`mstcp-lab solve`: GOMR on a network and its demands, without packets."""
