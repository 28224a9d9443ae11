"""The bundled voice: hibari, an English text-to-speech model that runs some 200 times faster than real time on a core.

Owns phonemes, the onnxruntime session, and how a continuation is cut out of its sentence. Knows neither processes nor
schedules. hibari is used by its parts (G2P, network, DSP): its front door gives no phoneme durations, and renders
silence that the joins throw away.

A continuation (`before` CLAUSE or FORCED, with a `lead_in`) is run through the network together with the last words of
its lead-in, and only what follows the seam is rendered. Against the same words in the sentence spoken whole, over 60
cuts, the first eight phonemes are off by 2.1 semitones and 3.5 dB of mel when spoken alone, by 0.8 and 1.7 after five
words, by 0.7 and 1.4 after the whole lead-in. Eight words cost hardly more than five (a cut sentence of 14 words: 1.13
times hibari's own CPU for it whole, both), and the pause measured with them is the whole sentence's: of 549 cuts that
the segmenter makes, none pauses for longer than 1.21 times the whole sentence, none for more than 240 ms.
"""

import hashlib
import json
import os
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np
import onnxruntime as ort
from hibari import dsp
from hibari.g2p import G2P
from hibari.g2p.oov import OOV
from hibari.tts import ASSETS
from numpy.typing import NDArray

from .. import joins
from ..engine import EngineInfo, Setup, Voice
from ..joins import Signal, Silence
from ..loudness import gain_for, level
from ..segment import Boundary, Segment, Style
from ..speech import Speech
from ..text.normalize.normalizer import normalize
from ..text.normalize.spoken import Spoken
from .alignment import Said, align
from .onnx_graph import with_outputs
from .pronunciation import PAUSES, SILENT_PHONEMES, Phrase, Pronouncer
from .waveform import Frames, Noise, noise_table, stretch, waveform

HIBARI_VERSION = "0.2.1"  # the tensors named below are inside this very model file
HEAD = "/head/Add_output_0"  # [1, F, 5 * 601]
F0 = "f0"  # [1, F], Hz
DURATIONS = "/Clip_output_0"  # [L], one per phoneme id, in units of 25 ms
REARRANGED = frozenset({"/Transpose_58_output_0", "lh"})  # the head turned and split, 5 % of the graph's time
FRAMES_PER_UNIT = 2
FRAME_S = dsp.HOP / dsp.SR  # 12.5 ms
SPEEDS = 0.25, 4.0
LANGUAGE = "en-US"
CONTEXT_WORDS = 8  # of the lead-in; see above
# By itself the voice has -26.06 LUFS with true peaks up to -2.0 dB (600 sentences, 3172 s, pyloudnorm 0.2.0).
GAIN = gain_for(-26.06)
UNKNOWN_WORDS = 4096  # names, mostly, of which the last are kept with how they are spoken: 0.4 ms each
REVISION = "5"  # of this file's part in the sound

# Where sound lies against durations, in frames at speed 1 (measured on 60 clauses at speeds 0.5 to 2): it begins
# 0 to 10 before the first phoneme does and ends 4 or more before the last one does.
ONSET_FRAMES = 10
# A forced alignment (pocketsphinx, 154 words) has words begin 80 ms before their phonemes at speed 1, 103 ms at 0.7:
# Kokoro, the teacher, takes 3 units off for the same reason. The last word before a pause ends 220-270 ms before its
# phonemes do, which hold part of the pause: it ends where its sound does.
AHEAD_FRAMES = 6
EDGE_FRAMES = 4  # the first and last frames rendered are not whole: window and reflection

WARM_UP = "The quick brown fox, as every typist knows, jumps over 12 lazy voxgates, | and all of it is spoken at once."


class _Noise:
    """Stretches of the noise table for one segment: what is taken depends on the seed and the text alone."""

    def __init__(self, table: Noise, seed: str) -> None:
        self._table = table
        self._number = int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest())

    def take(self, frames: int) -> Noise:
        self._number = self._number * 6364136223846793005 + 1442695040888963407 & 0xFFFF_FFFF_FFFF_FFFF
        return stretch(self._table, frames, self._number >> 16)


