"""The sockets a server listens on: the one everybody knows, and beside it, where they are asked for, one with TLS and
one for Wyoming.

A certificate of its own is made once and kept, so that a client that has been told to trust it still does after a
restart.
"""

import os
import socket
import ssl
import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from .config import Config, ConfigError

SEND_BUFFER_BYTES = 65_536  # with the default the kernel swallows minutes of Opus before a slow reader is noticed
BACKLOG = 1024
CERTIFICATE_DAYS = 3650


@dataclass(frozen=True, slots=True)
class Listeners:
    """Bound, not yet accepting; none of the last two where they were not asked for."""

    plain: socket.socket
    tls: tuple[socket.socket, ssl.SSLContext] | None
    wyoming: socket.socket | None


def open_all(config: Config, *, shared: bool = False) -> Listeners:
    """`shared`: other gateways take the same ports. Raises `OSError`, and `ConfigError` for a bad certificate."""
    context = _tls_context(config) if config.tls_port else None
    return Listeners(
        bind(config.host, config.port, shared=shared),
        (bind(config.host, config.tls_port, shared=shared), context) if context else None,
        bind(config.host, config.wyoming_port, shared=shared) if config.wyoming_port else None,
    )


def bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket of ours on that port. Raises `OSError` that names it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        listener.bind((host, port))
        listener.setblocking(False)
    except OSError as problem:
        listener.close()
        problem.filename = f"{host}:{port}"
        raise
    return listener


def told_of(config: Config) -> list[str]:
    """What to tell whoever started the server, the plain port first; `config` has the real ones."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    told = [f"voxgate listening on http://{host}:{config.port}"]
    if config.tls_port:
        told.append(f"voxgate listening on https://{host}:{config.tls_port} (certificate {config.tls_certificate})")
    if config.wyoming_port:
        told.append(f"voxgate listening on tcp://{host}:{config.wyoming_port} (Wyoming)")
    return told


def with_certificate(config: Config) -> Config:
    """The settings with a certificate, made where there is none and TLS is wanted. Raises `ConfigError`."""
    if not config.tls_port or config.tls_certificate:
        return config
    folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "voxgate"
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    if not (certificate.is_file() and key.is_file()):
        _make_certificate(certificate, key, config.host)
    return msgspec.structs.replace(config, tls_certificate=str(certificate), tls_key=str(key))


def _make_certificate(certificate: Path, key: Path, host: str) -> None:
    numeric = host.replace(".", "").isdecimal() or ":" in host
    names = f"DNS:localhost,IP:127.0.0.1,IP:::1,{'IP' if numeric else 'DNS'}:{host}"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-days", str(CERTIFICATE_DAYS), "-subj", "/CN=voxgate", "-addext", f"subjectAltName={names}"]
    try:
        certificate.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        subprocess.run([*command, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    except FileNotFoundError:
        raise ConfigError("tls_certificate: none is set, and making one needs the program openssl") from None
    except (OSError, subprocess.CalledProcessError) as problem:
        raise ConfigError(f"tls_certificate: none is set, and none could be made: {problem}") from None


def _tls_context(config: Config) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(config.tls_certificate, config.tls_key or None)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigError(f"tls_certificate {config.tls_certificate}, tls_key {config.tls_key}: {problem}") from None
    return context
