"""The network as it is: links and ports, their discovery by LLDP, hosts and ARP."""
