"""`voxgate serve`: the gateway, from its settings."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from ..config import Config, ConfigError, default_file, default_of, describe, load, settings


def register(commands: Any) -> None:
    """Adds the command; every setting is a flag."""
    parser = commands.add_parser("serve", help="run the gateway", description="Run the gateway.")
    parser.add_argument("--config", type=Path, metavar="FILE", help="settings as TOML (default: ./voxgate.toml)")
    parser.add_argument("--print-config", action="store_true", help="show every setting and its source, then exit")
    for field in settings():
        extra = getattr(field.type, "extra_json_schema", None) or {}
        parser.add_argument(
            "--" + field.name.replace("_", "-"),
            default=argparse.SUPPRESS,
            metavar="VALUE",
            help=f"{extra.get('description', '')} (default: {_shown(default_of(field))})".replace("%", "%%"),
        )
    parser.set_defaults(func=run)


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 2 for a wrong setting."""
    flags = {name: value for name, value in vars(arguments).items() if name in Config.__struct_fields__}
    file = arguments.config or os.environ.get("VOXGATE_CONFIG")
    try:
        loaded = load(Path(file) if file else default_file(), os.environ, flags)
    except ConfigError as problem:
        print(f"voxgate: {problem}", file=sys.stderr)
        return 2
    if arguments.print_config:
        print(describe(loaded))
        return 0
    from ..server import serve

    try:
        return serve(loaded.config)
    except ConfigError as problem:
        print(f"voxgate: {problem}", file=sys.stderr)
        return 2


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(value)
    return "none" if value in ((), [], "") else str(value)
