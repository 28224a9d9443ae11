"""The `voxgate` command. Each subcommand is a module with `register(subparsers)`; it is imported when it is parsed."""

import argparse
from collections.abc import Sequence

from ... import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns its exit status. Usage errors exit with 2."""
    from . import bench, engine, loadtest, say, serve, voices

    parser = argparse.ArgumentParser(prog="voxgate", description="A self-hosted real-time voice gateway.")
    parser.add_argument("--version", action="version", version=f"voxgate {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (serve, say, voices, bench, loadtest, engine):
        command.register(commands)
    arguments = parser.parse_args(argv)
    return arguments.func(arguments)
