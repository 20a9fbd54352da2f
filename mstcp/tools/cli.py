"""The `mstcp` command: proxies for unmodified applications, transfers, what a controller would allocate."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import mstcp
from mstcp import sockets
from mstcp.endpoints import Destination, Rule, parse_endpoint, parse_rule
from mstcp.errors import sentence
from mstcp.open import connect
from mstcp.options import DEFAULT_MAX_PATHS
from mstcp.tools.arguments import (
    add_connection,
    checked,
    count_argument,
    port_argument,
    rate_argument,
    seconds_argument,
)
from mstcp.tools.controller_arguments import add_controller, controller_of
from mstcp.tools.tls_arguments import add_tls, client_tls, server_tls

EPILOG = """\
examples:
  mstcp receive 9000 copy.iso                            on the one host
  mstcp send 10.0.0.3 9000 disk.iso --streams 2          on the other; both print the SHA-256
  mstcp proxy exit 10.0.0.3:9000 127.0.0.1:22            MSTCP in, TCP to the SSH server out
  mstcp proxy enter 127.0.0.1:2222 10.0.0.3:9000         TCP in, MSTCP out; then: ssh -p 2222 127.0.0.1
  mstcp proxy exit 10.0.0.3:9000                         to any port of 10.0.0.3, as each connection asks
  mstcp run --via :9000 -- curl http://10.0.0.3/         the program's connections go over MSTCP
  mstcp bench                                            loopback, 5 s
  mstcp receive 9000 copy.iso --tls-cert cert.pem --tls-key key.pem
  mstcp send 10.0.0.3 9000 disk.iso --tls --tls-ca ca.pem --tls-name copies.example
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status (0: done, 1: it failed and said why, 130: interrupted)."""
    arguments = _parser().parse_args(argv)
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what fails is told once, by us
    try:
        return asyncio.run(_unless_told_to_end(arguments.work(arguments))) or 0
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; the interpreter would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (mstcp.MstcpError, OSError, ValueError, asyncio.TimeoutError) as error:
        print(f"mstcp {arguments.command}: {sentence(error)}", file=sys.stderr)
        return 1


async def _unless_told_to_end(work: Coroutine[Any, Any, int | None]) -> int | None:
    """Do the work; Ctrl-C or SIGTERM cancels it, a second one ends the process wherever it is.

    A supervisor's SIGTERM ends it as Ctrl-C does, also where that is ignored: in a shell's background jobs.

    Raises:
        KeyboardInterrupt: It was told to end, and the work has ended. (Before Python 3.11 asyncio raises that
            in whichever callback runs, and what this callback was to wake up waits for ever.)
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    cancel, told = task.cancel, False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal told
        del number, frame
        if told:
            raise KeyboardInterrupt
        told = True
        loop.call_soon_threadsafe(cancel)

    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        numbers.append(signal.SIGINT)
    before = {number: signal.getsignal(number) for number in numbers}
    for number in numbers:
        # Another thread may take the signal: this has it wake up the loop, and so run the handler.
        loop.add_signal_handler(number, lambda: None)
        signal.signal(number, end)
    try:
        return await work
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mstcp",
        description="Multi-Stream TCP on this host.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mstcp {mstcp.__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for add in (_add_allocate, _add_send, _add_receive, _add_proxy, _add_run, _add_bench):
        add(commands)
    return parser


# --- options ------------------------------------------------------------------------------------------------
def _add_security(parser: argparse.ArgumentParser, *, listens: bool = False, connects: bool = False) -> None:
    parser.add_argument("--secret-file", metavar="FILE", help="file with a secret that both sides share")
    parser.add_argument(
        "--authenticate-frames",
        action="store_true",
        help="authenticate every byte with the secret; a side that listens refuses clients that do not",
    )
    add_tls(parser, listens=listens, connects=connects)


def _secret(arguments: argparse.Namespace) -> dict[str, Any]:
    authenticates = arguments.authenticate_frames
    if arguments.secret_file is None:
        if authenticates:
            raise ValueError("--authenticate-frames takes a secret that both sides have: give --secret-file")
        return {}
    if authenticates and (getattr(arguments, "tls", False) or getattr(arguments, "tls_cert", None)):
        raise ValueError("--authenticate-frames is for connections without TLS: leave one of them out")
    secret = Path(arguments.secret_file).read_bytes().strip()
    if not secret:
        raise ValueError(f"{arguments.secret_file} is empty: a secret has a byte at least")
    return {"secret": secret, "authenticate_frames": authenticates}


