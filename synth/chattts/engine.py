"""ChatTTS as a stepwise engine: segments into slots, steps of all of them at once, windows of each into sound.

Joins the parts (prompt, stepper, renderer, edges, guard rails) behind the contract of synth/engine.py. On the CPU it
runs as it is, slower than speech; on a GPU steps are CUDA graphs and told of one step late.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import joins
from ..engine import Ended, EngineInfo, PoolUse, Setup, Steps, Voice, Window
from ..segment import Segment, Style
from .device import PRECISIONS, Device
from .directory import Manifest, read_manifest, voices
from .edges import Edges
from .errors import TextTooLong
from .guard import SilenceWatch, step_bounds
from .lookahead import LookAhead
from .prompt import REVISION, Prompter, written_out
from .renderer import Renderer
from .sampler import Sampling
from .shape import SAMPLE_RATE, TRUE, Shape
from .stepper import Prompt, Stepper
from .trt_core import Programs, TensorRtCore, TensorRtVocoder, stream_of
from .uniforms import ATTEMPTS
from .vocoder import Vocoder
from .weights import Model, load
from .windows import span

logger = logging.getLogger("voxgate.chattts")

NAME = "chattts"
SLOTS = 16
CAPACITY = 1024  # tokens of a slot: 15 s of speech and a long text before it
RING = 256  # hidden states a slot keeps: a window with all of its context, and what is computed meanwhile
RUNTIMES = "torch", "tensorrt"
EMPTY = f"the speech ended before its first sound, {ATTEMPTS} times"
_MEASURED_STEPS = 8
_FULL_WINDOW = 16  # steps of the windows that decoding is timed with


@dataclass(frozen=True, slots=True)
class Options:
    """What an operator may set: the options of the engine in the server's settings."""

    folder: str
    capacity: int = CAPACITY
    precision: str = ""  # "float16", "bfloat16" or "float32"; "": float16 on a GPU, float32 elsewhere
    language: str = "zh"
    tags: bool = False  # [laugh], [uv_break], … in texts are control tags
    random_voices: tuple[int, ...] = ()
    runtime: str = "torch"  # or "tensorrt"
    int8: bool = False  # the transformer's layers quantized; TensorRT only
    sampling: Sampling = field(default_factory=Sampling)

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "Options":
        """Raises `ValueError` for what is no option or makes no sense."""
        known = {"folder", "capacity", "precision", "language", "tags", "random_voices", "runtime", "int8"}
        drawn = {"temperature", "top_p", "top_k", "penalty"}
        if unknown := set(options) - known - drawn:
            raise ValueError(
                f"no such options: {', '.join(sorted(unknown))} (there are: {', '.join(sorted(known | drawn))})"
            )
        if not isinstance(options.get("folder"), str):
            raise ValueError("the option `folder` must say where the weights are")
        if (runtime := options.get("runtime", "torch")) not in RUNTIMES:
            raise ValueError(f"runtime {runtime!r} is none of {', '.join(RUNTIMES)}")
        if options.get("int8") and runtime != "tensorrt":
            raise ValueError("int8 is for the runtime tensorrt")
        own = {name: options[name] for name in known & set(options)}
        own["random_voices"] = tuple(int(seed) for seed in own.get("random_voices", ()))
        return cls(**own, sampling=Sampling(**{name: options[name] for name in drawn & set(options)}))


@dataclass(slots=True)
class _Speech:
    """The segment in a slot, on the host's side."""

    edges: Edges
    watch: SilenceWatch
    is_empty: bool  # nothing of its text can be spoken
    emitted: int = 0  # steps
    fell_silent: bool = False


