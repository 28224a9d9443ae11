"""What is done to a directory of weights before a server uses it: import, build, inspect, verify.

Each is one function that says what it does through `tell`. What they are made of is elsewhere; the command line
(`voxgate engine`) calls them.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from . import graphs, layout
from .calibration import calibrate
from .cuda import opened, runtime
from .directory import Manifest, read_manifest, stamp, voices, write_manifest
from .errors import DeviceError, WeightsError
from .graphs import Exported
from .guard import step_bounds
from .lookahead import choose, curve
from .plans import CURRENT, Kept, PlanCache, Profile, Range, Recipe, buckets
from .prompt import Prompter, written_out
from .renderer import MOST_ROWS
from .sampler import Sampling
from .shape import Shape
from .stepper import PROMPT_BUCKETS, Prompt, Stepper
from .trt_build import build, builder_name, logger, plan_key, tensorrt
from .trt_core import Programs, Stream
from .trt_run import Program
from .vocoder import Vocoder
from .weights import Model, check_files, load

PLANS = "plans"  # the folder of built engines, inside the directory of the weights
MOST_WINDOW = 256  # steps
MEASURED_STEPS = 140  # of each text below
CALIBRATED_STEPS = 60
CPU = torch.device("cpu")
# Spoken to measure look-ahead and activations: both languages, short and long words, pauses.
TEXTS = (
    "Good morning, and thank you for waiting. The next train to the coast leaves from platform four.",
    "She sells sea shells by the shore, and nobody knows why; perhaps it is the quiet that she likes.",
    "今天天气很好，我们一起去公园散步吧。你觉得怎么样。",
)

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Order:
    """What to build. `int8`: the transformer's layers quantized, by calibration."""

    target: str = CURRENT
    precision: str = "float16"
    slots: int = 16
    capacity: int = 1024
    int8: bool = False


def import_directory(
    folder: Path, shape: Shape, tell: Tell, checksums: Mapping[str, str] = layout.CHECKSUMS
) -> Manifest:
    """Verify the files and voices, measure the look-ahead and write the manifest. Raises `ChatTTSError`."""
    tell("verifying the files")
    if problems := check_files(folder, checksums):
        raise WeightsError(problems)
    files = stamp(folder)
    model = load(folder, shape, with_dvae=layout.DVAE in files)
    prompter = Prompter.read(folder, shape.text_vocabulary)
    names = voices(folder, shape.hidden)
    tell(f"voices: {', '.join(names)}")
    tell("measuring how much look-ahead a window needs")
    vocoder = Vocoder(model, CPU, torch.float32)

    @torch.inference_mode()
    def decode(states: Tensor, steps: int) -> Tensor:
        return vocoder(states[None], torch.tensor([steps]))[0]

    measured = curve(decode, list(_speak(model, prompter)), shape)
    for ahead, level in measured.items():
        tell(f"  {ahead:3d} steps: {level:6.1f} dB")
    manifest = Manifest(files, choose(measured), measured)
    write_manifest(folder, manifest)
    tell(f"look-ahead: {manifest.look_ahead.least} to {manifest.look_ahead.most} steps")
    return manifest


def exports(
    model: Model, order: Order, scales: Mapping[str, float] | None = None
) -> Iterator[tuple[Exported, tuple[Profile, ...]]]:
    """Every graph a stream needs, with its profiles."""
    window = Range(2, min(96, MOST_WINDOW), MOST_WINDOW)
    most = max(size for size in PROMPT_BUCKETS if size <= order.capacity)
    prompt = Range(1, min(64, most), most)
    one = Range(1, 1, 1)
    yield graphs.prefill(model, order.capacity, order.precision, scales), ({"B": one, "T": prompt},)
    yield graphs.step(model, order.capacity, order.precision, scales), buckets(order.slots)
    yield graphs.vocoder(model, order.precision), buckets(min(1 << (order.slots - 1).bit_length(), MOST_ROWS), T=window)


