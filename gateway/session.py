"""The state of the protocol on one connection: contexts by name, and what each message does to them.

Pure: messages and instants in, messages out of `poll`. The connection (connection.py) feeds it and writes; life.py says
which message does what; context.py does it.
"""

from collections import OrderedDict, deque
from dataclasses import dataclass

import msgspec

from ..admission.answer import Outcome, Permit, Refusal
from ..codecs.packetizer import Packet, UnsupportedCodec, choose_format
from ..synth.engine import Voice
from ..synth.segment import Segment, Style, Urls
from ..synth.speech import Speech
from . import wire
from .context import NEVER, POLL_BYTES, Context, Failure, Settings
from .dialect import Call, Close, Dialect, Item, Reply
from .dialect import Event as Said
from .life import TABLE, Action, Event, State
from .native import NATIVE
from .record import Record
from .stage import Stage

MEMORY_S = 60.0  # how long after its end a context is still answered by `cancelled`
REMEMBERED = 4096  # ids that stay closed on one connection, and of these …
FLUSHES = 1000  # of one context that may wait for their audio; each is an answer that is kept for it
QUIET_S = 1.0  # a context that was given nothing for so long and has nothing to say is idle
RECORDED = 256  # … so many keep the record of what was said

_EVENTS: dict[type[wire.ContextMessage], Event] = {
    wire.Text: Event.TEXT,
    wire.Flush: Event.FLUSH,
    wire.End: Event.END,
    wire.Cancel: Event.CANCEL,
    wire.Played: Event.PLAYED,
}


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one connection."""

    contexts: int = 128  # live at once
    message_bytes: int = 131_072
    pending_chars: int = 20_000  # received and not yet spoken, per context
    context_chars: int = 500_000  # of one context in all its life
    messages_per_second: float = 2_000.0
    stall_s: float = 30.0  # a reader that takes nothing for so long is closed
    urls: Urls = "short"  # what is said of web and mail addresses
    context_idle_s: float = 600.0  # a context without text, audio or report for so long is ended


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a context gets that its `start` leaves out, from the connection's query parameters."""

    voice: str | None = None
    codec: str = "opus"
    sample_rate: wire.Rate = 24000
    speed: float = 1.0