class ChatTTSEngine:
    """Call it from one thread."""

    def __init__(
        self,
        model: Model,
        prompter: Prompter,
        speakers: Mapping[str, NDArray[np.float32] | None],
        options: Options,
        look_ahead: LookAhead,
        *,
        device: Device,
        slots: int,
        revision: str,
        widths: Sequence[int] | None = None,
        programs: Programs | None = None,
    ) -> None:
        """`programs`: TensorRT engines to compute with, in place of torch."""
        self._shape: Shape = model.shape
        self._prompter, self._speakers, self._options = prompter, speakers, options
        self._device, self._look_ahead = device, look_ahead
        self._stepper = Stepper(
            model,
            slots=slots,
            capacity=options.capacity,
            ring=RING,
            device=device.where,
            dtype=device.dtype,
            widths=widths,
            late=device.is_gpu,
            core=programs and TensorRtCore(programs, model, slots, device.where, device.dtype),
        )
        vocoder = (
            TensorRtVocoder(programs, model.shape, device.dtype)
            if programs
            else Vocoder(model, device.where, device.dtype)
        )
        self._renderer = Renderer(vocoder, self._stepper.ring, self._stepper.steps)
        self._speeches: dict[int, _Speech] = {}
        self.info = self._describe(revision, step_s=0.0, decode_s=0.0)
        self._revision = revision

    # --- the calls of the contract ----------------------------------------------------------------------------------

    def warm(self) -> None:
        self._stepper.warm()
        self._renderer.warm()
        step_s, decode_s = self._measure()
        self.info = self._describe(self._revision, step_s=step_s, decode_s=decode_s)

    def prefill(self, slot: int, segment: Segment, style: Style) -> None:
        if style.voice not in self._speakers:
            raise ValueError(f"unknown voice {style.voice!r}")
        options, speaker = self._options, self._speakers[style.voice]
        text = written_out(segment.text, segment.marks, style.urls, tags=options.tags)
        if text:
            self._stepper.load(slot, self._prompt(text, speaker, style))
        lead = joins.with_pause(joins.LEAD[segment.before], segment.before, segment.pause_s, style.speed)
        edges = Edges(SAMPLE_RATE, lead, joins.TAIL[segment.after], style.speed)
        self._speeches[slot] = _Speech(edges, SilenceWatch(SAMPLE_RATE), is_empty=not text)

    def step(self, slots: Sequence[int]) -> Mapping[int, Ended]:
        speeches = {slot: self._speeches[slot] for slot in slots}
        ended = {
            slot: Ended(speech.emitted) for slot, speech in speeches.items() if speech.is_empty or speech.fell_silent
        }
        if rows := [slot for slot in slots if slot not in ended]:
            for slot, progress in self._stepper.step(rows).items():
                if progress.ended:
                    ended[slot] = Ended(progress.steps, "" if progress.steps else EMPTY)
        return ended

    def decode(self, windows: Sequence[Window]) -> Sequence[NDArray[np.int16]]:
        spans = [span(self._shape, each.slot, each.begin, each.end, each.known, last=each.last) for each in windows]
        return [
            self._finish(window, sound) for window, sound in zip(windows, self._renderer.render(spans), strict=True)
        ]

    def release(self, slot: int) -> None:
        self._speeches.pop(slot, None)
        self._stepper.release(slot)

    def pool(self) -> PoolUse:
        total, slots = self._stepper.pool_bytes, self._stepper.slots
        return PoolUse(total, total * (slots - len(self._speeches)) // slots)

    # --- their parts ------------------------------------------------------------------------------------------------

    def _prompt(self, text: str, speaker: NDArray[np.float32] | None, style: Style) -> Prompt:
        ids = self._prompter.ids(text, speaker=speaker is not None, speed=style.speed)
        least, most = step_bounds(text, style.speed, self._shape.steps_per_second)
        room = self._options.capacity - len(ids)
        if room < least + 1:
            raise TextTooLong(
                f"{len(ids)} tokens of text leave {max(room, 0)} steps of speech in a slot, and it takes some {least}"
            )
        drawn = self._options.sampling
        sampling = Sampling(drawn.temperature, drawn.top_p, drawn.top_k, drawn.penalty, min(least, room - 1))
        digest = hashlib.blake2b(f"{style.seed} {text}".encode(), digest_size=8).digest()
        seed = int.from_bytes(digest)
        return Prompt(ids, speaker, self._prompter.controls.speaker, sampling, seed, min(most, room))

    def _finish(self, window: Window, sound: NDArray[np.float32]) -> NDArray[np.int16]:
        speech = self._speeches[window.slot]
        speech.emitted = window.end
        speech.fell_silent = speech.watch.push(sound)
        return joins.to_int16(speech.edges.push(sound, last=window.last))

    def _describe(self, revision: str, *, step_s: float, decode_s: float) -> EngineInfo:
        language = self._options.language
        return EngineInfo(
            name=NAME,
            revision=f"{revision}/{REVISION}",
            sample_rate=SAMPLE_RATE,
            voices=tuple(
                Voice(name, language, NAME, "quality", SAMPLE_RATE, ("Latin", "Han")) for name in self._speakers
            ),
            max_slots=self._stepper.slots,
            stepwise=True,
            deterministic=False,  # equal codes at one width of the batch, and the width depends on who else is there
            steps=Steps(
                samples=self._shape.samples_per_step,
                step_s=step_s,
                decode_s=decode_s,
                least_ahead=self._look_ahead.least,
                most_ahead=self._look_ahead.most,
                most_steps=self._options.capacity,
                pool_bytes=self._stepper.pool_bytes if self._device.is_gpu else 0,
            ),
        )

    def _measure(self) -> tuple[float, float]:
        """(step, decode) in seconds, with every slot in use."""
        slots = range(self._stepper.slots)
        sampling = Sampling(min_steps=_MEASURED_STEPS + _FULL_WINDOW)
        for slot in slots:
            self._stepper.load(slot, Prompt((0,) * 32, None, -1, sampling, slot, self._options.capacity - 32))
        times = []
        for _ in range(_MEASURED_STEPS):
            times.append(self._device.timed(lambda: self._stepper.step(slots)))
        steps = self._shape.context_steps + _FULL_WINDOW + self._look_ahead.most
        begin = min(self._shape.context_steps, RING - steps)
        spans = [span(self._shape, slot, begin, begin + _FULL_WINDOW, steps, last=False) for slot in slots]
        decode_s = min(self._device.timed(lambda: self._renderer.render(spans)) for _ in range(2))
        for slot in slots:
            self._stepper.release(slot)
        return sorted(times)[len(times) // 2], decode_s


def make(setup: Setup) -> ChatTTSEngine:
    """From the options of the server's settings. Raises `ChatTTSError`, `ValueError`."""
    options = Options.read(setup.options)
    if options.runtime == "tensorrt" and not setup.device:
        raise ValueError("the runtime tensorrt needs a GPU: set `device`")
    folder = Path(options.folder).expanduser()
    manifest: Manifest = read_manifest(folder)
    device = Device.find(on_gpu=bool(setup.device), precision=options.precision)
    model = load(folder, TRUE)
    slots = setup.slots or SLOTS
    return ChatTTSEngine(
        model,
        Prompter.read(folder, TRUE.text_vocabulary),
        voices(folder, TRUE.hidden, options.random_voices),
        options,
        manifest.look_ahead,
        device=device,
        slots=slots,
        revision=manifest.revision,
        programs=_programs(folder, model, options, device, slots) if options.runtime == "tensorrt" else None,
    )


def _programs(folder: Path, model: Model, options: Options, device: Device, slots: int) -> Programs:
    """Built now, where they have not been for this GPU and these settings."""
    from .workshop import Order, load_engines  # onnx and TensorRT are extras of their own

    precision = next(name for name, dtype in PRECISIONS.items() if dtype is device.dtype)
    order = Order(precision=precision, slots=slots, capacity=options.capacity, int8=options.int8)
    return load_engines(folder, model, order, stream_of(device.where), logger.info)