def build_engines(folder: Path, model: Model, order: Order, tell: Tell, device: str = "") -> list[Kept]:
    """All engines of `order`; those that are there already are kept. `device`: the GPU's name. Raises `BuildError`."""
    scales = None
    if order.int8:
        tell("measuring activations for INT8")
        prompter = Prompter.read(folder, model.shape.text_vocabulary)
        stepper = _stepper(model, capacity=256)
        scales = calibrate(
            stepper, [_prompt(model.shape, prompter, text, CALIBRATED_STEPS) for text in TEXTS], CALIBRATED_STEPS
        )
    cache, kept = PlanCache(folder / PLANS), []
    builder = builder_name(tensorrt())
    for exported, profiles in exports(model, order, scales):
        recipe = Recipe(order.target, profiles)
        name = plan_key(exported, recipe, device)
        if cache.get(name) is not None:
            tell(f"{exported.name}: built already")
            kept += [each for each in cache.kept() if each.key == name]
            continue
        began_at = time.perf_counter()
        plan = build(exported, recipe)
        tell(f"{exported.name}: {len(plan) / 2**20:.0f} MiB in {time.perf_counter() - began_at:.0f} s")
        kept.append(cache.put(name, plan, exported, recipe, builder))
    return kept


def load_engines(folder: Path, model: Model, order: Order, stream: Stream, tell: Tell) -> Programs:
    """The engines of `order` for the GPU at hand, built where they are not there. Raises `ChatTTSError`."""
    cache, trt = PlanCache(folder / PLANS), tensorrt()
    programs = {}
    for kept in build_engines(folder, model, order, tell, gpu_name()):
        plan = cache.get(kept.key)
        if plan is None:
            raise DeviceError(f"the engine {kept.key} in {folder / PLANS} cannot be read back: is the disk full?")
        programs[kept.graph] = Program(trt, logger(trt), plan)
    return Programs(**programs, stream=stream)


def verify(folder: Path, tell: Tell) -> list[str]:
    """What is wrong with the directory and its engines; on a machine with a GPU every engine for it is loaded."""
    problems = []
    try:
        read_manifest(folder)
    except WeightsError as error:
        problems += error.problems
    cache = PlanCache(folder / PLANS)
    for each in cache.kept():
        if cache.get(each.key) is None:
            problems.append(f"{each.graph} ({each.key}) is damaged: build it again")
    try:
        api = runtime()
    except DeviceError as error:
        tell(f"the engines were not loaded: {error}")
        return problems
    with opened(api):
        problems += _load_all(cache)
    return problems


def gpu_name() -> str:
    """Of the GPU at hand. Raises `DeviceError`."""
    api = runtime()
    status, properties = api.cudaGetDeviceProperties(0)
    if int(status):
        raise DeviceError(f"cudaGetDeviceProperties: {status.name}")
    return properties.name.decode()


def _load_all(cache: PlanCache) -> list[str]:
    trt = tensorrt()
    problems = []
    for each in cache.kept():
        plan = cache.get(each.key)
        if plan is None or each.builder != builder_name(trt):
            continue
        try:
            Program(trt, logger(trt), plan)
        except DeviceError as error:
            problems.append(f"{each.graph} for {each.target}: {error}")
    return problems


# --- speech to measure with -----------------------------------------------------------------------------------------


def _stepper(model: Model, capacity: int) -> Stepper:
    return Stepper(model, slots=1, capacity=capacity, ring=capacity, device=CPU, dtype=torch.float32)


def _prompt(shape: Shape, prompter: Prompter, text: str, budget: int) -> Prompt:
    ids = prompter.ids(written_out(text), speaker=False, speed=1.0)
    least, _ = step_bounds(text, 1.0, shape.steps_per_second)
    return Prompt(ids, None, -1, Sampling(min_steps=min(max(least, shape.context_steps + 20), budget)), 0, budget)


def _speak(model: Model, prompter: Prompter) -> Iterator[Tensor]:
    """Hidden states [T, H] of some sentences."""
    stepper = _stepper(model, capacity=512 if model.shape.positions > 512 else model.shape.positions)
    for text in TEXTS:
        stepper.load(0, _prompt(model.shape, prompter, text, min(MEASURED_STEPS, stepper.capacity // 2)))
        while not (progress := stepper.step([0])[0]).ended:
            pass
        yield stepper.ring[0, : progress.steps].clone()
        stepper.release(0)
