"""A stepwise engine for tests, as an operator would bring one: `stepping:make`, with this folder on PYTHONPATH.

Every word is a tone of its own, a step is 20 ms of it; the sound of a segment depends on its text, speed and seed alone
(`sound`). Pools, costs and step time are what the options say. Some words do something else: "refused" cannot be
loaded, "unsayable" fails after two steps, "crash" ends the process in its third step, "hang" never comes back from it.
"""

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxgate.synth.engine import Ended, EngineInfo, PoolUse, Setup, Steps, Voice, Window
from voxgate.synth.segment import Segment, Style

RATE = 24000
SAMPLES = 480  # of a step
STEPS_PER_WORD = 12
OPTIONS = {"voices", "step_s", "declared_step_s", "pool_bytes", "most_steps", "ahead"}


def sound(segment: Segment, style: Style) -> NDArray[np.int16]:
    """All of it, as the steps of one slot alone make it."""
    tones = [440 + zlib.crc32(f"{style.seed} {word}".encode()) % 400 for word in segment.text.split()]
    steps = [(step, tone) for tone in tones for step in range(round(STEPS_PER_WORD / style.speed))]
    return np.concatenate([_step(step, tone) for step, tone in steps] or [np.zeros(0, np.int16)])


def _step(step: int, tone: int) -> NDArray[np.int16]:
    phase = 2 * np.pi * tone * np.arange(step * SAMPLES, (step + 1) * SAMPLES) / RATE
    return (9000 * np.sin(phase)).astype(np.int16)


@dataclass
class Row:
    text: str
    sound: NDArray[np.int16]
    steps: int = 0


class SteppingEngine:
    def __init__(self, setup: Setup) -> None:
        if unknown := set(setup.options) - OPTIONS:
            raise ValueError(f"no such options: {', '.join(sorted(unknown))}")
        options = setup.options
        slots = setup.slots or 4
        self.step_s: float = options.get("step_s", 0.002)
        self.pool_bytes: int = options.get("pool_bytes", 0)
        self.rows: dict[int, Row] = {}
        self.batches: list[tuple[int, ...]] = []  # the slots of every step
        ids = options.get("voices", ["tone"])
        self.info = EngineInfo(
            name="stepping",
            revision="1",
            sample_rate=RATE,
            voices=tuple(Voice(voice, "en", "stepping", "quality", RATE) for voice in ids),
            max_slots=slots,
            stepwise=True,
            deterministic=True,
            steps=Steps(
                samples=SAMPLES,
                step_s=options.get("declared_step_s", self.step_s),
                decode_s=0.001,
                least_ahead=1,
                most_ahead=options.get("ahead", 6),
                most_steps=options.get("most_steps", 2048),
                pool_bytes=self.pool_bytes,
            ),
        )

    def warm(self) -> None:
        pass

    def prefill(self, slot: int, segment: Segment, style: Style) -> None:
        assert slot not in self.rows
        assert 0 <= slot < self.info.max_slots
        if all(style.voice != voice.id for voice in self.info.voices):
            raise ValueError(f"unknown voice {style.voice!r}")
        if "refused" in segment.text:
            raise ValueError("not a word I know")
        if "broken" in segment.text:
            raise RuntimeError("out of luck")
        self.rows[slot] = Row(segment.text, sound(segment, style))

    def step(self, slots: Sequence[int]) -> Mapping[int, Ended]:
        assert slots
        assert list(slots) == sorted(set(slots))
        self.batches.append(tuple(slots))
        time.sleep(self.step_s)
        ended: dict[int, Ended] = {}
        for slot in slots:
            row = self.rows[slot]
            row.steps += 1
            if "unsayable" in row.text and row.steps == 2:
                ended[slot] = Ended(0, "it came out empty")
            elif "crash" in row.text and row.steps == 3:
                os._exit(7)
            elif "hang" in row.text and row.steps == 3:
                time.sleep(3600)
            elif row.steps * SAMPLES > len(row.sound):  # the step of the end token
                ended[slot] = Ended(len(row.sound) // SAMPLES)
        return ended

    def decode(self, windows: Sequence[Window]) -> Sequence[NDArray[np.int16]]:
        assert len({window.slot for window in windows}) == len(windows)
        return [self._decode(window) for window in windows]

    def _decode(self, window: Window) -> NDArray[np.int16]:
        row = self.rows[window.slot]
        assert window.begin < window.end <= window.known <= row.steps
        return row.sound[window.begin * SAMPLES : window.end * SAMPLES]

    def release(self, slot: int) -> None:
        self.rows.pop(slot, None)  # nothing is in it where the prefill raised

    def pool(self) -> PoolUse:
        idle = self.pool_bytes * (self.info.max_slots - len(self.rows)) // self.info.max_slots
        return PoolUse(self.pool_bytes, idle)


def make(setup: Setup) -> SteppingEngine:
    return SteppingEngine(setup)


def fail(setup: Setup) -> SteppingEngine:
    raise RuntimeError("no weights here")
