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
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version

import numpy as np
import onnxruntime as ort
from hibari import dsp
from hibari.g2p import G2P
from hibari.g2p.oov import OOV
from hibari.tts import ASSETS, Hibari
from numpy.typing import NDArray

from .. import joins
from ..engine import EngineInfo, Setup, Voice
from ..joins import Signal, Silence
from ..segment import Boundary, Segment, Style
from ..text.normalize.normalizer import normalize
from ..text.normalize.spoken import Spoken
from .ipa import from_ipa
from .onnx_graph import with_outputs
from .waveform import Frames, Noise, noise_table, stretch, waveform

HIBARI_VERSION = "0.2.1"  # the tensors named below are inside this very model file
HEAD = "/head/Add_output_0"  # [1, F, 5 * 601]
F0 = "f0"  # [1, F], Hz
DURATIONS = "/Clip_output_0"  # [L], one per phoneme id, in units of 25 ms
REARRANGED = frozenset({"/Transpose_58_output_0", "lh"})  # the head turned and split, 5 % of the graph's time
FRAMES_PER_UNIT = 2
FRAME_S = dsp.HOP / dsp.SR  # 12.5 ms
MAX_PHONEMES = 400  # of one run, as in hibari
SPEEDS = 0.25, 4.0
LANGUAGE = "en-US"
CONTEXT_WORDS = 8  # of the lead-in; see above
UNKNOWN_WORDS = 4096  # names, mostly, of which the last are kept with how they are spoken: 0.4 ms each
REVISION = "4"  # of this file's part in the sound

# Where sound lies against durations, in frames at speed 1 (measured on 60 clauses at speeds 0.5 to 2): it begins
# 0 to 10 before the first phoneme does and ends 4 or more before the last one does.
ONSET_FRAMES = 10
EDGE_FRAMES = 4  # the first and last frames rendered are not whole: window and reflection

SILENT_PHONEMES = frozenset(';:,.!?—…"()“” ')
# Square brackets reach the G2P as round ones, which it reads alike: `[word](/phonemes/)` would be executed.
PLAIN = str.maketrans({"[": "(", "]": ")", "’": "'"})
UNLINKED = frozenset("[]().!?…")  # would end the link, or the sentence inside of it
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
    starts: NDArray[np.int64]  # of each phoneme, the silence before the first one excluded [L]
    sound_end: int  # where the last phoneme that makes a sound ends
    speed: float

    def render(self, begin: float, end: float, noise: _Noise) -> Signal:
        window = slice(int(max(begin, 0)), int(min(end, len(self.f0))))
        f0 = self.f0[window]
        return waveform(self.head[window], f0, noise.take(len(f0)))

    def of(self, silence: Silence) -> float:
        """How many frames the most that `silence` keeps is."""
        return silence.at(self.speed).most / FRAME_S


