"""What can go wrong between a client and the server, as exceptions.

VoiceError
├── Unreachable           nothing answered, or not as a WebSocket
├── HandshakeRefused      the server answered, and said no before the upgrade
├── ConnectionClosed      the socket ended; every live context on it ended with it
├── ContextError          one context ended with an error; the socket lives on
└── ProtocolError         the server broke the rules of the wire
"""


class VoiceError(Exception):
    """Base of everything this package raises on behalf of the server or the network."""


class Unreachable(VoiceError):
    """No server, no WebSocket behind the address, or no answer within the open timeout."""


class HandshakeRefused(VoiceError):
    """An HTTP status instead of the upgrade: 401 and 403 for the key, 429 and 503 for a full house."""

    def __init__(self, status: int, retry_after: float | None, message: str) -> None:
        again = "" if retry_after is None else f" (try again in {retry_after:g} s)"
        super().__init__(f"refused with HTTP {status}: {message}{again}")
        self.status = status
        self.retry_after = retry_after  # seconds
        self.message = message


class ConnectionClosed(VoiceError):
    """`code` is the WebSocket close code; 1006 when the peer went away without one."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"connection closed with code {code}" + (f": {reason}" if reason else ""))
        self.code = code
        self.reason = reason


class ContextError(VoiceError):
    """The error that ended the context `context`; `code` is one of the wire's error codes."""

    def __init__(self, context: str, code: str, message: str, retry_after: float | None = None) -> None:
        again = "" if retry_after is None else f" (try again in {retry_after:g} s)"
        super().__init__(f"{code}: {message}{again}")
        self.context = context
        self.code = code
        self.message = message
        self.retry_after = retry_after  # seconds


class ProtocolError(VoiceError):
    """A gap in the audio, a malformed message: what arrived cannot be trusted."""
