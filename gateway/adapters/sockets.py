"""Which wire is spoken on which path, and the way in to it: origin, key, format, a place.

What is wrong is told in the handshake, where its clients know what to do: 401 and 400 they never try again, 429 and
503 (as many connections as there may be) they do.
"""

import asyncio
import re
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from ...admission.answer import Permit
from .. import errors
from ..accounts import Account
from ..connection import Receive, Send
from ..desk import Desk, reject
from ..dialect import Dialect
from ..handshake import Doorkeeper, Rejection
from ..protocol import EXTENSION, SocketProtocol
from .cartesia import Cartesia
from .deepgram import Deepgram
from .elevenlabs import Message, Multi, Single
from .keys import key_of, without_scheme
from .names import Resolve, VoiceNames
from .pieces import text_of
from .streaming import Streaming
from .window import BadRequest

Scope = MutableMapping[str, Any]
Make = Callable[[Mapping[str, str], Mapping[str, str], Resolve], Dialect]  # of the path, the query and the voices

KEY_WITHIN_S = 10.0  # of a client that brings its key in its first message
_PATHS: tuple[tuple[re.Pattern[str], Make], ...] = (
    (re.compile("/tts/websocket"), lambda path, query, resolve: Cartesia(resolve)),
    (
        re.compile("/v1/text-to-speech/(?P<voice>[^/]+)/multi-stream-input"),
        lambda path, query, resolve: Multi(path["voice"], query, resolve),
    ),
    (
        re.compile("/v1/text-to-speech/(?P<voice>[^/]+)/stream-input"),
        lambda path, query, resolve: Single(path["voice"], query, resolve),
    ),
    (re.compile("/v1/speak"), lambda path, query, resolve: Deepgram(query, resolve)),
    (re.compile("/v2/speak"), lambda path, query, resolve: Deepgram(query, resolve, flux=True)),
    (re.compile("/tts/ws"), lambda path, query, resolve: Streaming(resolve)),
)


def dialect_for(path: str, query: Mapping[str, str], resolve: Resolve) -> Dialect | None:
    """The wire that is spoken there, for one connection. Raises `BadRequest`."""
    for pattern, make in _PATHS:
        if match := pattern.fullmatch(path):
            return make(match.groupdict(), query, resolve)
    return None


class Sockets:
    """The WebSockets of all adapters."""

    def __init__(self, desk: Desk, doorkeeper: Doorkeeper, names: VoiceNames) -> None:
        self._desk = desk
        self._doorkeeper = doorkeeper
        self._names = names

    async def serve(self, scope: Scope, headers: dict[str, str], address: str, receive: Receive, send: Send) -> bool:
        """Serves a socket whose connect message has come; False for a path that is none of ours."""
        offered, socket = scope["subprotocols"], scope["extensions"][EXTENSION]
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        accept = {"type": "websocket.accept", "subprotocol": offered[0] if key_of({}, {}, offered) else None}
        try:
            dialect = dialect_for(scope["path"], query, self._resolve)
        except BadRequest as problem:
            await reject(Rejection(400, str(problem)), receive, send, socket)
            return True
        if dialect is None:
            return False
        key = key_of(headers, query, offered)
        account = self._doorkeeper.check_origin(headers) or self._doorkeeper.account_of(key, address)
        if (
            isinstance(account, Rejection)
            and account.status == 401
            and key is None
            and isinstance(dialect, Multi | Single)
        ):
            await send(accept)
            accept = None
            first = await _first_message(receive)
            account = self._doorkeeper.account_of(_key_in(first), address)
            receive = _again(first, receive)
        admitted = account if isinstance(account, Rejection) else (account, self._admit(account))
        match admitted:
            case Rejection() as rejection:
                await _refuse(rejection, accept, receive, send, socket)
            case (_, Rejection() as rejection):
                await _refuse(rejection, accept, receive, send, socket)
            case (account, permit):
                await self._desk.serve(permit, account, receive, send, socket, dialect=dialect, accept=accept)
        return True

    def _admit(self, account: Account) -> Permit | Rejection:
        """Not refused for load: pipecat takes three turns without a connection for the end of the service, but a turn
        that is refused on its socket is answered so that it goes on (pieces.py)."""
        return self._desk.admit(account, although_full=True)

    def _resolve(self, name: str | None) -> str | None:
        return self._names.resolve(name, self._desk.voices)


async def _first_message(receive: Receive) -> MutableMapping[str, Any]:
    try:
        return await asyncio.wait_for(receive(), KEY_WITHIN_S)
    except TimeoutError:
        return {"type": "websocket.receive", "text": ""}


def _key_in(message: MutableMapping[str, Any]) -> str | None:
    try:
        said = msgspec.json.decode(message.get("text") or "{}", type=Message)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return None
    return said.xi_api_key or without_scheme(said.authorization or "") or None


def _again(message: MutableMapping[str, Any], receive: Receive) -> Receive:
    """`receive`, with a message in front that has been read already."""
    read = [message]

    async def received() -> MutableMapping[str, Any]:
        return read.pop() if read else await receive()

    return received


async def _refuse(rejection: Rejection, accept: object, receive: Receive, send: Send, socket: SocketProtocol) -> None:
    """By the handshake, or, where that is over, by a message and the end."""
    if accept is not None:
        await reject(rejection, receive, send, socket)
        return
    code = errors.CLOSE_POLICY if rejection.status == 401 else errors.CLOSE_OVERLOADED
    error = "authentication_required" if rejection.status == 401 else "overloaded"
    await send(
        {"type": "websocket.send", "text": text_of({"message": rejection.message, "error": error, "code": code})}
    )
    await send({"type": "websocket.close", "code": code})
