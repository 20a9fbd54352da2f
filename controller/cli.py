"""`mstcp-controller`: starts the controller and runs it until SIGTERM or SIGINT; checks configurations."""

from __future__ import annotations

import argparse
import gc
import logging
import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import topologies
from controller import logs
from controller.configuration.access import digest_of
from controller.configuration.file import configure, read
from controller.configuration.options import parser, settings_of
from controller.configuration.schema import Configuration
from controller.errors import FAILURES, CoreFailed
from controller.instructions import Instructions
from controller.step_down import step_down

_EX_SOFTWARE = 70  # sysexits.h: an internal fault


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 after a signal, 2 if it could not start, 70 if it could not go on."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if words[:1] == ["check"]:
            return _check(words[1:])
        if words[:1] == ["token"]:
            return _token(words[1:])
        if words[:1] == ["step-down"]:
            print(step_down(words[1:]))
            return 0
        return _run(words)
    except CoreFailed as error:
        print(f"mstcp-controller: {error}", file=sys.stderr)
        return _EX_SOFTWARE
    except (*FAILURES, topologies.TopologyError) as error:
        print(f"mstcp-controller: {error}", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.topology is None and options.config is None:
        parser().error("--topology is needed, or --config with a file that names one")
    configuration = _configuration(options)
    with Instructions() as instructions:
        log = logs.set_up(options.log_format, logging.DEBUG if options.verbose else logging.INFO)
        try:
            run = _imported()
            run(configuration, lambda: _configuration(options), instructions, options.ready_file)
        finally:
            log.stop()
    return 0


_NEW_OBJECTS = 50_000
"""The garbage collector runs when there are that many: a flow is many objects, few of them in circles."""


def _imported() -> Callable[..., None]:
    """Return what runs the controller: --help and a wrong option need neither os-ken nor gRPC."""
    gc.disable()  # or a sixth of the start goes into looking for garbage among classes
    try:
        from controller.process import run
    finally:
        gc.enable()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    return run


def _configuration(options: argparse.Namespace) -> Configuration:
    """Return the file's settings with those of the options in their place.

    Raises:
        ConfigError: a setting cannot be used.
    """
    if options.config is None:
        return configure("", "options", settings_of(options))
    return configure(read(options.config), str(options.config), settings_of(options))


def _check(arguments: list[str]) -> int:
    """Check a configuration file, with the files that it names."""
    made = argparse.ArgumentParser(
        prog="mstcp-controller check",
        description="Check a configuration file and the files that it names, without starting anything.",
    )
    made.add_argument("file", type=Path, metavar="FILE", help="the configuration, in TOML")
    options = made.parse_args(arguments)
    from controller.configuration.checking import check

    print(check(configure(read(options.file), str(options.file)), str(options.file)))
    return 0


def _token(arguments: list[str]) -> int:
    """Make a token, and print it with its entry for the configuration."""
    made = argparse.ArgumentParser(
        prog="mstcp-controller token",
        description="Make a token for a client, and print its entry for the configuration.",
    )
    made.add_argument(
        "name", metavar="NAME", help="name of the client; the flows that it requests belong to this name"
    )
    made.add_argument(
        "--role",
        choices=["read", "request", "administer"],
        default="request",
        help="what the client may do: read, request flows of its own, or administer (default request)",
    )
    options = made.parse_args(arguments)
    token = secrets.token_urlsafe(32)
    print(f"# For the client, which keeps it secret: {token}")
    print(f'[[tokens]]\nname = "{options.name}"\nrole = "{options.role}"\nsha256 = "{digest_of(token)}"')
    return 0


if __name__ == "__main__":
    sys.exit(main())
