"""Every error and close code of the wire, in one table; the documentation of the codes is generated from it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """One row: the code, what it tells the client, and what the client does about it."""

    code: str
    meaning: str
    remedy: str


ERROR_CODES: tuple[ErrorCode, ...] = (
    ErrorCode("bad_message", "the message is not one of this protocol", "mend the message; nothing was changed by it"),
    ErrorCode("context_exists", "`start` for a context that is live", "choose another id, or cancel the live one"),
    ErrorCode("context_closed", "the context takes no more text", "start a context"),
    ErrorCode("unknown_voice", "no voice has this id", "choose one of `ready.voices`"),
    ErrorCode("unsupported_codec", "the codec is not available", "choose one the message names"),
    ErrorCode("unsupported_text", "nothing of the text could be spoken by this voice", "choose another voice"),
    ErrorCode("text_too_long", "the text exceeds a limit; the message was not taken", "send less, or later"),
    ErrorCode("too_many_contexts", "the connection has as many live contexts as it may", "end one first"),
    ErrorCode("overloaded", "the server has no room for more speech", "try again after `retry_after` seconds"),
    ErrorCode("rate_limited", "too many messages; this one was not taken", "send slower"),
    ErrorCode("unauthorized", "the key is missing or wrong", "send a valid key with the handshake"),
    ErrorCode("voice_loading", "the voice is not ready yet", "try again after `retry_after` seconds"),
    ErrorCode("engine_failed", "the engine failed while speaking this context", "start the context again"),
    ErrorCode("slow_reader", "the client stopped taking its audio", "read faster; the connection is closed"),
    ErrorCode("idle", "the context was idle for too long", "start the context again"),
    ErrorCode("internal", "the server failed; the fault is ours", "try again, and report it"),
)

NAMES = frozenset(row.code for row in ERROR_CODES)

CLOSE_NORMAL = 1000
CLOSE_GOING_AWAY = 1001
CLOSE_POLICY = 1008
CLOSE_INTERNAL = 1011
CLOSE_OVERLOADED = 1013
CLOSE_SLOW_READER = 4408

CLOSE_CODES: tuple[tuple[int, str], ...] = (
    (CLOSE_NORMAL, "closed as asked"),
    (CLOSE_GOING_AWAY, "the server is shutting down"),
    (1007, "a text message was not UTF-8"),
    (CLOSE_POLICY, "a rule was broken again and again"),
    (1009, "a message was too big"),
    (CLOSE_INTERNAL, "the server failed"),
    (CLOSE_OVERLOADED, "the server is full"),
    (CLOSE_SLOW_READER, "the client did not take its audio"),
)