class Session:
    """All contexts of one connection. After every call `poll` may have messages and `wake_at` may have changed."""

    def __init__(self, stage: Stage, limits: Limits, defaults: Defaults, now: float, dialect: Dialect = NATIVE) -> None:
        self.limits = limits
        self.defaults = defaults
        self.late_messages = 0  # for contexts that had ended; ignored
        self.draining = False
        self.slow_reader = False
        self.abusive = False
        self._stage = stage
        self._dialect = dialect
        self._live: dict[str, Context] = {}
        # What is known of an id that ended: its record, or when its start was refused, or no more than that it ended.
        self._closed: OrderedDict[str, Record | float | None] = OrderedDict()
        self._records: deque[Record] = deque()
        self._by_utterance: dict[int, Context] = {}
        self._utterances: dict[int, int] = {}  # context key -> the utterance `_by_utterance` has of it
        self._by_key: dict[int, Context] = {}
        self._streams: set[int] = set()
        self._next_stream = 1
        self._outbox: list[Item] = []
        self._allowance = limits.messages_per_second
        self._allowance_at = now
        self._refused_messages = 0
        self._say(
            wire.Ready(
                voices=tuple(
                    wire.VoiceInfo(voice.id, voice.language, voice.engine, voice.tier, voice.sample_rate)
                    for voice in stage.voices
                ),
                limits=wire.LimitsInfo(
                    contexts=limits.contexts,
                    message_bytes=limits.message_bytes,
                    pending_chars=limits.pending_chars,
                    context_chars=limits.context_chars,
                    messages_per_second=limits.messages_per_second,
                    engines=stage.engines(),
                ),
            )
        )

    def speaking(self, now: float) -> bool:
        """Whether some context has something to say, or had until just now: text may be on its way to it."""
        return any(context.busy or now - context.active_at < QUIET_S for context in self._live.values())

    @property
    def live(self) -> int:
        """Contexts that have not ended."""
        return len(self._live)

    @property
    def congested(self) -> bool:
        """Answers pile up unread: take no more messages until `poll` has emptied them."""
        return len(self._outbox) > 256

    # --- messages in -----------------------------------------------------------------------------------------------

    def receive(self, message: str, now: float) -> None:
        """One text message from the client."""
        if not self._within_rate(now):
            self._refuse("rate_limited", f"more than {self.limits.messages_per_second:g} messages a second", None)
            return
        try:
            for call in self._dialect.hear(message):
                self._take(call, now)
        except wire.BadMessage as problem:
            self._on_bad_message(problem, now)

    def receive_binary(self) -> None:
        """One binary message from the client: this protocol has none."""
        self._refuse("bad_message", "a client sends text messages only", None)

    def _take(self, call: Call, now: float) -> None:
        match call:
            case wire.Ping():
                self._say(wire.Pong())
            case wire.Start():
                self._on_start(call, now)
            case Reply(item=item):
                self._outbox.append(item)
            case _:
                self._on_context_message(call, now)

    def _on_bad_message(self, problem: wire.BadMessage, now: float) -> None:
        """A start that cannot be read ends its context like any other that cannot be met, unless that one is live."""
        if problem.start and problem.about is not None and problem.about not in self._live:
            self._refuse_start(problem.about, Failure("bad_message", str(problem)), now)
        else:
            self._refuse("bad_message", str(problem), problem.about)

    def _on_start(self, start: wire.Start, now: float) -> None:
        match TABLE[self._state(start.context), Event.START].action:
            case Action.OPEN:
                self._open(start, now)
            case Action.REFUSE_EXISTS:
                self._refuse("context_exists", f"context {start.context!r} is live", start.context)

    def _on_context_message(self, message: wire.ContextMessage, now: float) -> None:
        name = message.context
        transition = TABLE[self._state(name), _EVENTS[type(message)]]
        match transition.action, message:
            case ((Action.OPEN_AND_SPEAK | Action.SPEAK), wire.Text(text=text)):
                self._on_text(name, text, now)
            case Action.FLUSH, _:
                self._on_flush(self._live[name], now)
            case Action.END, _:
                context = self._live[name]
                context.state = transition.state
                context.end(now)
                self._index(context)
            case Action.CANCEL, wire.Cancel(played=played):
                self._cancel(self._live[name], played, now)
            case Action.CANCEL_AGAIN, wire.Cancel(played=played):
                self._cancel_again(name, played, now)
            case Action.REPORT, wire.Played(samples=samples):
                if name in self._live:
                    self._live[name].report(samples, now)
                elif isinstance(record := self._closed.get(name), Record):
                    record.report(samples)
            case Action.REFUSE_CLOSED, _:
                unseen = transition.state is State.UNSEEN
                reason = "was never opened" if unseen else "takes no more text after end"
                self._refuse("context_closed", f"context {name!r} {reason}", name)
            case Action.COUNT_LATE, _:
                self.late_messages += 1

    def _on_flush(self, context: Context, now: float) -> None:
        if context.flushes >= FLUSHES:
            self._refuse("rate_limited", f"{FLUSHES} flushes of this context wait to be answered", context.name)
            return
        context.flush(now)
        self._index(context)

    def _on_text(self, name: str, text: str, now: float) -> None:
        context = self._live.get(name)
        pending = len(text) + (context.pending_chars if context else 0)
        total = len(text) + (context.text_length if context else 0)
        if pending > self.limits.pending_chars:
            self._refuse("text_too_long", f"more than {self.limits.pending_chars} characters wait to be spoken", name)
        elif total > self.limits.context_chars:
            self._refuse("text_too_long", f"more than {self.limits.context_chars} characters in one context", name)
        elif (refusal := self._stage.take_characters(len(text))) is not None:
            self._refuse("rate_limited", refusal.message, name, refusal.retry_after)
        else:
            if context is None:
                context = self._open(wire.Start(name), now)
            if context is not None:
                context.feed(text, now)
                self._index(context)

    def _cancel(self, context: Context, played: int | None, now: float) -> None:
        if played is not None:
            context.report(played, now)
        self._say(self._retire(context, now, Outcome.CANCELLED).cancelled(now))

    def _cancel_again(self, name: str, played: int | None, now: float) -> None:
        record = self._closed[name]
        if isinstance(record, Record):
            if now - record.ended_at <= MEMORY_S:
                if played is not None:
                    record.report(played)
                self._say(record.cancelled(now))
        elif record is not None and now - record <= MEMORY_S:
            self._say(wire.Cancelled(name, sent=0, heard=0, text=""))

    # --- opening and ending ----------------------------------------------------------------------------------------

    def _open(self, start: wire.Start, now: float) -> Context | None:
        settings = self._settings(start)
        if isinstance(settings, Failure):
            self._refuse_start(start.context, settings, now)
            return None
        if (refusal := self._stage.open_context()) is not None:
            failure = Failure("rate_limited", refusal.message, refusal.retry_after)
            self._refuse_start(start.context, failure, now)
            return None
        context = Context(start.context, self._new_stream(), settings, self._stage, self._dialect, now)
        self._closed.pop(start.context, None)
        self._live[start.context] = context
        self._by_key[context.key] = context
        return context

    def _refuse_start(self, name: str, failure: Failure, now: float) -> None:
        self._remember(name, now)
        self._say_failure(name, failure)

    def _settings(self, start: wire.Start) -> Settings | Failure:
        if self.draining:
            return Failure("overloaded", "the server is shutting down", 5.0)
        if len(self._live) >= self.limits.contexts:
            return Failure("too_many_contexts", f"a connection may have {self.limits.contexts} live contexts")
        voices = {voice.id: voice for voice in self._stage.voices}
        if not voices:
            return Failure("voice_loading", "no voice is ready yet", 1.0)
        voice = self._voice(start, voices)
        if isinstance(voice, Failure):
            return voice
        codec = start.codec or self.defaults.codec
        if codec not in self._dialect.codecs:
            return Failure("unsupported_codec", f"codec {codec!r} is not one of {', '.join(self._dialect.codecs)}")
        try:
            form = choose_format(
                codec,
                start.sample_rate or self.defaults.sample_rate,
                start.frame_ms,
                voice.sample_rate,
                economy=self._stage.cheaper_opus(voice),
            )
        except UnsupportedCodec as problem:
            return Failure("unsupported_codec", str(problem))
        return Settings(
            voice=voice,
            style=Style(voice.id, start.speed or self.defaults.speed, start.seed, self.limits.urls),
            form=form,
            lead_s=start.lead_ms / 1000,
            timestamps=start.timestamps,
            max_wait_s=start.max_wait_ms / 1000,
        )

    def _voice(self, start: wire.Start, voices: dict[str, Voice]) -> Voice | Failure:
        """The voice that speaks; for one of the quality tier, its real-time stand-in where that is asked for or all
        there is time for. `started` tells which it is."""
        name = start.voice or self.defaults.voice
        if name is None:
            first = next(iter(voices.values()))
            voice = next((each for each in voices.values() if start.tier in ("auto", each.tier)), first)
        elif name in voices:
            voice = voices[name]
        else:
            return Failure("unknown_voice", f"no voice {name!r}; there are: {', '.join(voices)}")
        if voice.tier == "quality" and (start.tier == "realtime" or self._stage.realtime_only(voice)):
            alike = [each for each in voices.values() if (each.tier, each.language) == ("realtime", voice.language)]
            voice = alike[0] if alike else voice
        return voice

    def _new_stream(self) -> int:
        while self._next_stream in self._streams:
            self._next_stream = self._next_stream % 0xFFFF + 1
        stream = self._next_stream
        self._streams.add(stream)
        self._next_stream = stream % 0xFFFF + 1
        return stream

    def _retire(self, context: Context, now: float, outcome: Outcome) -> Record:
        """The one way out of `_live`: whatever the end was, nothing of the context is left running."""
        context.tell(self._outbox)
        record = context.close(now, outcome)
        self._stage.close_context()
        del self._live[context.name]
        del self._by_key[context.key]
        self._streams.discard(context.stream)
        self._index(context)
        self._remember(context.name, record)
        return record

    def _remember(self, name: str, record: Record | float) -> None:
        self._closed[name] = record
        self._closed.move_to_end(name)
        while len(self._closed) > REMEMBERED:
            self._closed.popitem(last=False)
        if isinstance(record, Record):
            self._records.append(record)
            self._forget(record.ended_at - MEMORY_S)

    def _forget(self, before: float) -> None:
        """Lets go of records too old to be asked for, and of the oldest beyond their bound."""
        while self._records and (self._records[0].ended_at < before or len(self._records) > RECORDED):
            record = self._records.popleft()
            if self._closed.get(record.name) is record:
                self._closed[record.name] = None

    def _fail(self, context: Context, failure: Failure, now: float) -> None:
        self._retire(context, now, Outcome.DROPPED)
        self._say_failure(context.name, failure)

    # --- the stage answers -----------------------------------------------------------------------------------------

    def admitted(self, key: int, answer: Permit | Refusal, now: float) -> None:
        """The answer that an utterance of this context waited for."""
        context = self._by_key[key]
        context.admitted(answer)
        self._index(context)

    def audio(self, utterance: int, segment: Segment, speech: Speech, now: float, *, last: bool = True) -> None:
        """Sound of one segment of an utterance, the `last` of it marked; thrown away when its context has ended."""
        context = self._by_utterance.get(utterance)
        if context is not None:
            context.audio(segment, speech, now, last=last)

    def failed(self, utterance: int, message: str, now: float) -> None:
        """The engine lost this utterance."""
        context = self._by_utterance.get(utterance)
        if context is not None:
            self._fail(context, Failure("engine_failed", message), now)

    def encoded(self, key: int, packets: list[Packet], length: int | None, now: float) -> None:
        """Packets of one context; with `length` the last ones. Thrown away when the context has ended."""
        context = self._by_key.get(key)
        if context is not None:
            context.encoded(packets, length, now)
            self._index(context)

    # --- messages out ----------------------------------------------------------------------------------------------

    def poll(self, now: float) -> list[Item]:
        """What may go onto the wire now, in order; about `POLL_BYTES` of it."""
        out, self._outbox = self._outbox, []
        size = 0
        for context in sorted(self._live.values(), key=lambda context: context.pacer.until):
            before = len(out)
            context.poll(now, out)
            self._index(context)
            size += sum(len(item) for item in out[before:] if not isinstance(item, Close))
            if context.failure:
                self._fail(context, context.failure, now)
            elif context.state is State.CLOSED:
                self._retire(context, now, Outcome.SERVED)
            elif now >= self._deadline(context):
                self._overdue(context, now)
            if size >= POLL_BYTES:
                break
        if self._dialect.later:
            later, self._dialect.later = self._dialect.later, []
            for call in later:
                self._take(call, now)
        out += self._outbox
        self._outbox = []
        return out

    def wake_at(self, now: float) -> float:
        """The next instant at which `poll` may have something to say or to end, if nothing happens before."""
        return min(
            (min(context.wake_at(now), self._deadline(context)) for context in self._live.values()), default=NEVER
        )

    def overdue(self, now: float) -> bool:
        """Whether some context has waited for its reader longer than the stall limit: for a socket that takes none."""
        return any(context.waiting and now >= self._deadline(context) for context in self._live.values())

    def close(self, now: float) -> None:
        """The connection is gone: everything live is cancelled, and nothing is remembered."""
        for context in list(self._live.values()):
            self._retire(context, now, Outcome.CANCELLED)
        self._closed.clear()
        self._records.clear()

    def end_all(self, failure: Failure, now: float) -> None:
        """Ends every live context with the same error, as at the deadline of a shutdown."""
        for context in list(self._live.values()):
            self._fail(context, failure, now)

    @property
    def audio_bytes_per_second(self) -> float:
        """Bytes that a second of audio of all live contexts takes on the wire, as measured so far."""
        return sum(
            context.bytes_sent * context.settings.form.sample_rate / context.sent_samples
            for context in self._live.values()
            if context.sent_samples
        )

    @property
    def longest_lead_s(self) -> float:
        """The longest lead a live context asked for."""
        return max((context.settings.lead_s for context in self._live.values()), default=0.0)

    def _deadline(self, context: Context) -> float:
        """When this context is ended for want of a reader, or for want of anything to do."""
        if context.waiting:
            return context.progress_at + self.limits.stall_s
        return max(context.active_at, context.progress_at, context.pacer.until) + self.limits.context_idle_s

    def _overdue(self, context: Context, now: float) -> None:
        if context.waiting:
            self.slow_reader = True
            self._fail(context, Failure("slow_reader", "no audio was taken for too long"), now)
        else:
            self._fail(context, Failure("idle", "nothing was said for too long"), now)

    def _state(self, name: str) -> State:
        if name in self._live:
            return self._live[name].state
        return State.CLOSED if name in self._closed else State.UNSEEN

    def _index(self, context: Context) -> None:
        """Keeps `_by_utterance` true after anything that may begin or end an utterance of `context`."""
        known = self._utterances.pop(context.key, None)
        if known is not None:
            del self._by_utterance[known]
        if context.utterance is not None:
            self._by_utterance[context.utterance] = context
            self._utterances[context.key] = context.utterance

    def _within_rate(self, now: float) -> bool:
        rate = self.limits.messages_per_second
        self._allowance = min(rate, self._allowance + (now - self._allowance_at) * rate)
        self._allowance_at = now
        if self._allowance < 1:
            self._refused_messages += 1
            self.abusive = self._refused_messages > rate
            return False
        self._allowance -= 1
        return True

    def _refuse(self, code: str, message: str, about: str | None, retry_after: float | None = None) -> None:
        about_it = msgspec.UNSET if about is None else about
        self._say(wire.Error(code, message, about=about_it, retry_after=_told(retry_after)))

    def _say_failure(self, name: str, failure: Failure) -> None:
        self._say(wire.Error(failure.code, failure.message, context=name, retry_after=_told(failure.retry_after)))

    def _say(self, event: Said) -> None:
        self._dialect.say(event, self._outbox)


def _told(seconds: float | None) -> float | msgspec.UnsetType:
    return msgspec.UNSET if seconds is None else seconds
