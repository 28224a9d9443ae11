"""Where HTTP requests of the adapters come in: whose they are, a body of bounded size, a place to be served."""

from collections.abc import Callable

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from ...synth.engine import Voice
from ..accounts import Account
from ..desk import Desk
from ..handshake import Doorkeeper, Rejection
from .exchange import Fault, Speech, Utterance, refusal
from .keys import key_of
from .names import VoiceNames


class BadRequest(ValueError):
    """The request cannot be met as it is; the message says why."""


class Window:
    """What every adapter over HTTP shares."""

    def __init__(self, desk: Desk, doorkeeper: Doorkeeper, names: VoiceNames, body_bytes: int) -> None:
        self._desk = desk
        self._doorkeeper = doorkeeper
        self._names = names
        self._body_bytes = body_bytes

    async def speak(self, request: Request, fault: Fault, read: Callable[[bytes], Utterance]) -> ASGIApp:
        """The speech that `read` makes of the body, or the refusal. `read` raises `BadRequest`."""
        account = self.account_of(request)
        if isinstance(account, Rejection):
            return refusal(account.status, "unauthorized", account.message, None, fault)
        body = await self._body(request)
        if body is None:
            return refusal(413, "text_too_long", f"more than {self._body_bytes} bytes", None, fault)
        try:
            utterance = read(body)
        except (BadRequest, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
            return refusal(400, "bad_message", str(problem), None, fault)
        permit = self._desk.admit(account)
        if isinstance(permit, Rejection):
            code = "rate_limited" if permit.status == 429 else "overloaded"
            return refusal(permit.status, code, permit.message, permit.retry_after, fault)
        return Speech(self._desk, permit, account, utterance, fault)

    def account_of(self, request: Request) -> Account | Rejection:
        """Whose request this is; a page of somebody else's may ask no more than it may connect."""
        headers = dict(request.headers)
        if (refused := self._doorkeeper.check_origin(headers)) is not None:
            return refused
        key = key_of(headers, request.query_params)
        return self._doorkeeper.account_of(key, request.client.host if request.client else "")

    def guarded(self, request: Request, fault: Fault, content: object) -> Response:
        """`content` as JSON, for whom it is meant."""
        account = self.account_of(request)
        if isinstance(account, Rejection):
            return refusal(account.status, "unauthorized", account.message, None, fault)
        return Response(msgspec.json.encode(content), media_type="application/json")

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Those that speak here."""
        return self._desk.voices

    def voice(self, name: str | None) -> str | None:
        """The id of the voice a client means; None: the default."""
        return self._names.resolve(name, self.voices)

    @property
    def names(self) -> VoiceNames:
        return self._names

    async def _body(self, request: Request) -> bytes | None:
        """None, where it is longer than it may be."""
        parts: list[bytes] = []
        size = 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > self._body_bytes:
                    return None
                parts.append(part)
        except ClientDisconnect:
            return b""
        return b"".join(parts)
