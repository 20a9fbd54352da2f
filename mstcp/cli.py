"""The `mstcp` command: what a controller would allocate, and small transfers."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import sys
from pathlib import Path
from typing import BinaryIO

import mstcp
from mstcp import client, sockets
from mstcp.options import DEFAULT_MAX_PATHS

_CHUNK_BYTES = 1 << 16


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status (0: done, 1: it failed and said why, 130: interrupted)."""
    arguments = _parser().parse_args(argv)
    command = {"allocate": _allocate, "send": _send, "receive": _receive}[arguments.command]
    try:
        asyncio.run(command(arguments))
    except (mstcp.MstcpError, OSError) as error:
        print(f"mstcp {arguments.command}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mstcp", description="Multi-Stream TCP on this host.")
    parser.add_argument("--version", action="version", version=f"mstcp {mstcp.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    allocate = commands.add_parser("allocate", help="print what a controller would allocate")
    allocate.add_argument("host", help="destination")
    allocate.add_argument("--port", type=int, required=True, help="TCP port of the destination")
    allocate.add_argument(
        "--rate", type=float, required=True, metavar="BPS", help="goodput in bit/s, as 8.5e6"
    )
    allocate.add_argument("--controller", required=True, metavar="ADDRESS:PORT")
    allocate.add_argument("--source-address", help="ours (default: the system's choice)")
    allocate.add_argument("--max-paths", type=int, default=DEFAULT_MAX_PATHS)
    allocate.add_argument("--objective", default=None)

    send = commands.add_parser("send", help="send a file, print its SHA-256")
    send.add_argument("host")
    send.add_argument("port", type=int)
    send.add_argument("file", help="what to send; - is standard input")
    send.add_argument("--rate", type=float, default=None, metavar="BPS", help="goodput in bit/s")
    send.add_argument("--controller", default=None, metavar="ADDRESS:PORT")

    receive = commands.add_parser("receive", help="receive one connection, print the SHA-256 of what came")
    receive.add_argument("port", type=int)
    receive.add_argument("file", nargs="?", help="where to write it (default: nowhere); - is standard output")
    receive.add_argument("--host", default=None, help="address to listen on (default: 127.0.0.1)")
    return parser


async def _allocate(arguments: argparse.Namespace) -> None:
    from mstcp.control import ControllerClient

    family, destination = await client.resolve(arguments.host, arguments.port)
    source = arguments.source_address or sockets.local_address(family, destination)
    bound = [sockets.bind_stream(family, source, 0) for _ in range(arguments.max_paths)]
    try:
        async with ControllerClient(arguments.controller) as controller:
            allocation = await controller.request(
                source=source,
                destination=destination[0],
                destination_port=arguments.port,
                source_ports=[sock.getsockname()[1] for sock in bound],
                rate_bps=arguments.rate,
                objective=arguments.objective or "",
                segment_overhead_bytes=sockets.segment_overhead_bytes(family),
            )
            await controller.release(allocation.flow_id)
    finally:
        for sock in bound:
            sock.close()
    print(f"{allocation.rate_bps / 1e6:g} of {allocation.requested_bps / 1e6:g} Mbit/s")
    for stream in allocation.streams:
        path = " ".join(stream.path or ("path not told",))
        delay = "" if stream.delay_s is None else f"  {stream.delay_s * 1e3:g} ms"
        print(f"{(stream.rate_bps or 0) / 1e6:10g} Mbit/s{delay}  {path}")


async def _send(arguments: argparse.Namespace) -> None:
    digest = hashlib.sha256()
    with contextlib.ExitStack() as stack:
        source: BinaryIO = sys.stdin.buffer
        if arguments.file != "-":
            source = stack.enter_context(Path(arguments.file).open("rb"))
        _, writer = await mstcp.open_connection(
            arguments.host, arguments.port, rate=arguments.rate, controller=arguments.controller
        )
        while chunk := await asyncio.to_thread(source.read, _CHUNK_BYTES):
            digest.update(chunk)
            writer.write(chunk)
            await writer.drain()
        writer.close()
        await writer.wait_closed()
    print(digest.hexdigest())


async def _receive(arguments: argparse.Namespace) -> None:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[str] = loop.create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.close()
        try:
            text = await _store(reader, arguments.file)
            if not done.done():
                done.set_result(text)
        except (mstcp.MstcpError, OSError) as error:
            if not done.done():
                done.set_exception(error)
        finally:
            writer.close()

    server = await mstcp.start_server(take, arguments.host, arguments.port)
    async with server:
        text = await done
    print(text, file=sys.stderr if arguments.file == "-" else sys.stdout)


async def _store(reader: asyncio.StreamReader, file: str | None) -> str:
    """Write what comes to `file` and return its SHA-256."""
    digest = hashlib.sha256()
    with contextlib.ExitStack() as stack:
        target: BinaryIO | None = sys.stdout.buffer if file == "-" else None
        if file not in (None, "-"):
            target = stack.enter_context(Path(file).open("wb"))
        while chunk := await reader.read(_CHUNK_BYTES):
            digest.update(chunk)
            if target is not None:
                target.write(chunk)
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main())