def _asking(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the arguments of `open_connection` for the controller; None without one."""
    controller = controller_of(arguments)
    if controller is None:
        if arguments.may_grow:
            raise ValueError("--may-grow is for a controller, which adds the streams: give --controller")
        return None
    if arguments.rate is None or arguments.streams or arguments.rates:
        raise ValueError("--controller needs --rate, and cannot be combined with --streams or --rates")
    return {"controller": controller, "rate": arguments.rate, "may_grow": arguments.may_grow}


def _specs(arguments: argparse.Namespace) -> list[mstcp.StreamSpec]:
    """Return the streams that are given by hand."""
    rates = arguments.rates
    if arguments.rate is not None:
        if rates or (arguments.streams or 1) > 1:
            raise ValueError("--rate is for a controller or for one stream: give --rates for several")
        rates = [arguments.rate]
    if rates is None:
        return [mstcp.StreamSpec()] * (arguments.streams or 2)
    if arguments.streams not in (None, len(rates)):
        raise ValueError(f"--streams {arguments.streams} contradicts the {len(rates)} rates")
    return [mstcp.StreamSpec(rate_bps=rate) for rate in rates]


def _connection(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `open_connection`."""
    options: dict[str, Any] = _secret(arguments) | client_tls(arguments)
    for name in ("source_address", "scheduler"):
        if (value := getattr(arguments, name)) is not None:
            options[name] = value
    if arguments.interfaces:
        others = ("streams", "rates", "rate", "source_address", "controller")
        if any(getattr(arguments, name) for name in others):
            names = ", ".join(f"--{name.replace('_', '-')}" for name in others)
            raise ValueError(f"--interfaces says which streams there are: leave {names} out")
        return options | {"paths": "interfaces"}
    if (asked := _asking(arguments)) is not None:
        return options | asked
    specs = _specs(arguments)
    if "secret" in options and len(specs) == 1 and not options["authenticate_frames"]:
        raise ValueError(
            "one stream is plain TCP, which proves no secret: use two streams or more, or"
            " --authenticate-frames"
        )
    return options | {"streams": specs}


def _server(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of `start_server`."""
    report = _report(arguments.command)
    options: dict[str, Any] = _secret(arguments) | server_tls(arguments)
    if "secret" in options:
        options["plain"] = False

    def rejected(error: mstcp.MstcpError, peer: Any) -> None:
        if not isinstance(error, mstcp.ConnectionLost):  # else the client went away, or gave the stream up
            report(f"a stream from {peer[0]} was rejected: {error}")

    return options | {"on_rejected": rejected}


def _report(command: str) -> Callable[[str], None]:
    return lambda text: print(f"mstcp {command}: {text}", file=sys.stderr, flush=True)


def _say_listening(what: str) -> Callable[[Sequence[socket.socket]], None]:
    def say(listening: Sequence[socket.socket]) -> None:
        for sock in listening:
            host, port = sock.getsockname()[:2]
            print(f"listening on {Destination(host, port)}{what}", flush=True)

    return say


def _listening(text: str) -> tuple[str, int]:
    """Return host and port to listen on; port 0 lets the system choose."""
    if text.endswith(":0") or text == "0":
        host = parse_endpoint(text[:-1] + "1", default_host="127.0.0.1").host
        return host, 0
    endpoint = parse_endpoint(text, default_host="127.0.0.1")
    return endpoint.host, endpoint.port


# --- allocate -----------------------------------------------------------------------------------------------
def _add_allocate(commands: Any) -> None:
    allocate = commands.add_parser("allocate", help="print the streams that a controller would allocate")
    allocate.add_argument("host", help="destination: a name or an address")
    allocate.add_argument("--port", type=port_argument, required=True, help="TCP port of the destination")
    allocate.add_argument(
        "--rate", type=rate_argument, required=True, metavar="BPS", help="goodput to request in bit/s: 8.5e6"
    )
    allocate.add_argument(
        "--source-address", metavar="ADDRESS", help="address of the source (default: the system's choice)"
    )
    allocate.add_argument(
        "--max-paths",
        type=count_argument,
        default=DEFAULT_MAX_PATHS,
        metavar="N",
        help="use at most this many paths (default: %(default)s)",
    )
    allocate.add_argument(
        "--objective", default=None, metavar="NAME", help="routing objective (default: the controller's)"
    )
    add_controller(allocate, required=True)
    allocate.set_defaults(work=_allocate)


async def _allocate(arguments: argparse.Namespace) -> None:
    address = controller_of(arguments)
    assert address is not None, "argparse asks for it"
    family, destination = (await connect.resolve(arguments.host, arguments.port))[0]
    source = arguments.source_address or sockets.local_address(family, destination)
    bound = [sockets.bind_stream(family, source, 0) for _ in range(arguments.max_paths)]
    try:
        async with address.client() as controller:
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


# --- send, receive ------------------------------------------------------------------------------------------
def _add_send(commands: Any) -> None:
    send = commands.add_parser("send", help="send a file to `mstcp receive` and print its SHA-256")
    send.add_argument("host", help="name or address of the receiver")
    send.add_argument("port", type=port_argument, help="TCP port of the receiver")
    send.add_argument("file", help="file to send; - is standard input")
    add_connection(send)
    _add_security(send, connects=True)
    send.set_defaults(work=_send)


async def _send(arguments: argparse.Namespace) -> None:
    from mstcp.tools.transfer import send_file

    to = Destination(arguments.host, arguments.port)
    print(await send_file(to, arguments.file, _connection(arguments)))


def _add_receive(commands: Any) -> None:
    receive = commands.add_parser("receive", help="accept one connection, print the SHA-256 of what it sends")
    receive.add_argument("port", type=port_argument, help="TCP port to listen on")
    receive.add_argument(
        "file", nargs="?", help="file to write (default: discard the data); - is standard output"
    )
    receive.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    _add_security(receive, listens=True)
    receive.set_defaults(work=_receive)


async def _receive(arguments: argparse.Namespace) -> None:
    from mstcp.tools.transfer import receive_file

    at = Destination(arguments.host, arguments.port)
    digest = await receive_file(at, arguments.file, _server(arguments))
    print(digest, file=sys.stderr if arguments.file == "-" else sys.stdout)


# --- proxy --------------------------------------------------------------------------------------------------
def _add_proxy(commands: Any) -> None:
    proxy = commands.add_parser(
        "proxy",
        help="forward TCP connections over MSTCP, for applications that do not support it",
        description="`enter` accepts TCP connections and forwards them over MSTCP; `exit` accepts MSTCP "
        "connections and forwards them to the target over TCP.",
    )
    ends = proxy.add_subparsers(dest="end", required=True, metavar="END")
    enter = ends.add_parser("enter", help="accept TCP, forward over MSTCP")
    _add_listen(enter, "TCP")
    enter.add_argument(
        "to",
        type=checked(_via),
        metavar="[HOST]:PORT",
        help="address of the `exit`; without HOST, with --transparent, that port of each destination",
    )
    enter.add_argument(
        "--target",
        type=checked(parse_endpoint),
        metavar="HOST:PORT",
        help="what the `exit` connects to, if it was started without a target",
    )
    enter.add_argument(
        "--transparent",
        action="store_true",
        help="for a host or a gateway whose connections nftables leads here (TPROXY or redirect): the "
        "`exit`, which has no target, connects to where they went",
    )
    add_connection(enter)
    _add_security(enter, connects=True)
    enter.set_defaults(work=_enter)
    leave = ends.add_parser("exit", help="accept MSTCP, connect over TCP")
    _add_listen(leave, "MSTCP")
    leave.add_argument(
        "target",
        nargs="?",
        type=checked(parse_endpoint),
        metavar="HOST:PORT",
        help="target to connect to (default: the one that each connection asks for)",
    )
    leave.add_argument(
        "--allow",
        action="append",
        type=checked(parse_rule),
        metavar="ADDRESS[/BITS][:PORT]",
        help="targets that connections may ask for; repeatable (default: addresses of this host)",
    )
    _add_security(leave, listens=True)
    leave.set_defaults(work=_exit)


def _add_listen(parser: argparse.ArgumentParser, what: str) -> None:
    where = f"address to accept {what} connections on"
    parser.add_argument("listen", type=checked(_listening), metavar="[HOST:]PORT", help=where)


async def _enter(arguments: argparse.Namespace) -> None:
    from mstcp.tools.proxy import Entry, Upstream

    to, is_transparent = arguments.to, arguments.transparent
    if is_transparent and arguments.target is not None:
        raise ValueError("--transparent takes each connection to where it went: leave out --target")
    if not (to.host or is_transparent):
        raise ValueError("give the host of the `exit`, or --transparent for that port of each destination")
    upstream = Upstream(to.host, to.port, _connection(arguments))
    entry = Entry(upstream, arguments.target, _report("proxy"), transparent=is_transparent)
    host, port = arguments.listen
    await entry.serve(host, port, _say_listening(f", on to {to if to.host else f'port {to.port} of each'}"))


async def _exit(arguments: argparse.Namespace) -> None:
    from mstcp.tools.proxy import Exit

    if arguments.target is not None and arguments.allow:
        raise ValueError("--allow is for connections that ask for their destination, and one is given")
    leave = Exit(arguments.target, arguments.allow, _report("proxy"))
    to = arguments.target or "where connections ask for"
    host, port = arguments.listen
    await leave.serve(host, port, _say_listening(f", on to {to}"), **_server(arguments))


# --- run ----------------------------------------------------------------------------------------------------
def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program and carry its TCP connections over MSTCP",
        usage="mstcp run --via [HOST]:PORT [options] -- COMMAND [ARGUMENT ...]",
    )
    run.add_argument(
        "--via",
        required=True,
        type=checked(_via),
        metavar="[HOST]:PORT",
        help="address of an `mstcp proxy exit` without target; without HOST, that port of each destination",
    )
    run.add_argument(
        "--only",
        action="append",
        type=checked(parse_rule),
        metavar="ADDRESS[/BITS][:PORT]",
        help="destinations that go over MSTCP; repeatable (default: all but loopback)",
    )
    run.add_argument(
        "--intercept",
        choices=("preload", "namespace"),
        help="how: by a library that the program loads, or in a network namespace, for static programs and "
        "those of Go (default: as its file needs it)",
    )
    run.add_argument("program", nargs="+", metavar="COMMAND", help="the program and its arguments")
    add_connection(run)
    run.add_argument(
        "--allocate",
        choices=("program", "connection"),
        help="what --rate is requested for: the program, whose connections share it as they send, or each "
        "connection (default: program)",
    )
    _add_security(run, connects=True)
    run.set_defaults(work=_run)


def _via(text: str) -> Destination:
    if text.startswith(":"):
        return Destination("", parse_endpoint(text, default_host="-").port)
    return parse_endpoint(text)


async def _run(arguments: argparse.Namespace) -> int:
    from mstcp.tools.proxy import SharedUpstream, Upstream
    from mstcp.tools.redirect import Interception, run

    if arguments.allocate is not None and arguments.controller is None:
        raise ValueError("--allocate says what a controller allocates for: give --controller")
    rules: list[Rule] | None = arguments.only
    each = Upstream(arguments.via.host, arguments.via.port, _connection(arguments))
    is_shared = arguments.controller is not None and arguments.allocate != "connection"
    upstream = SharedUpstream(each) if is_shared else each
    how = Interception(arguments.intercept) if arguments.intercept else None
    return await run(arguments.program, upstream, rules, _report("run"), os.environ, how)


# --- bench --------------------------------------------------------------------------------------------------
def _add_bench(commands: Any) -> None:
    bench = commands.add_parser("bench", help="measure goodput to `mstcp bench --serve`, or over loopback")
    bench.add_argument(
        "to",
        nargs="?",
        type=checked(parse_endpoint),
        metavar="HOST:PORT",
        help="where `mstcp bench --serve` runs (default: measure over loopback)",
    )
    bench.add_argument(
        "--serve",
        type=checked(_listening),
        metavar="[HOST:]PORT",
        help="run the receiving side on this address",
    )
    bench.add_argument(
        "--seconds", type=seconds_argument, default=5.0, metavar="S", help="seconds to measure (default: 5)"
    )
    bench.add_argument("--json", action="store_true", help="print the figures as JSON")
    add_connection(bench)
    _add_security(bench, listens=True, connects=True)
    bench.set_defaults(work=_bench)


async def _bench(arguments: argparse.Namespace) -> None:
    from mstcp.tools.transfer import bench, serve_bench

    if arguments.serve is not None:
        if arguments.to is not None:
            raise ValueError("either HOST:PORT or --serve")
        if arguments.tls:
            raise ValueError("--tls is for the side that connects: the one that serves has --tls-cert")
        host, port = arguments.serve
        await serve_bench(host, port, _say_listening(""), _server(arguments))
        return
    if arguments.to is not None and arguments.tls_cert is not None:
        raise ValueError("--tls-cert is for the side that serves: the one that connects has --tls")
    server_tls(arguments)  # so that what is wrong with it is said here
    shared = {
        "--secret-file": arguments.secret_file,
        "--tls-cert": arguments.tls_cert,
        "--tls-key": arguments.tls_key,
    }
    serving = [part for option, file in shared.items() if file is not None for part in (option, file)]
    if arguments.authenticate_frames:
        serving.append("--authenticate-frames")
    measured = await bench(arguments.to, arguments.seconds, _connection(arguments), serving)
    if arguments.json:
        print(json.dumps(measured))
        return
    print(f"{measured['goodput_bps'] / 1e6:.1f} Mbit/s over {measured['seconds']:.1f} s")
    print(f"{measured['cpu_s_per_gb']:.2f} s of CPU a GB on this side")
    for number, count in enumerate(measured["streams"]):
        print(f"stream {number}: {count / max(measured['bytes'], 1):.1%}")


if __name__ == "__main__":
    sys.exit(main())
