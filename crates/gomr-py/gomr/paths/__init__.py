"""Paths over the edges of a problem: shortest, disjoint, within a delay, and the limits on them."""
