"""Rules from paths: pinned connections, split flows, bypasses, ECMP; no state, no OpenFlow library."""
