"""`voxgate voices`: what a server can sound like, from `GET /v1/voices`."""

import argparse
import json
import os
import sys
from urllib.error import HTTPError
from urllib.parse import urlsplit, urlunsplit
from urllib.request import ProxyHandler, Request, build_opener

COLUMNS = ("id", "language", "engine", "tier", "sample_rate")
_TIMEOUT_SECONDS = 10.0


def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("voices", help="list the voices of a server")
    parser.add_argument("--url", default="http://127.0.0.1:8080", help="the server (default: %(default)s)")
    parser.add_argument("--key", default=os.environ.get("VOXGATE_KEY"), help="API key (default: $VOXGATE_KEY)")
    parser.add_argument("--json", action="store_true", help="as the server said it")
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    try:
        address = voices_url(args.url)
    except ValueError as wrong:
        return _complain(wrong, 2)
    try:
        answer = _get(address, args.key)
        voices = answer["voices"]
        table = [[str(voice.get(column, "")) for column in COLUMNS] for voice in voices]
    except HTTPError as refused:
        return _complain(f"{address} answered {refused.code} {refused.reason}", 1)
    except OSError as failed:
        return _complain(f"{address}: {getattr(failed, 'reason', failed)}", 1)
    except (ValueError, LookupError, TypeError, AttributeError):
        return _complain(f"{address} did not answer with a list of voices", 1)
    print(json.dumps(answer, indent=2, ensure_ascii=False) if args.json else _aligned([list(COLUMNS), *table]))
    return 0


def voices_url(url: str) -> str:
    """Raises `ValueError`."""
    parts = urlsplit(url)
    scheme = {"ws": "http", "wss": "https", "http": "http", "https": "https"}.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ValueError(f"not a ws://, wss://, http:// or https:// address: {url!r}")
    return urlunsplit((scheme, parts.netloc, "/v1/voices", "", ""))


def _get(address: str, key: str | None) -> dict:
    request = Request(address, headers={"Authorization": f"Bearer {key}"} if key else {})
    direct = build_opener(ProxyHandler({}))  # like the client: no proxies of the environment
    with direct.open(request, timeout=_TIMEOUT_SECONDS) as response:
        return json.load(response)


def _aligned(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def _complain(about: object, code: int) -> int:
    print(f"voxgate voices: {about}", file=sys.stderr)
    return code
