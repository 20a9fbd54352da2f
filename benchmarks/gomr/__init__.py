"""How long GOMR's engines take, from scratch and from event to event, on small networks and large ones."""
