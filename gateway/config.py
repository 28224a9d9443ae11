"""The settings of a server: where they come from, which win, and what they may be.

A TOML file, overridden by `VOXGATE_*` variables, overridden by flags. An unknown name or a value out of range is
refused at start-up, by name. The fields of `Config` are the only list of settings: all else follows it.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ..synth.registry import BUNDLED, DEFAULT, FACTORY

PREFIX = "VOXGATE_"

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class ConfigError(ValueError):
    """A setting is unknown or out of range; the message names it and what is valid."""


class EngineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One of the engines a server runs. Whatever is left out is the engine's own to decide."""

    factory: Annotated[
        str, Meta(pattern=rf"^({FACTORY.pattern})?$", description="module:callable that makes it; bundled ones have it")
    ] = ""
    device: Annotated[
        str,
        Meta(pattern=r"^((GPU|MIG)-[\w/-]+)?$", description="UUID of its GPU, as nvidia-smi -L says"),
    ] = ""
    workers: Annotated[
        int, Meta(ge=0, le=1024, description="its processes; 0: one where it has a device, else as `workers` says")
    ] = 0
    slots: Annotated[int, Meta(ge=0, le=4096, description="rows of a stepwise engine's batch; 0: its default")] = 0
    options: Annotated[dict[str, Any], Meta(description="for its factory")] = {}


