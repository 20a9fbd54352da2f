"""`mstcp send`, `mstcp receive` and `mstcp bench`: files and rates from host to host.

The side that sends ends its direction; the side that receives answers with a line: `sha256 HEX`, `received
BYTES`, or `error SENTENCE` as soon as it cannot go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import resource
import socket
import stat
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from mstcp.endpoints import Destination, parse_endpoint
from mstcp.errors import ConnectionLost, MstcpError, sentence
from mstcp.open.client import open_connection
from mstcp.open.server import start_server
from mstcp.tools.progress import Progress
from mstcp.tools.relay import LIMIT_BYTES, Pair, Tasks, abort

CHUNK_BYTES = 1 << 18
_LINE_BYTES = 512


class TransferFailed(MstcpError):
    """The peer could not keep what was sent, or something else came than was sent."""


async def send_file(to: Destination, file: str, options: dict[str, Any]) -> str:
    """Send a file (`-`: standard input); return its SHA-256, which the receiver confirmed.

    Raises:
        TransferFailed: The receiver could not keep it, or has other bytes.
        MstcpError: The connection failed.
        OSError: The file cannot be read, or nobody listens there.
    """
    with contextlib.ExitStack() as stack:
        source, size = sys.stdin.buffer, None
        if file != "-":
            source = stack.enter_context(Path(file).open("rb"))
            status = os.fstat(source.fileno())
            size = status.st_size if stat.S_ISREG(status.st_mode) else None
        progress = stack.enter_context(Progress(size))
        pair = await open_connection(to.host, to.port, limit=LIMIT_BYTES, **options)
        digest = hashlib.sha256()

        async def chunks() -> AsyncIterator[bytes]:
            while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                digest.update(chunk)
                yield chunk
                progress.add(len(chunk))

        answer = await _send(pair, chunks())
    if answer is not None and answer != f"sha256 {digest.hexdigest()}":
        raise TransferFailed(f"the receiver has other bytes: it says {answer!r}")
    return digest.hexdigest()


async def _send(pair: Pair, chunks: AsyncIterator[bytes]) -> str | None:
    """Send chunks and the end; return the peer's line, None if it ended without one."""
    reader, writer = pair
    answering = asyncio.ensure_future(_read_line(reader))
    sending = asyncio.ensure_future(_send_all(writer, chunks))
    try:
        # An answer before the end says that there is no use in going on.
        await asyncio.wait([answering, sending], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            await sending
        answer = await answering
        if answer is not None and answer.startswith("error "):
            raise TransferFailed(f"the receiver: {answer.removeprefix('error ')}")
        await sending
        writer.close()
        await writer.wait_closed()
    except BaseException:
        abort(pair)
        raise
    finally:
        for task in (answering, sending):
            task.cancel()
        await asyncio.gather(answering, sending, return_exceptions=True)
    return answer


async def _send_all(writer: asyncio.StreamWriter, chunks: AsyncIterator[bytes]) -> None:
    async for chunk in chunks:
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()


async def _read_line(reader: asyncio.StreamReader) -> str | None:
    line = b""
    while len(line) < _LINE_BYTES and not line.endswith(b"\n"):
        more = await reader.read(_LINE_BYTES - len(line))
        if not more:
            break
        line += more
    text = line.decode(errors="replace").strip()
    return "".join(character for character in text if character.isprintable()) or None


async def receive_file(at: Destination, file: str | None, options: dict[str, Any]) -> str:
    """Receive one connection into a file (None: nowhere, `-`: standard output); return the SHA-256.

    The file appears, or replaces what was there, when all has come.

    Raises:
        MstcpError: The connection broke.
        OSError: The address is not this host's, the port is taken, or the file cannot be written.
    """
    with _target(file) as target:

        async def take(pair: Pair) -> str:
            digest = hashlib.sha256()
            with Progress(None) as progress:
                while chunk := await pair[0].read(CHUNK_BYTES):
                    digest.update(chunk)
                    if target is not None:
                        with _naming(file):
                            await asyncio.to_thread(_write_all, target, chunk)
                    progress.add(len(chunk))
            if target is not None:
                with _naming(file):
                    target.flush()
            return f"sha256 {digest.hexdigest()}"

        answer = await _receive_one(at, take, options)
    return answer.removeprefix("sha256 ")


@contextlib.contextmanager
def _target(file: str | None) -> Any:
    """Yield what to write to; a file gets its name at the end, and is removed if something fails."""
    if file is None or file == "-":
        yield sys.stdout.buffer if file == "-" else None
        return
    path = Path(file)
    if path.exists() and not path.is_file():
        with path.open("wb", buffering=0) as special:  # a device or a pipe
            yield special
        return
    with _naming(file):
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    part = Path(name)
    try:
        # Without a buffer closing writes nothing more, and so raises nothing.
        with os.fdopen(descriptor, "wb", buffering=0) as target:
            yield target
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _write_all(target: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[target.write(rest) :]


@contextlib.contextmanager
def _naming(file: str | None) -> Iterator[None]:
    """Have errors of the disk name the file that was asked for, not the one beside it, or none."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), file) from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


async def _receive_one(
    at: Destination, take: Callable[[Pair], Awaitable[str]], options: dict[str, Any]
) -> str:
    """Accept one connection, have it taken, and answer with the line; others are turned away."""
    done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    taken: list[asyncio.Task[None]] = []

    async def carry(pair: Pair) -> None:
        try:
            line = await take(pair)
        except (MstcpError, OSError) as error:
            # Our file's name is nobody else's business.
            told = error.strerror if isinstance(error, OSError) and error.filename else sentence(error)
            await _answer(pair, f"error {told}")
            if not done.done():
                done.set_exception(error)
            return
        await _answer(pair, line)
        if not done.done():
            done.set_result(line)

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if taken:
            abort((reader, writer))
        else:
            taken.append(asyncio.ensure_future(carry((reader, writer))))

    server = await start_server(accepted, at.host, at.port, limit=LIMIT_BYTES, **options)
    async with server:
        try:
            return await done
        finally:
            for task in taken:
                task.cancel()
            await asyncio.gather(*taken, return_exceptions=True)


async def _answer(pair: Pair, line: str) -> None:
    _, writer = pair
    with contextlib.suppress(MstcpError, OSError):
        writer.write(line.encode()[: _LINE_BYTES - 1] + b"\n")
        writer.close()
        await writer.wait_closed()


# --- bench --------------------------------------------------------------------------------------------------
async def serve_bench(
    host: str, port: int, on_ready: Callable[[Sequence[socket.socket]], None], options: dict[str, Any]
) -> None:
    """Take what comes on every connection until cancelled, and answer each with how much it was."""

    async def take(pair: Pair) -> None:
        count = 0
        while chunk := await pair[0].read(CHUNK_BYTES):
            count += len(chunk)
        await _answer(pair, f"received {count}")

    async with Tasks(lambda _: None) as tasks:  # its client tells what fails

        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.start(take((reader, writer)))

        async with await start_server(accepted, host, port, limit=LIMIT_BYTES, **options) as server:
            on_ready(server.sockets)
            await server.serve_forever()


async def bench(
    to: Destination | None, seconds: float, options: dict[str, Any], serving: Sequence[str] = ()
) -> dict[str, Any]:
    """Send zeros for some seconds to `serve_bench`, by default to one on loopback; return what was measured.

    Args:
        to: Where that listens; None: one is started, with the arguments `serving` beside its own.
        seconds: How long.
        options: Those of `open_connection`.
        serving: What a `mstcp bench --serve` of ours is to be told.

    Returns:
        `seconds`, `bytes`, `goodput_bps`, `cpu_s_per_gb` of this side, and `streams` with the bytes of each.

    Raises:
        MstcpError: The connection failed.
        OSError: Nobody listens there.
    """
    if to is not None:
        return await _bench(to, seconds, options)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "mstcp.tools.cli", "bench", "--serve", "127.0.0.1:0", *serving),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().split()
        if not line:
            raise ConnectionLost("the other side of the measurement did not start")
        return await _bench(parse_endpoint(line[-1]), seconds, options)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()


async def _bench(to: Destination, seconds: float, options: dict[str, Any]) -> dict[str, Any]:
    pair = await open_connection(to.host, to.port, limit=LIMIT_BYTES, **options)
    pair[1].transport.set_write_buffer_limits(high=1 << 20)
    zeros, cpu_s = bytes(CHUNK_BYTES), _cpu_s()
    with Progress(None) as progress:

        async def chunks() -> AsyncIterator[bytes]:
            while progress.elapsed_s < seconds:
                yield zeros
                progress.add(len(zeros))

        answer = await _send(pair, chunks())
        elapsed_s = progress.elapsed_s
    counters = pair[1].get_extra_info("counters")
    if answer != f"received {progress.done}":
        raise TransferFailed(f"{progress.done} bytes were sent, and the peer says {answer!r}")
    return {
        "seconds": round(elapsed_s, 3),
        "bytes": progress.done,
        "goodput_bps": round(progress.done * 8 / elapsed_s),
        "cpu_s_per_gb": round((_cpu_s() - cpu_s) * 1e9 / max(progress.done, 1), 3),
        "streams": [stream.bytes_sent for stream in counters.streams],
    }


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime
