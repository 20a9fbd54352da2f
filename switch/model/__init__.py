"""Model OpenFlow 1.3 switches that speak the wire protocol, many in one process, with faults on demand.

`openflow` reads and writes messages, `tables` holds rules and groups and says where a packet goes, `switch`
is one switch without I/O (bytes in, bytes out), `fleet` connects a network of them to a controller.
They forward no traffic: a packet-out arrives at the other end of its link, so link discovery works, and
`Tables.forward` answers "where would this packet go?".
"""

from switch.model.fleet import Fleet
from switch.model.switch import Faults, ModelSwitch

__all__ = ["Faults", "Fleet", "ModelSwitch"]
