"""One host of one network: `python -m benchmarks.unequal.peer far`, or `near` with what it is to send.

The near host makes one transfer after the other, `near KIND:BYTES ...`, with a second between them, and says
when each began: before it connects. The far host says when each was there, with its last byte. Both read the
monotonic clock, which they share. `tcp0` and `tcp1` are TCP on the first and second path, `mstcp` is the
library as it comes with a stream on each, and `mptcp` the kernel's; its first subflow takes the first path.
`tcps` are a TCP on each at once, with half of the bytes.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import time

import mstcp
from benchmarks.transport import addresses
from benchmarks.transport.peer import IPPROTO_MPTCP
from benchmarks.unequal.grid import TWO_TCPS

PORTS = {"tcp0": 5000, "tcp1": 5000, "mstcp": 5001, "mptcp": 5002}
PAUSE_S = 1.0
WRITE_BYTES = 1 << 16
READ_BYTES = 1 << 20


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Count what comes, say when the last of it came, and end the connection."""
    count, last_s = 0, 0.0
    while data := await reader.read(READ_BYTES):
        count, last_s = count + len(data), time.monotonic()
    print(json.dumps({"last_s": last_s, "bytes": count}), flush=True)
    writer.close()


async def far() -> None:
    """Take transfers until the process is killed."""
    await asyncio.start_server(serve, addresses.FAR, PORTS["tcp0"])
    await mstcp.start_server(serve, addresses.FAR, PORTS["mstcp"])
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
    listener.bind(("", PORTS["mptcp"]))  # the second subflow comes to another address
    await asyncio.start_server(serve, sock=listener)
    print(json.dumps({"listening": True}), flush=True)
    await asyncio.Event().wait()


async def connect(kind: str, number: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open the connection of a transfer; each has source ports of its own."""
    source_ports = (addresses.FIRST_PATH_PORT + number, addresses.SECOND_PATH_PORT + number)
    if kind == "mstcp":
        specs = [mstcp.StreamSpec(source_port=port) for port in source_ports]
        return await mstcp.open_connection(
            addresses.FAR, PORTS[kind], streams=specs, source_address=addresses.NEAR
        )
    if kind == "mptcp":
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, IPPROTO_MPTCP)
        sock.bind((addresses.NEAR, source_ports[0]))
        sock.connect(
            (addresses.FAR, PORTS[kind])
        )  # nothing else is to be done; asyncio's resolver refuses the protocol
        sock.setblocking(False)
        return await asyncio.open_connection(sock=sock)
    path = int(kind.removeprefix("tcp"))
    local = (addresses.NEAR, source_ports[path])
    return await asyncio.open_connection(addresses.FAR, PORTS[kind], local_addr=local)


async def send(kind: str, number: int, size_bytes: int) -> float:
    """Make one transfer; return when it began."""
    if kind == TWO_TCPS:
        return min(await asyncio.gather(*(send(tcp, number, size_bytes // 2) for tcp in ("tcp0", "tcp1"))))
    began_s = time.monotonic()
    reader, writer = await connect(kind, number)
    for at in range(0, size_bytes, WRITE_BYTES):
        writer.write(bytes(min(WRITE_BYTES, size_bytes - at)))
        await writer.drain()
    writer.write_eof()
    await reader.read()
    writer.close()
    return began_s


async def near(transfers: list[str]) -> None:
    """Make the transfers."""
    for number, transfer in enumerate(transfers):
        kind, size = transfer.split(":")
        began_s = await send(kind, number, int(size))
        print(json.dumps({"began_s": began_s}), flush=True)
        await asyncio.sleep(PAUSE_S)


def main() -> None:
    """Run the side that the arguments name."""
    side, *words = sys.argv[1:]
    asyncio.run(near(words) if side == "near" else far())


if __name__ == "__main__":
    main()