Engines = Annotated[dict[Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9_-]{0,31}$")], EngineConfig], Meta(min_length=1)]


class Config(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every setting of `voxgate serve`."""

    host: Annotated[str, Meta(description="address to listen on")] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one")] = 8080
    tls_port: Annotated[
        int, Meta(ge=0, le=65535, description="port with TLS besides, for clients that insist on it; 0: none")
    ] = 0
    tls_certificate: Annotated[str, Meta(description="file of its certificate; none: one is made and kept")] = ""
    tls_key: Annotated[str, Meta(description="file of the certificate's key, where that is not in the same file")] = ""
    wyoming_port: Annotated[
        int, Meta(ge=0, le=65535, description="port for Wyoming (Home Assistant), which knows no keys; 0: none")
    ] = 0
    gateways: Annotated[int, Meta(ge=1, le=256, description="gateway processes that share the port")] = 1
    workers: Annotated[
        int,
        Meta(ge=0, description="engine worker processes, all together, beside as many express ones; 0: one per core"),
    ] = 0
    engines: Annotated[
        Engines, Meta(description="what speaks, side by side, the default first: see docs/engines.md")
    ] = msgspec.field(default_factory=lambda: {DEFAULT: EngineConfig()})
    keys: Annotated[tuple[str, ...], Meta(description="keys that clients must have one of; none: open to all")] = ()
    accounts: Annotated[str, Meta(description="file of named keys, each with its own quota")] = ""
    key_connections: Annotated[int, Meta(ge=0, description="connections of one key; 0: any number")] = 0
    key_contexts: Annotated[int, Meta(ge=0, description="live contexts of one key; 0: any number")] = 0
    key_utterances: Annotated[int, Meta(ge=0, description="utterances of one key spoken at once; 0: any number")] = 0
    key_characters_per_minute: Annotated[int, Meta(ge=0, description="text of one key; 0: any amount")] = 0
    address_connections: Annotated[int, Meta(ge=0, description="connections of one address without key; 0: any")] = 0
    address_contexts: Annotated[int, Meta(ge=0, description="live contexts of one address without key; 0: any")] = 0
    address_utterances: Annotated[
        int, Meta(ge=0, description="utterances of one address without key spoken at once; 0: any")
    ] = 0
    address_characters_per_minute: Annotated[
        int, Meta(ge=0, description="text of one address without key; 0: any amount")
    ] = 0
    origins: Annotated[
        tuple[str, ...], Meta(description="origins of pages that may connect besides our own; * for any")
    ] = ()
    max_connections: Annotated[Count, Meta(description="connections at once")] = 4096
    max_contexts: Annotated[Count, Meta(description="live contexts of one connection")] = 128
    max_utterances: Annotated[
        int, Meta(ge=0, description="utterances spoken at once, all connections together; 0: what the machine carries")
    ] = 0
    min_utterances: Annotated[Count, Meta(description="what the adaptive limit never goes below")] = 10
    max_waiting: Annotated[int, Meta(ge=0, description="newcomers that may wait for a permit, for each engine")] = 256
    first_audio_target_s: Annotated[
        Seconds, Meta(description="first-audio wait (p95) over which fewer are admitted and work is saved")
    ] = 0.15
    memory_degrade: Annotated[
        float, Meta(gt=0, le=1, description="GPU memory in use over which the batch of its engines is narrowed")
    ] = 0.8
    memory_recover: Annotated[float, Meta(gt=0, le=1, description="… and under which it is widened again")] = 0.75
    memory_open: Annotated[
        float, Meta(gt=0, le=1, description="GPU memory in use over which its engines take nothing new")
    ] = 0.9
    degrade_dwell_s: Annotated[
        Seconds, Meta(description="how long memory or waits are over their threshold before work is saved")
    ] = 1.0
    recover_dwell_s: Annotated[
        Seconds, Meta(description="how long they must be under the lower one before it is as it was")
    ] = 2.0
    open_dwell_s: Annotated[
        Seconds, Meta(description="how long memory is over memory_open before an engine takes nothing new")
    ] = 0.2
    probe_after_s: Annotated[
        float, Meta(gt=0, le=60, description="after how long a shut engine is tried again; doubled by each failure")
    ] = 2.0
    engine_failures: Annotated[Count, Meta(description="failures in 10 s after which an engine takes nothing new")] = 5
    max_queued_segments: Annotated[Count, Meta(description="segments that may wait for an engine")] = 4000
    max_message_bytes: Annotated[int, Meta(ge=256, description="size of one client message")] = 131_072
    max_pending_chars: Annotated[Count, Meta(description="text of a context received and not yet spoken")] = 20_000
    max_context_chars: Annotated[Count, Meta(description="text of a context in all its life")] = 500_000
    max_messages_per_second: Annotated[float, Meta(ge=1, description="messages of one connection")] = 2000.0
    cache_bytes: Annotated[int, Meta(ge=0, description="speech that each gateway process keeps in memory; 0: none")] = (
        67_108_864
    )
    phrases: Annotated[str, Meta(description="file of phrases that are spoken at the start and kept")] = ""
    lexicon: Annotated[str, Meta(description="file of words and how to pronounce them, read again when it changes")] = (
        ""
    )
    voice_names: Annotated[
        tuple[str, ...],
        Meta(description="voices by the names that clients of other services use, each as name=voice"),
    ] = ()
    urls: Annotated[
        str, Meta(pattern="^(short|drop|spell)$", description="web and mail addresses: short, drop or spell")
    ] = "short"
    redis_url: Annotated[str, Meta(description="Redis that keeps speech for all gateways, redis://HOST:PORT/DB")] = ""
    redis_budget_s: Annotated[Seconds, Meta(description="how long a segment may wait for Redis")] = 0.005
    redis_ttl_s: Annotated[Seconds, Meta(description="how long Redis keeps speech")] = 86_400.0
    stall_s: Annotated[Seconds, Meta(description="a reader that takes nothing for so long is closed")] = 30.0
    context_idle_s: Annotated[Seconds, Meta(description="a context without anything to do is ended after this")] = 600.0
    drain_s: Annotated[float, Meta(ge=0, description="how long a shutdown lets speech finish")] = 15.0
    log_level: Annotated[
        str, Meta(pattern="^(debug|info|warning|error)$", description="debug, info, warning or error")
    ] = "info"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings, and for each where its value came from."""

    config: Config
    sources: dict[str, str]


def load(file: Path | None, environment: Mapping[str, str], flags: Mapping[str, Any]) -> Loaded:
    """`flags` hold only what was given. Raises `ConfigError`."""
    values: dict[str, Any] = {}
    sources = dict.fromkeys(Config.__struct_fields__, "default")
    for source, layer in (
        (str(file), _from_file(file)),
        ("environment", _from_environment(environment)),
        ("flag", flags),
    ):
        for name, value in layer.items():
            if name not in sources:
                raise ConfigError(f"{source}: no setting {name!r}; there are: {', '.join(sorted(sources))}")
            values[name] = _convert(source, name, value)
            sources[name] = source
    config = Config(**values)
    for name, engine in config.engines.items():
        _check_engine(sources["engines"], name, engine)
    return Loaded(config, sources)


def settings() -> tuple[msgspec.inspect.Field, ...]:
    """Every setting with its type, its default and what it is for."""
    described = msgspec.inspect.type_info(Config)
    assert isinstance(described, msgspec.inspect.StructType)
    return described.fields


def default_of(field: msgspec.inspect.Field) -> Any:
    """The default of a setting, as a file would say it."""
    return msgspec.to_builtins(field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory())


def describe(loaded: Loaded) -> str:
    """The settings as TOML, each with where it came from; keys and passwords are not shown."""
    lines: list[str] = []
    for name in Config.__struct_fields__:
        value = getattr(loaded.config, name)
        if name == "keys":
            value = ["…" for _ in value]
        elif name == "redis_url":
            value = re.sub(r"(?<=://).*(?=@)|(?<=password=)[^&]*", "…", value)
        shown = _as_toml(msgspec.to_builtins(value))
        lines.append(f"{name} = {shown}  # {loaded.sources[name]}")
    return "\n".join(lines)


def default_file() -> Path | None:
    """`voxgate.toml` of the working directory, if there is one."""
    file = Path("voxgate.toml")
    return file if file.is_file() else None


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise ConfigError(f"{file}: {problem.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ConfigError(f"{file}: {problem}") from None


def _check_engine(source: str, name: str, engine: EngineConfig) -> None:
    """Raises `ConfigError` for what no engine of this name can be."""
    bundled = BUNDLED.get(name)
    if bundled is None and not engine.factory:
        raise ConfigError(
            f"{source}: engines: no engine {name!r} comes with voxgate (there are: {', '.join(sorted(BUNDLED))}); "
            f'one of your own needs factory = "module:callable"'
        )
    if bundled is not None and not engine.factory:
        for option in ("device", "slots", "options"):
            if getattr(engine, option) and option not in bundled.takes:
                raise ConfigError(f"{source}: engines: {name} has no use for {option}")


def _as_toml(value: Any) -> str:
    """JSON is TOML, but for tables."""
    if isinstance(value, dict):
        items = [f"{_toml_key(key)} = {_as_toml(each)}" for key, each in value.items()]
        return f"{{ {', '.join(items)} }}" if items else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return msgspec.json.encode(value).decode()


def _toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else msgspec.json.encode(key).decode()


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    names = {PREFIX + name.upper(): name for name in Config.__struct_fields__}
    # VOXGATE_URL and VOXGATE_KEY belong to the client commands; anything else with our prefix is a misspelt setting.
    foreign = {"VOXGATE_CONFIG", "VOXGATE_URL", "VOXGATE_KEY"}
    found: dict[str, Any] = {}
    for variable, value in environment.items():
        if variable in names:
            found[names[variable]] = value
        elif variable.startswith(PREFIX) and variable not in foreign:
            raise ConfigError(f"environment: no setting {variable}; there are: {', '.join(sorted(names))}")
    return found


def _convert(source: str, name: str, value: Any) -> Any:
    field = next(field for field in msgspec.structs.fields(Config) if field.name == name)
    if isinstance(value, str) and name == "engines":
        value = _engines_of(source, value)
    elif isinstance(value, str) and field.default == ():
        value = [part.strip() for part in value.split(",") if part.strip()]
    try:
        return msgspec.convert(value, field.type, strict=not isinstance(value, str))
    except msgspec.ValidationError as problem:
        raise ConfigError(f"{source}: {name} = {value!r}: {problem}") from None


def _engines_of(source: str, text: str) -> Any:
    """`engines` as a flag or variable: `NAME,NAME=module:callable`, or a JSON object as in the file."""
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as problem:
            raise ConfigError(f"{source}: engines: {problem}") from None
    named = (part.strip().partition("=") for part in text.split(",") if part.strip())
    return {name.strip(): {"factory": factory.strip()} for name, _, factory in named}
