"""Where connections are let in and served, whatever wire they speak over whatever carries it.

Asks admission for a place, keeps the list of who is there. Who may ask at all is the doorkeeper's to say
(handshake.py).
"""

import math
from collections.abc import Callable, MutableMapping
from typing import Any

from ..admission.answer import Outcome, Permit, Reason, Refusal
from ..admission.controller import Controller
from ..synth.engine import Voice
from .accounts import Account
from .connection import Connection, Receive, Send, Socket
from .dialect import Dialect
from .handshake import Rejection
from .house import House, clock
from .native import NATIVE
from .protocol import SocketProtocol
from .session import Defaults, Limits


class Desk:
    """One per process. `house` is there while the server runs."""

    def __init__(self, controller: Controller, limits: Limits, *, ready: Callable[[], bool]) -> None:
        self.house: House | None = None
        self.connections: set[Connection] = set()
        self._controller = controller
        self._limits = limits
        self._ready = ready

    def admit(self, account: Account, *, although_full: bool = False) -> Permit | Rejection:
        """A place for one more connection of this account; whoever serves it gives the permit back.

        `although_full`: for one that is better told of a full house when it has something to say.
        """
        if not self._ready():
            return Rejection(503, "the voices are still loading", 1.0)
        self._controller.quotas.declare(account.name, account.quota, clock())
        match self._controller.connect(account.name, clock(), although_full=although_full):
            case Refusal(reason=reason) as refusal:
                status = 429 if reason is Reason.QUOTA else 503
                return Rejection(status, refusal.message, refusal.retry_after)
            case Permit() as permit:
                return permit

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Those that speak here."""
        return self.house.synthesizer.voices if self.house else ()

    async def serve(
        self,
        permit: Permit,
        account: Account,
        receive: Receive,
        send: Send,
        socket: Socket,
        *,
        dialect: Dialect = NATIVE,
        defaults: Defaults | None = None,
        accept: MutableMapping[str, Any] | None = None,
    ) -> None:
        """Serves one connection until it closes, and gives its permit back. `accept` is sent first."""
        assert self.house is not None
        outcome = Outcome.DROPPED
        try:
            if accept is not None:
                await send(accept)
            defaults = defaults or Defaults()
            connection = Connection(self.house, account, self._limits, defaults, receive, send, socket, dialect)
            self.connections.add(connection)
            self.house.connections.add(connection)
            try:
                await connection.serve()
                outcome = Outcome.SERVED
            finally:
                self.connections.discard(connection)
                self.house.connections.discard(connection)
        finally:
            permit.release(outcome, clock())


async def reject(rejection: Rejection, receive: Receive, send: Send, socket: SocketProtocol) -> None:
    """The HTTP answer; holds on until the socket is gone, because uvicorn logs an error for one that returns before."""
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    if rejection.retry_after is not None:
        headers.append((b"retry-after", str(max(1, math.ceil(rejection.retry_after))).encode()))
    if rejection.status < 500 and rejection.message.isascii() and rejection.message.isprintable():
        headers.append((b"dg-error", rejection.message.encode()))  # where Deepgram's clients look for the reason
    if rejection.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "websocket.http.response.start", "status": rejection.status, "headers": headers})
    await send({"type": "websocket.http.response.body", "body": rejection.message.encode()})
    while not socket.disconnected:
        await receive()
