"""The public Python client of the wire `voxgate.v1` (asyncio). Imports nothing of the server.

async with connect("ws://127.0.0.1:8080") as connection:
    context = await connection.start(voice="heart", codec="pcm_s16le")
    await context.send("Hello, how can I help?")
    await context.end()
    async for event in context:
        match event:
            case Audio(payload=payload): ...
"""

from .connection import Connection, connect
from .context import Context
from .errors import ConnectionClosed, ContextError, HandshakeRefused, ProtocolError, Unreachable, VoiceError
from .messages import (
    Audio,
    Cancelled,
    Done,
    Error,
    Event,
    Flushed,
    Ready,
    Started,
    TextWarning,
    VoiceInfo,
    Word,
    Words,
)
from .playout import PlayoutClock

__all__ = [
    "Audio",
    "Cancelled",
    "Connection",
    "ConnectionClosed",
    "Context",
    "ContextError",
    "Done",
    "Error",
    "Event",
    "Flushed",
    "HandshakeRefused",
    "PlayoutClock",
    "ProtocolError",
    "Ready",
    "Started",
    "TextWarning",
    "Unreachable",
    "VoiceError",
    "VoiceInfo",
    "Word",
    "Words",
    "connect",
]
