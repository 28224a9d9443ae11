"""One stream of text becoming one stream of audio: segments out to the stage, packets back, messages onto the wire.

Pure: instants come in as `now`, work goes out through the stage (stage.py). Knows nothing of other contexts and nothing
of which message is allowed when (life.py, session.py).
"""

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..admission.answer import Outcome, Permit, Reason, Refusal, Waiting
from ..codecs.packetizer import Format, Packet
from ..synth.engine import Voice
from ..synth.segment import Segment, Style
from ..synth.speech import Speech
from ..synth.text.segmenter import Segmenter
from . import wire
from .dialect import Close, Dialect, Item, Spoken
from .dialect import Event as Told
from .life import TABLE, Event, State
from .pacer import Pacer
from .record import Record
from .stage import Part, Stage, Track
from .timeline import Timeline

IDLE_FLUSH_S = 0.3  # quiet after which text without a terminator is spoken up to its last word
IDLE_FLUSH_LEAD_S = 0.3  # … while the listener has less than this in hand
FIRST_PUSH_S = 0.06  # the first audio of an utterance is encoded in a bite, so that its packets leave before the rest
HIGH_MARK_S = 8.0  # audio generated and not taken, at which generation is held: a segment over the usual lead
LOW_MARK_S = 4.0
USUAL_LEAD_S = 2.0  # the lead synthesis aims at is meant for a listener who asked for this much
BITE_CHARS = 256  # what is cut into segments in one go …
SEGMENTS_AHEAD = 4  # … while fewer than these wait to be spoken
MESSAGE_BYTES = 16_384  # an audio message is closed when it holds this much
POLL_BYTES = 65_536  # what one poll hands to the socket, so that a cancel never queues behind more

REPEATED_CHARS = 12  # so much of a text may come again by chance

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a context was started with, defaults filled in."""

    voice: Voice
    style: Style
    form: Format
    lead_s: float
    timestamps: bool
    max_wait_s: float = 0.2  # for its first utterance to begin


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a context ends in an error."""

    code: str
    message: str
    retry_after: float | None = None


