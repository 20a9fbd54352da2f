"""Who of several controllers leads: a state machine, what a replica is by it, and threads for both."""
