"""Puts rules into switches stage by stage, each confirmed by barriers before the next is sent."""
