"""Failures in a live network while a flow runs: how long its bytes stop, and what it carries afterwards."""
