from dataclasses import replace

import pytest

from voxgate.gateway.config import Config, EngineConfig
from voxgate.gateway.lineup import devices, lineup, oversized, workers_of
from voxgate.synth.cache.levels import Levels
from voxgate.synth.engine import EngineInfo, Steps, Voice

GIB = 2**30
OWN = EngineConfig(factory="own.engine:make")
ON_GPU = EngineConfig(factory="own.engine:make", device="GPU-1", slots=8)


def test_engines_are_in_the_order_of_the_settings_and_share_the_caches():
    caches = Levels()
    synthesis = lineup(Config(engines={"own": OWN, "hibari": EngineConfig()}), 2, caches, lambda _: None)

    assert list(synthesis.engines) == ["own", "hibari"]
    assert {id(engine.caches) for engine in synthesis.engines.values()} == {id(synthesis.caches)} == {id(caches)}


@pytest.mark.parametrize(
    ("engine", "workers", "count"),
    [
        (OWN, 0, 4),
        (OWN, 3, 3),
        (ON_GPU, 3, 1),
        (EngineConfig(factory="own.engine:make", workers=2), 3, 2),
        (EngineConfig(factory="own.engine:make", device="GPU-1", workers=2), 3, 2),
    ],
)
def test_an_engine_has_one_worker_on_a_device_and_one_per_core_without(engine: EngineConfig, workers: int, count: int):
    assert workers_of(engine, Config(workers=workers), cores=4) == count


def test_only_engines_with_a_device_are_bound_to_one():
    assert devices(Config(engines={"own": OWN, "gpu": ON_GPU})) == {"gpu": "GPU-1"}


def test_a_pool_that_would_degrade_its_device_by_itself_is_refused_by_name():
    steps = Steps(480, 0.01, 0.01, pool_bytes=3 * GIB)
    voices = (Voice("v", "en", "big", "quality", 24000),)
    big = EngineInfo("big", "1", 24000, voices, 64, stepwise=True, deterministic=True, steps=steps)

    assert oversized(big, 1, 4 * GIB, 0.8) is None
    problem = oversized(big, 2, 7 * GIB, 0.8)
    assert problem is not None
    assert all(said in problem for said in ("big", "128 slots", "6.0 GiB", "0.8"))
    assert oversized(replace(big, stepwise=False, steps=None), 9, GIB, 0.8) is None
