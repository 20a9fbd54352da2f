"""Forwarding rules without an OpenFlow library: pinned paths, split flows, default routes, ECMP."""
