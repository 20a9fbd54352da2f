"""The live engine: Mininet, Open vSwitch, the controller and the kernel's TCP, in real time."""
