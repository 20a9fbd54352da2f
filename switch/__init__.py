"""Open vSwitch: private instances and what the machine can do. Nothing here knows networks or experiments."""

from switch.errors import SwitchError
from switch.ovs import Port, PrivateInstance

__all__ = ["Port", "PrivateInstance", "SwitchError"]
