"""What the controller knows: the live network, hosts, flows and measured load."""