class HibariEngine:
    """One single-threaded session; call it from one thread."""

    def __init__(self) -> None:
        self._session = _open_session()
        self._noise = noise_table()
        self._g2p = G2P(oov=lru_cache(UNKNOWN_WORDS)(OOV()))
        with open(os.path.join(ASSETS, "vocab.json"), encoding="utf-8") as file:
            self._vocabulary: dict[str, int] = json.load(file)
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

    def synthesize(self, segment: Segment, style: Style) -> NDArray[np.int16]:
        """PCM of one segment; empty when nothing in its text has a pronunciation."""
        if all(style.voice != voice.id for voice in self.info.voices):
            raise ValueError(f"unknown voice {style.voice!r}")
        if not SPEEDS[0] <= style.speed <= SPEEDS[1]:
            raise ValueError(f"speed {style.speed} is outside {SPEEDS[0]}-{SPEEDS[1]}")
        # White space collapsed: how much of it surrounds a sentence depends on where it stands, its sound must not.
        noise = _Noise(self._noise, f"{style.seed} {' '.join(segment.text.split())}")
        speed, lead, tail = style.speed, joins.LEAD[segment.before], joins.TAIL[segment.after]
        sentences = self._phonemize(normalize(segment.text, LANGUAGE, segment.marks, style.urls))
        if not sentences:
            return np.zeros(0, np.int16)
        tails = [*[joins.ALL] * (len(sentences) - 1), tail]
        if context := self._context(segment, style):
            head, lead = self._continue(context, sentences[0], segment.before, speed, tails[0], noise)
        else:
            head = self._speak(sentences[0], speed, lead, tails[0], noise)
        others = zip(sentences[1:], tails[1:], strict=True)
        signal = np.concatenate([head, *(self._speak(each, speed, joins.ALL, kept, noise) for each, kept in others)])
        lead = joins.with_pause(lead, segment.before, segment.pause_s, speed)
        return joins.to_int16(joins.trim(signal, dsp.SR, lead, tail, speed))

    # --- text ---------------------------------------------------------------------------------------------------

    def _phonemize(self, spoken: Spoken) -> list[str]:
        """Phoneme strings, one per sentence, none over `MAX_PHONEMES` and none that makes no sound."""
        plain = " ".join(self._with_pronunciations(spoken).split())
        strings = (self._pronounce(sentence) for sentence in Hibari.split_sentences(plain))
        return [piece for phonemes in strings for piece in _pieces(phonemes) if self._sounds(piece)]

    def _pronounce(self, sentence: str) -> str:
        """Phonemes; a word the G2P breaks on ("0th", a number of forty digits) is spelled out."""
        try:
            return self._g2p(sentence, normalize_text=False)
        except (ValueError, IndexError):
            words = sentence.split()
            if len(words) > 1:
                return " ".join(self._pronounce(word) for word in words)
            return " ".join(self._g2p(character, normalize_text=False) for character in sentence)

    def _with_pronunciations(self, spoken: Spoken) -> str:
        """The text as the G2P takes it: `[word](/phonemes/)` where a pronunciation is known, and nowhere else."""
        out, at = [], 0
        for each in spoken.pronounced:
            phonemes = from_ipa(each.ipa, self._vocabulary)
            word = spoken.text[each.start : each.end].strip()
            if each.start < at or not phonemes or UNLINKED & set(word):
                continue
            out += [spoken.text[at : each.start].translate(PLAIN), f"[{word}](/{phonemes}/)"]
            at = each.end
        return "".join([*out, spoken.text[at:].translate(PLAIN)])

    def _context(self, segment: Segment, style: Style) -> str:
        """Phonemes of the last words before a continuation, empty when it is none."""
        if segment.before not in (Boundary.CLAUSE, Boundary.FORCED):
            return ""
        spoken = normalize(segment.lead_in, LANGUAGE, urls=style.urls).text
        return " ".join(self._phonemize(Spoken(" ".join(spoken.split()[-CONTEXT_WORDS:]))))

    def _sounds(self, phonemes: str) -> bool:
        return any(p in self._vocabulary and p not in SILENT_PHONEMES for p in phonemes)

    def _length(self, phonemes: str) -> int:
        return sum(p in self._vocabulary for p in phonemes)

    # --- sound --------------------------------------------------------------------------------------------------

    def _speak(self, phonemes: str, speed: float, lead: Silence, tail: Silence, noise: _Noise) -> Signal:
        """`phonemes` alone, with no less silence around than `lead` and `tail` keep of the voice's own."""
        frames = self._run(phonemes, speed)
        begin = frames.starts[0] - ONSET_FRAMES / speed - frames.of(lead) - EDGE_FRAMES
        return frames.render(begin, frames.sound_end + frames.of(tail) + EDGE_FRAMES, noise)

    def _continue(
        self, context: str, phonemes: str, before: Boundary, speed: float, tail: Silence, noise: _Noise
    ) -> tuple[Signal, Silence]:
        """`phonemes` as they sound after `context`, from the pause between them on; and what to keep of that pause."""
        frames = self._run(f"{context} {phonemes}", speed)
        seam = int(frames.starts[self._length(context) + 1])
        horizon = ONSET_FRAMES + joins.CLAUSE_HORIZON_S / FRAME_S
        begin = max(int(seam - horizon / speed - EDGE_FRAMES), 0)
        signal = frames.render(begin, frames.sound_end + frames.of(tail) + EDGE_FRAMES, noise)
        onset_from = seam - begin - ONSET_FRAMES / speed
        pause = joins.pause_within(signal, dsp.SR, int(onset_from * dsp.HOP), (seam - begin) * dsp.HOP)
        whole_s = (pause.stop - pause.start) / dsp.SR * speed
        return signal[pause.start :], joins.continuation_lead(before, whole_s)

    def _run(self, phonemes: str, speed: float) -> _Frames:
        known = [p for p in phonemes if p in self._vocabulary]
        ids = [0, *(self._vocabulary[p] for p in known), 0]
        feed = {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)}
        head, f0, durations = (np.asarray(output) for output in self._session.run(None, feed))
        ends = FRAMES_PER_UNIT * np.cumsum(durations.astype(np.int64))
        last = max((n for n, p in enumerate(known) if p not in SILENT_PHONEMES), default=-1)
        return _Frames(head[0], f0[0], starts=ends[:-2], sound_end=int(ends[last + 1]), speed=speed)


def make(setup: Setup) -> HibariEngine:
    """It has nothing to be set up."""
    return HibariEngine()


def _pieces(phonemes: str) -> list[str]:
    """`phonemes` cut at spaces into pieces the network takes."""
    pieces = []
    while len(phonemes) > MAX_PHONEMES:
        cut = phonemes.rfind(" ", 0, MAX_PHONEMES) + 1 or MAX_PHONEMES
        pieces.append(phonemes[:cut].strip())
        phonemes = phonemes[cut:]
    return [*pieces, phonemes.strip()]


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