class Context:
    """A live context."""

    def __init__(self, name: str, stream: int, settings: Settings, stage: Stage, dialect: Dialect, now: float) -> None:
        self.name = name
        self.stream = stream
        self.settings = settings
        self.state = State.OPEN
        self.key = stage.new_id()
        self.utterance: int | None = None
        self.failure: Failure | None = None
        self.text: list[str] = []
        self.text_length = 0
        self.flushes = 0  # not answered yet
        self.active_at = now
        self.progress_at = now
        self.pacer = Pacer(settings.lead_s)
        self.sent_samples = 0
        self.bytes_sent = 0
        self.sequence = 0  # audio messages so far
        self._stage = stage
        self._dialect = dialect
        self._segmenter = Segmenter(settings.voice.scripts, settings.style.speed)
        self._timeline = Timeline(settings.voice.sample_rate)
        self._track: Track = stage.track(self.key, settings.form, settings.voice.sample_rate)
        self._permit: Permit | None = None
        self._unheard = False  # nothing of the utterance has been sent
        self._reached: dict[Part, float] = {}  # when what it begins with had this part of its way behind it
        self._awaiting: list[Segment] = []  # cut, while admission has not answered yet
        self._started = False
        self._finishing = False
        self._held = False
        self._unread: deque[tuple[str | Event, float]] = deque()  # received, not yet cut; and when
        self._told: list[Told] = []  # to be said at once, before anything of the queue
        self._told_to = 0.0  # seconds, the end of the sound whose text was told
        self._rest: NDArray[np.int16] | None = None  # of a first chunk, pushed when its first bite has been sent
        self._rest_is_last = True  # … nothing of its segment comes after it
        self._rest_behind = 0  # … in messages after this one
        self._spoken = 0  # segments handed to the stage
        self._encoded = 0  # of those, encoded whole
        self._pushes: deque[bool] = deque()  # pushes in the encoder; True: the last of its segment
        self._asked: deque[float] = deque()  # when each segment not yet spoken was handed over
        self._owed: deque[tuple[float, float]] = deque()  # (handed over at, ends at second) of those not sent whole
        self._marks: deque[tuple[int, Told]] = deque()  # messages that follow the n-th segment
        self._queue: deque[Packet | Told] = deque()
        self._queued_samples = 0
        self._ready_at = now  # since when the audio that is next has been there, at the latest
        self._dropped = False
        self._repeated = False  # a delta began with all of the text: told once
        self._idle_at = NEVER
        self._played: int | None = None  # what the listener last reported

    @property
    def pending_chars(self) -> int:
        """Code points received and not yet spoken."""
        return self.text_length - self._timeline.text_end

    @property
    def _all_encoded(self) -> bool:
        """Whether everything received has been cut, spoken and encoded, but for what the segmenter holds back."""
        return self._encoded == self._spoken and not self._unread

    @property
    def busy(self) -> bool:
        """Whether it is spoken, or has anything to be spoken or sent."""
        return self.utterance is not None or bool(self._unread or self._queue or self._awaiting)

    @property
    def source(self) -> str:
        """All of the text, as it was sent."""
        if len(self.text) > 1:
            self.text = ["".join(self.text)]
        return self.text[0] if self.text else ""

    @property
    def waiting(self) -> bool:
        """Whether there is something to send that has not been sent."""
        return bool(self._queue)

    # --- text in ---------------------------------------------------------------------------------------------------

    def feed(self, text: str, now: float) -> None:
        """More text."""
        self.active_at = now
        if len(text) > self.text_length >= REPEATED_CHARS and not self._repeated and text.startswith(self.source):
            self._repeated = True
            span = self.text_length, 2 * self.text_length
            self._told.append(wire.Warning(self.name, "repeated_text", span, "a delta repeats all the text before it"))
        if text:
            self.text.append(text)
        self.text_length += len(text)
        self._idle_at = now + IDLE_FLUSH_S
        self._unread += ((text[at : at + BITE_CHARS], now) for at in range(0, len(text), BITE_CHARS))
        self._read()

    def flush(self, now: float) -> None:
        """Speak what is buffered, and say `flushed` behind its audio."""
        self.active_at = now
        self.flushes += 1
        self._unread.append((Event.FLUSH, now))
        self._read()

    def end(self, now: float) -> None:
        """Speak what is buffered; the context is done when that is sent."""
        self.active_at = now
        self._unread.append((Event.END, now))
        self._read()

    def _read(self) -> None:
        """Cuts what was received into segments, a few ahead of those being spoken: more would only be in the way."""
        while self._unread and self._spoken - self._encoded < SEGMENTS_AHEAD and self.failure is None:
            item, received_at = self._unread.popleft()
            match item:
                case Event.FLUSH:
                    self._speak(self._segmenter.flush(), received_at)
                    if self.failure is None:
                        self._mark(wire.Flushed(self.name))
                case Event.END:
                    self._speak(self._segmenter.end(), received_at)
                    self._end_unspoken()
                case str():
                    self._speak(self._segmenter.push(item), received_at)
        self._finish_if_spoken()

    def _end_unspoken(self) -> None:
        """A text with nothing to speak is started and done, unless it was one that this voice cannot speak."""
        if self._spoken == 0 and self.failure is None:
            if self._dropped:
                self.failure = Failure("unsupported_text", "nothing of the text is in a script this voice can speak")
            else:
                self._say_started()

    def _speak(self, segments: list[Segment], received_at: float) -> None:
        for span in self._segmenter.take_dropped():
            self._dropped = True
            message = f"{self.settings.voice.id} cannot speak this script"
            self._told.append(wire.Warning(self.name, "unsupported_text", span, message))
        for cut in segments:
            segment = self._stage.pronounce(cut, self.settings.voice)
            self._spoken += 1
            self._asked.append(received_at)
            if self.utterance is not None:
                self._stage.speak(self.utterance, segment)
                continue
            self._awaiting.append(segment)
            if len(self._awaiting) == 1:
                answer = self._stage.admit(
                    self.key,
                    segment,
                    self.settings.voice,
                    self.settings.style,
                    newcomer=not self._started,
                    max_wait_s=self.settings.max_wait_s,
                )
                if not isinstance(answer, Waiting):
                    self.admitted(answer)
            if self.failure is not None:
                return

    def admitted(self, answer: Permit | Refusal) -> None:
        """Admission has answered: what was cut meanwhile is spoken, or the context ends."""
        match answer:
            case Refusal(reason=reason):
                code = "rate_limited" if reason is Reason.QUOTA else "overloaded"
                self.failure = Failure(code, answer.message, answer.retry_after)
                self._awaiting.clear()
            case Permit():
                self._begin(answer)
                assert self.utterance is not None
                awaiting, self._awaiting = self._awaiting, []
                for segment in awaiting:
                    self._stage.speak(self.utterance, segment)

    def _begin(self, permit: Permit) -> None:
        self._permit = permit
        self._unheard = True
        self._reached = {Part.ADMISSION: permit.given_at}
        self.utterance = self._stage.new_id()
        self._stage.open(self.utterance, self.settings.style, crowding=permit.crowding)
        self._say_started()

    def _say_started(self) -> None:
        if self._started:
            return
        self._started = True
        voice, form = self.settings.voice, self.settings.form
        self._told.append(
            wire.Started(
                context=self.name,
                stream=self.stream,
                voice=voice.id,
                tier=voice.tier,
                codec=form.codec,
                sample_rate=form.sample_rate,
                channels=form.channels,
                frame_samples=form.frame_samples,
                pre_skip=form.pre_skip,
            )
        )

    # --- audio back ------------------------------------------------------------------------------------------------

    def audio(self, segment: Segment, speech: Speech, now: float, *, last: bool = True) -> None:
        """Sound of one segment, in order and the `last` of it marked, at the voice's rate."""
        pcm = speech.pcm
        self._reached.setdefault(Part.SYNTHESIS, now)
        text_from = max(self._timeline.text_end, segment.start)
        words = self._timeline.extend(segment, speech, last=last)
        self._owed.append((self._asked.popleft() if last else self._asked[0], self._timeline.seconds))
        if self.settings.timestamps and (last or words):
            listed = tuple(
                (self.source[word.offset : word.offset + len(word.text)], word.start, word.end, word.offset)
                for word in words
            )
            estimated = any(word.estimated for word in words)
            begin, self._told_to = self._told_to, self._timeline.seconds
            text = self.source[text_from : self._timeline.text_end]
            self._queue.append(Spoken(self.name, begin, self._told_to, text, text_from, listed, estimated))
        self._push_rest()
        bite = int(FIRST_PUSH_S * self.settings.voice.sample_rate)
        if self.pacer.lead(now) <= 0 and not self._queued_samples and not self._pushes and len(pcm) > bite:
            self._push(pcm[:bite], last=False)
            self._rest, self._rest_is_last, self._rest_behind = pcm[bite:], last, self.sequence
        else:
            self._push(pcm, last=last)

    def encoded(self, packets: list[Packet], length: int | None, now: float) -> None:
        """The packets of one push; or, with the exact `length` of the context in samples, the last of all."""
        if not self._queue:
            self.progress_at = now
        if packets:
            self._reached.setdefault(Part.ENCODING, now)
            if not self._queued_samples:
                self._ready_at = now
        for packet in packets:
            self._queue.append(packet)
            self._queued_samples += packet.end - packet.start
        if length is not None:
            self._queue.append(wire.Done(self.name, length))
        elif self._pushes.popleft():
            self._encoded += 1
            while self._marks and self._marks[0][0] <= self._encoded:
                self._queue.append(self._marks.popleft()[1])
            self._read()
        elif not packets:
            self._push_rest()  # a resampler held back the whole bite
        self._cover(now)

    def _push(self, pcm: NDArray[np.int16], *, last: bool) -> None:
        self._pushes.append(last)
        self._track.push(pcm)

    def _push_rest(self) -> None:
        rest, self._rest = self._rest, None
        if rest is not None:
            self._push(rest, last=self._rest_is_last)

    def _mark(self, message: Told) -> None:
        if self._encoded == self._spoken:
            self._queue.append(message)
        else:
            self._marks.append((self._spoken, message))

    def _finish_if_spoken(self) -> None:
        if not self._all_encoded or self._finishing or self.failure:
            return
        if self.state is State.ENDING:
            self._finishing = True
            self._track.finish()

    def _cover(self, now: float) -> None:
        """Tells synthesis how long the listener is served. What one who asked for a longer lead has beyond the usual
        one counts for less: so it gets what it asked for, behind everyone who has less than the usual lead in hand."""
        if self.utterance is None:
            return
        lead, more = self.pacer.lead(now) + self._queued_s, self.settings.lead_s / USUAL_LEAD_S
        if lead > USUAL_LEAD_S and more > 1:
            lead = USUAL_LEAD_S + (lead - USUAL_LEAD_S) / more
        self._stage.cover(self.utterance, now + lead)
        if not self._held and self._queued_s > HIGH_MARK_S:
            self._held = True
            self._stage.hold(self.utterance)

    @property
    def _queued_s(self) -> float:
        return self._queued_samples / self.settings.form.sample_rate

    # --- messages out ----------------------------------------------------------------------------------------------

    def poll(self, now: float, out: list[Item]) -> None:
        """Appends what may go onto the wire now, about `POLL_BYTES` of audio at most."""
        if self.sequence > self._rest_behind:
            self._push_rest()
        if not self._queue:
            self._idle_flush(now)
        self.tell(out)
        if not self._queue:
            self._settle(now)  # what it ended with may have been silent
            return
        rate = self.settings.form.sample_rate
        batch: list[Packet] = []
        batch_bytes = total_bytes = 0
        batch_s = 0.0
        while self._queue and total_bytes < POLL_BYTES:
            item = self._queue[0]
            if isinstance(item, Packet):
                duration = (item.end - item.start) / rate
                if not self.pacer.may_send(now, duration, batch_s):
                    break
                batch.append(item)
                batch_s += duration
                batch_bytes += len(item.payload)
                total_bytes += len(item.payload)
            if batch and (batch_bytes >= MESSAGE_BYTES or not isinstance(item, Packet)):
                self._say_audio(batch, batch_s, now, out)
                batch, batch_bytes, batch_s = [], 0, 0.0
            if not isinstance(item, Packet):
                self._dialect.say(item, out)
                self.flushes -= isinstance(item, wire.Flushed)
                if isinstance(item, wire.Done):
                    self.state = TABLE[self.state, Event.SENT].state
            self._queue.popleft()
            self.progress_at = now
        if batch:
            self._say_audio(batch, batch_s, now, out)
        if self._queued_samples:
            self._ready_at = now
        self._settle(now)

    def tell(self, out: list[Item]) -> None:
        """Appends what is to be said at once, ahead of the audio."""
        for event in self._told:
            self._dialect.say(event, out)
        self._told.clear()

    def wake_at(self, now: float) -> float:
        """The next instant at which `poll` may have something to do that no call announces."""
        if self._queue:
            item = self._queue[0]
            if not isinstance(item, Packet):
                return now
            duration = (item.end - item.start) / self.settings.form.sample_rate
            return now if self.pacer.may_send(now, duration) else self.pacer.opens_at(duration)
        if self._told or (self._rest is not None and self.sequence > self._rest_behind):
            return now
        if self.state is State.OPEN and self._segmenter.pending and self._all_encoded:
            return max(self._idle_at, self.pacer.until - IDLE_FLUSH_LEAD_S)
        return NEVER

    def _say_audio(self, packets: list[Packet], seconds: float, now: float, out: list[Item]) -> None:
        self._observe(now)
        self.pacer.sent(now, seconds, self._owed_since())
        before = len(out)
        self._dialect.audio(self, packets, out)
        self.bytes_sent += sum(len(item) for item in out[before:] if not isinstance(item, Close))
        self.sequence += 1
        self._queued_samples -= packets[-1].end - packets[0].start
        self.sent_samples = packets[-1].end

    def _observe(self, now: float) -> None:
        """Before audio goes out: tells the stage how long a listener with nothing in hand has waited for it."""
        if self._permit is None or self.pacer.lead(now) > 0:
            self._unheard = False
            return
        owed_since = self._owed_since()
        if self._unheard:
            self._unheard = False
            held_up_s = now - self._reached.get(Part.ENCODING, now)
            self._stage.heard_first(self._permit, now - owed_since, held_up_s)
            at = owed_since
            for part, reached_at in (*self._reached.items(), (Part.SENDING, now)):
                self._stage.took(part, max(0.0, reached_at - at))
                at = max(at, reached_at)
        elif self._ready_at > (dry_at := max(self.pacer.until, owed_since)):  # else what was there was not taken
            self._stage.ran_dry(self._permit, now - dry_at)

    def _owed_since(self) -> float:
        while len(self._owed) > 1 and self._owed[0][1] <= self.pacer.sent_s:
            self._owed.popleft()
        return self._owed[0][0] if self._owed else NEVER

    def _settle(self, now: float) -> None:
        """After sending: lets generation go on, and ends the utterance when all of it has gone out."""
        if self.utterance is None:
            return
        if self._held and self._queued_s < LOW_MARK_S:
            self._held = False
            self._stage.release(self.utterance)
        if self.state is State.CLOSED or (not self._queue and self._all_encoded):
            self._end_utterance(Outcome.SERVED, now)

    def _idle_flush(self, now: float) -> None:
        due = self.state is State.OPEN and now >= self._idle_at and self._all_encoded
        if due and self.pacer.lead(now) < IDLE_FLUSH_LEAD_S:
            self._idle_at = NEVER
            self._speak(self._segmenter.idle(), now)

    def _end_utterance(self, outcome: Outcome, now: float) -> None:
        if self._awaiting:
            self._awaiting.clear()
            self._stage.withdraw(self.key)
        if self.utterance is None or self._permit is None:
            return
        self._stage.close_utterance(self.utterance)
        self._permit.release(outcome, now)
        self.utterance = self._permit = None
        self._held = False

    # --- the end ---------------------------------------------------------------------------------------------------

    def report(self, samples: int, now: float) -> None:
        """The listener says how much of the context it has heard."""
        self._played = min(samples, self.sent_samples)
        self.active_at = now
        self.pacer.played(now, self._played / self.settings.form.sample_rate)

    def close(self, now: float, outcome: Outcome) -> Record:
        """Stops, and is not used again; what may still be asked for is in the record.

        Heard is what the listener last reported, else what the play-out clock says: of one that was cut short, now.
        """
        self.state = State.CLOSED
        self._end_utterance(outcome, now)
        self._track.close()
        heard = self.pacer if self._played is None else self._played
        rate = self.settings.form.sample_rate
        record = Record(self.name, now, self.source, self.sent_samples, rate, self._timeline, heard)
        if outcome is not Outcome.SERVED:
            record.heard = record.heard_at(now)
        return record
