"""Builds TensorRT engines out of ONNX graphs, with TensorRT or TensorRT for RTX, whichever is installed.

The two are one interface but for the target: TensorRT builds for the GPU at hand, TensorRT for RTX also for others and
without any. Every flag they return is checked, and an input they silently ignore is an error: what would be computed
is not what the graph says. Precision comes from the graph: networks are strongly typed.
"""

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

from .errors import BuildError
from .graphs import Exported
from .plans import CURRENT, Recipe, key

MODULES = "tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings"  # the last without its metapackage
FATAL = ("Unused Input",)  # parses, and computes something else


@functools.cache
def tensorrt() -> ModuleType:
    """The first of `MODULES` that is there. Raises `BuildError`."""
    problems = []
    for name in MODULES:
        try:
            return import_module(name)
        except ImportError as error:
            problems.append(f"{name}: {error}")
    raise BuildError(f"no TensorRT is installed ({'; '.join(problems)}): see docs/gpu.md")


def builder_name(trt: ModuleType) -> str:
    return f"{trt.__name__.removesuffix('_bindings')} {trt.__version__}"


@functools.cache
def logger(trt: ModuleType) -> Any:
    """The one logger of the process: TensorRT keeps the first it is given. `messages`: (severity, text)."""

    class Logger(trt.ILogger):
        def __init__(self) -> None:
            trt.ILogger.__init__(self)
            self.messages: list[tuple[str, str]] = []

        def log(self, severity: Any, msg: str) -> None:
            if severity.name in ("INTERNAL_ERROR", "ERROR", "WARNING"):
                self.messages.append((severity.name, msg))

    return Logger()


def plan_key(exported: Exported, recipe: Recipe, device: str = "") -> str:
    """Under which an engine is kept; `device` is the name of the GPU at hand, where it is the target."""
    return key(exported, recipe, f"{builder_name(tensorrt())} {device if recipe.target == CURRENT else ''}")


def build(exported: Exported, recipe: Recipe) -> bytes:
    """The engine of a graph. Raises `BuildError` with what TensorRT said, `ProfileError`."""
    trt = tensorrt()
    log = logger(trt)
    log.messages.clear()
    try:
        builder = trt.Builder(log)
    except TypeError as error:  # what a null pointer becomes: full TensorRT without a GPU
        raise BuildError(f"{builder_name(trt)} cannot build here: {_said(log) or error}") from error
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, log)
    if not parser.parse(exported.onnx):
        problems = "; ".join(parser.get_error(n).desc() for n in range(parser.num_errors))
        raise BuildError(f"{exported.name} cannot be read: {problems or _said(log)}")
    config = builder.create_builder_config()
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, recipe.workspace_bytes)
    for profile in recipe.profiles:
        _add_profile(builder, config, exported, recipe.shapes(exported, profile))
    _aim(trt, config, recipe.target)
    plan = builder.build_serialized_network(network, config)
    ignored = [text for _, text in log.messages if any(word in text for word in FATAL)]
    if ignored:
        raise BuildError(f"{exported.name}: an input would be ignored: {'; '.join(ignored)}")
    if plan is None:
        raise BuildError(f"{exported.name} was not built for {recipe.target}: {_said(log)}")
    return bytes(plan)


def _add_profile(builder: Any, config: Any, exported: Exported, shapes: dict[str, tuple[tuple[int, ...], ...]]) -> None:
    profile = builder.create_optimization_profile()
    for name, (least, best, most) in shapes.items():
        profile.set_shape(name, least, best, most)
    if not profile or config.add_optimization_profile(profile) < 0:
        raise BuildError(f"{exported.name}: the profile {shapes} was not accepted")


def _aim(trt: ModuleType, config: Any, target: str) -> None:
    """Build for `target`."""
    if not hasattr(trt, "ComputeCapability"):
        if target != CURRENT:
            raise BuildError(f"{builder_name(trt)} builds for the GPU at hand alone, not for {target}")
        return
    name = "CURRENT" if target == CURRENT else f"SM{target.replace('.', '')}"
    capability = getattr(trt.ComputeCapability, name, None)
    if capability is None:
        raise BuildError(f"{builder_name(trt)} knows no compute capability {target}")
    config.num_compute_capabilities = 1
    if not config.set_compute_capability(capability, 0):
        raise BuildError(f"{builder_name(trt)} does not build for compute capability {target}: {_said(logger(trt))}")


def _said(log: Any) -> str:
    return "; ".join(text for severity, text in log.messages if severity != "WARNING")