@dataclass(frozen=True, slots=True)
class _Frames:
    """What the network says of a phoneme string; instants are in frames."""

    head: Frames  # [F, 5 * 601]
    f0: NDArray[np.float32]  # Hz [F]
    edges: NDArray[np.int64]  # where each phoneme begins, and where the last one ends [L + 1]
    sound_end: int  # where the last phoneme that makes a sound ends
    speed: float

    known: tuple[int, ...]  # the offset in the string of each phoneme that the network knows [L]

    def render(self, begin: int, end: float, noise: _Noise) -> Signal:
        window = slice(begin, int(min(end, len(self.f0))))
        f0 = self.f0[window]
        return level(waveform(self.head[window], f0, noise.take(len(f0))), GAIN)

    def said(self, phrase: Phrase, shift: int, signal: Signal, origin: int) -> list[Said] | None:
        """When each part of `phrase` sounds in `signal`, which begins at the sample `origin` of the frames; the phrase
        begins at `shift` of the string that was run."""
        if phrase.parts is None:
            return None
        said: list[Said] = []
        origin += round(AHEAD_FRAMES * dsp.HOP / self.speed)
        for part in phrase.parts:
            first = bisect_left(self.known, shift + part.begin)
            stop = bisect_left(self.known, shift + part.end)
            while first < stop and phrase.phonemes[self.known[first] - shift] in SILENT_PHONEMES:
                first += 1
            while stop > first and phrase.phonemes[self.known[stop - 1] - shift] in SILENT_PHONEMES:
                stop -= 1
            if first < stop:
                begin, end = (max(int(self.edges[at]) * dsp.HOP - origin, 0) for at in (first, stop))
                if stop == len(self.known) or phrase.phonemes[self.known[stop] - shift] in PAUSES:
                    end = _sound_end(signal, begin, end)
                said.append(Said(begin, end, part.start, part.stop))
        return said

    def of(self, silence: Silence) -> float:
        """How many frames the most that `silence` keeps is."""
        return silence.at(self.speed).most / FRAME_S


@dataclass(frozen=True, slots=True)
class _Take:
    """A signal, and what is said in it when, as far as that is known."""

    signal: Signal
    said: list[Said] | None


