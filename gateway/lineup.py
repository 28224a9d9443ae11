"""The engines of a server, from its settings: which ones, with how many workers of what kind, on which device."""

from collections.abc import Callable

from ..synth.cache.levels import Levels
from ..synth.engine import EngineInfo, Setup
from ..synth.registry import BUNDLED
from ..synth.synthesis import Synthesis
from ..synth.synthesizer import BULK_NICE, Synthesizer
from .config import Config, EngineConfig


def lineup(config: Config, cores: int, caches: Levels, on_broken: Callable[[str], None]) -> Synthesis:
    """All of them, not started."""
    synthesizers = [_synthesizer(name, each, config, cores, caches, on_broken) for name, each in config.engines.items()]
    return Synthesis(synthesizers, caches)


def cpu_workers(config: Config, cores: int) -> int:
    """Workers of an engine that computes on the CPU and says nothing of it."""
    return config.workers or cores


def workers_of(engine: EngineConfig, config: Config, cores: int) -> int:
    return engine.workers or (1 if engine.device else cpu_workers(config, cores))


def devices(config: Config) -> dict[str, str]:
    """The device of every engine that has one."""
    return {name: engine.device for name, engine in config.engines.items() if engine.device}


def oversized(info: EngineInfo, workers: int, total_bytes: int, degrade: float) -> str | None:
    """Why an engine had better not start on a device of so much memory: with all of its slots in use it would be short
    of memory by itself."""
    pool = workers * info.steps.pool_bytes if info.steps is not None else 0
    if pool <= degrade * total_bytes:
        return None
    return (
        f"{info.name} reserves {pool / 2**30:.1f} GiB for {workers * info.max_slots} slots, which is over "
        f"memory_degrade ({degrade:g}) of the {total_bytes / 2**30:.1f} GiB of its device: give it fewer slots"
    )


def _synthesizer(
    name: str, engine: EngineConfig, config: Config, cores: int, caches: Levels, on_broken: Callable[[str], None]
) -> Synthesizer:
    workers = workers_of(engine, config, cores)
    # Express workers are for engines of which a segment keeps a core; one that feeds a GPU must not wait for a core.
    is_batched = bool(engine.device or engine.slots)
    return Synthesizer(
        workers=workers,
        express=0 if is_batched else workers,
        nice=0 if is_batched else BULK_NICE,
        setup=Setup(name, engine.factory or BUNDLED[name].factory, engine.device, engine.slots, engine.options),
        caches=caches,
        on_broken=on_broken,
    )
