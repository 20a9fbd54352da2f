"""OpenFlow 1.3: connections of switches, messages as bytes, and bytes as events."""