class HibariEngine:
    """One single-threaded session; call it from one thread."""

    def __init__(self) -> None:
        self._session = _open_session()
        self._noise = noise_table()
        with open(os.path.join(ASSETS, "vocab.json"), encoding="utf-8") as file:
            self._vocabulary: dict[str, int] = json.load(file)
        self._pronouncer = Pronouncer(G2P(oov=lru_cache(UNKNOWN_WORDS)(OOV())), self._vocabulary)
        self.info = EngineInfo(
            name="hibari",
            revision=f"{HIBARI_VERSION}/{REVISION}",
            sample_rate=dsp.SR,
            voices=(Voice("heart", "en-US", "hibari", "realtime", dsp.SR),),
            max_slots=1,
            stepwise=False,
            deterministic=True,
        )

    def warm(self) -> None:
        first, rest = WARM_UP.split("|")
        style = Style(self.info.voices[0].id)
        self.synthesize(Segment(0, first, 0, len(first), Boundary.START, Boundary.CLAUSE), style)
        self.synthesize(Segment(1, rest, 0, len(rest), Boundary.CLAUSE, Boundary.END, first), style)

    def synthesize(self, segment: Segment, style: Style) -> Speech:
        """One segment; empty when nothing in its text has a pronunciation."""
        if all(style.voice != voice.id for voice in self.info.voices):
            raise ValueError(f"unknown voice {style.voice!r}")
        if not SPEEDS[0] <= style.speed <= SPEEDS[1]:
            raise ValueError(f"speed {style.speed} is outside {SPEEDS[0]}-{SPEEDS[1]}")
        # White space collapsed: how much of it surrounds a sentence depends on where it stands, its sound must not.
        noise = _Noise(self._noise, f"{style.seed} {' '.join(segment.text.split())}")
        speed, lead, tail = style.speed, joins.LEAD[segment.before], joins.TAIL[segment.after]
        spoken = normalize(segment.text, LANGUAGE, segment.marks, style.urls)
        phrases = self._pronouncer.phrases(spoken)
        if not phrases:
            return Speech(np.zeros(0, np.int16))
        tails = [*[joins.ALL] * (len(phrases) - 1), tail]
        if context := self._context(segment, style):
            head, lead = self._continue(context, phrases[0], segment.before, speed, tails[0], noise)
        else:
            head = self._speak(phrases[0], speed, lead, tails[0], noise)
        others = zip(phrases[1:], tails[1:], strict=True)
        takes = [head, *(self._speak(each, speed, joins.ALL, kept, noise) for each, kept in others)]
        lead = joins.with_pause(lead, segment.before, segment.pause_s, speed)
        trimmed = joins.trimmed(np.concatenate([take.signal for take in takes]), dsp.SR, lead, tail, speed)
        pcm = joins.to_int16(trimmed.signal)
        return Speech(pcm, _times(segment, spoken, takes, trimmed.shift, len(pcm)))

    # --- text ---------------------------------------------------------------------------------------------------

    def _context(self, segment: Segment, style: Style) -> str:
        """Phonemes of the last words before a continuation, empty when it is none."""
        if segment.before not in (Boundary.CLAUSE, Boundary.FORCED):
            return ""
        spoken = normalize(segment.lead_in, LANGUAGE, urls=style.urls).text
        words = Spoken(" ".join(spoken.split()[-CONTEXT_WORDS:]))
        return " ".join(phrase.phonemes for phrase in self._pronouncer.phrases(words))

    def _length(self, phonemes: str) -> int:
        return sum(p in self._vocabulary for p in phonemes)

    # --- sound --------------------------------------------------------------------------------------------------

    def _speak(self, phrase: Phrase, speed: float, lead: Silence, tail: Silence, noise: _Noise) -> _Take:
        """`phrase` alone, with no less silence around than `lead` and `tail` keep of the voice's own."""
        frames = self._run(phrase.phonemes, speed)
        begin = int(max(frames.edges[0] - ONSET_FRAMES / speed - frames.of(lead) - EDGE_FRAMES, 0))
        signal = frames.render(begin, frames.sound_end + frames.of(tail) + EDGE_FRAMES, noise)
        return _Take(signal, frames.said(phrase, 0, signal, begin * dsp.HOP))

    def _continue(
        self, context: str, phrase: Phrase, before: Boundary, speed: float, tail: Silence, noise: _Noise
    ) -> tuple[_Take, Silence]:
        """`phrase` as it sounds after `context`, from the pause between them on; and what to keep of that pause."""
        frames = self._run(f"{context} {phrase.phonemes}", speed)
        seam = int(frames.edges[self._length(context) + 1])
        horizon = ONSET_FRAMES + joins.CLAUSE_HORIZON_S / FRAME_S
        begin = max(int(seam - horizon / speed - EDGE_FRAMES), 0)
        signal = frames.render(begin, frames.sound_end + frames.of(tail) + EDGE_FRAMES, noise)
        onset_from = seam - begin - ONSET_FRAMES / speed
        pause = joins.pause_within(signal, dsp.SR, int(onset_from * dsp.HOP), (seam - begin) * dsp.HOP)
        whole_s = (pause.stop - pause.start) / dsp.SR * speed
        signal = signal[pause.start :]
        said = frames.said(phrase, len(context) + 1, signal, begin * dsp.HOP + pause.start)
        return _Take(signal, said), joins.continuation_lead(before, whole_s)

    def _run(self, phonemes: str, speed: float) -> _Frames:
        known = [(at, p) for at, p in enumerate(phonemes) if p in self._vocabulary]
        ids = [0, *(self._vocabulary[p] for _, p in known), 0]
        feed = {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)}
        head, f0, durations = (np.asarray(output) for output in self._session.run(None, feed))
        ends = FRAMES_PER_UNIT * np.cumsum(durations.astype(np.int64))
        last = max((n for n, (_, p) in enumerate(known) if p not in SILENT_PHONEMES), default=-1)
        at = tuple(at for at, _ in known)
        return _Frames(head[0], f0[0], edges=ends[:-1], sound_end=int(ends[last + 1]), speed=speed, known=at)


def _sound_end(signal: Signal, begin: int, end: int) -> int:
    """Where what sounds in `signal[begin:end]` ends; `end` where it is silent."""
    sound = joins.audible(signal[begin:end], dsp.SR)
    return end if sound is None else begin + sound[1]


def _times(segment: Segment, spoken: Spoken, takes: list[_Take], shift: int, length: int) -> bytes:
    """When the words of the segment sound in the `length` samples that were trimmed; `shift`: of samples by that."""
    said: list[Said] = []
    at = shift
    for take in takes:
        if take.said is None:
            return b""
        for each in take.said:
            begin, end = (min(max(instant + at, 0), length) for instant in (each.begin, each.end))
            said.append(Said(begin, end, each.start, each.stop))
        at += len(take.signal)
    return align(segment.text, spoken, said)


def make(setup: Setup) -> HibariEngine:
    """It has nothing to be set up."""
    return HibariEngine()


def _open_session() -> ort.InferenceSession:
    """The model with its head as it is computed, and with its durations."""
    if version("hibari-tts") != HIBARI_VERSION:
        raise RuntimeError(f"hibari-tts {HIBARI_VERSION} is needed, {version('hibari-tts')} is installed")
    with open(os.path.join(ASSETS, "hibari.onnx"), "rb") as file:
        model = with_outputs(file.read(), (HEAD, F0, DURATIONS), REARRANGED)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = False  # a plan per length: 10 MB more after 300 sentences, no time saved
    options.log_severity_level = 3
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
