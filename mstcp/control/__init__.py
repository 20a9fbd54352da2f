"""Asking a controller for rates and paths."""

from mstcp.control.channel import CA_VARIABLE, TOKEN_VARIABLE, ControllerAddress, ControllerClient

__all__ = ["CA_VARIABLE", "TOKEN_VARIABLE", "ControllerAddress", "ControllerClient"]
