import pytest

from voxgate.admission.quotas import Quota
from voxgate.gateway.bounds import address_quota, controller, key_quota
from voxgate.gateway.config import Config, ConfigError, load


def limits(**changes: float) -> tuple[float, float, float]:
    made = controller(Config(**changes), 2, lambda _ask, _now: 0.0).limits.limit  # pyright: ignore[reportArgumentType]
    return made.floor, made.initial, made.ceiling


def test_the_limit_begins_with_what_the_cores_are_known_to_carry():
    assert limits() == (10, 200, 800)


def test_a_limit_that_is_set_is_never_exceeded():
    assert limits(max_utterances=50) == (10, 50, 50)
    assert limits(max_utterances=5) == (5, 5, 5)
    assert limits(max_utterances=1000, min_utterances=1000) == (1000, 1000, 1000)


def test_the_limit_never_goes_below_what_was_set_also_beyond_what_the_cores_are_known_to_carry():
    assert limits(min_utterances=1000) == (1000, 1000, 1000)


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        ("max_connections", 0, ">= 1"),
        ("max_utterances", -1, ">= 0"),
        ("min_utterances", 0, ">= 1"),
        ("max_waiting", -1, ">= 0"),
        ("max_queued_segments", 0, ">= 1"),
        ("first_audio_target_s", 0.0, "> 0"),
        ("memory_degrade", 1.5, "<= 1"),
        ("memory_recover", 0.0, "> 0"),
        ("memory_open", float("nan"), "> 0"),
        ("engine_failures", 0, ">= 1"),
        ("key_utterances", -1, ">= 0"),
        ("address_connections", -1, ">= 0"),
    ],
)
def test_a_setting_out_of_range_is_refused_by_name_and_with_what_is_valid(name: str, value: float, valid: str):
    with pytest.raises(ConfigError, match=f"{name} = .*{valid}"):
        load(None, {}, {name: value})


def test_each_setting_reaches_the_part_it_is_for():
    config = Config(
        max_connections=7, max_utterances=9, max_queued_segments=11, max_waiting=13, engine_failures=3,
        memory_recover=0.4, memory_degrade=0.5, memory_open=0.6, first_audio_target_s=0.25,
    )  # fmt: skip
    made = controller(config, 2, lambda _ask, _now: 0.0).limits
    assert (made.connections, made.utterances, made.segments, made.queue.waiting) == (7, 9, 11, 13)
    assert (made.breaker.recover, made.breaker.degrade, made.breaker.open) == (0.4, 0.5, 0.6)
    assert (made.breaker.failures, made.breaker.target_s, made.limit.target_s) == (3, 0.25, 0.25)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_degrade": 0.95}, r"0 < .*memory_degrade \(0.95\).* <= 1 must hold"),
        ({"memory_recover": 0.85}, r"0 < .*memory_recover \(0.85\).* <= 1 must hold"),
        ({"memory_open": 0.5}, r"0 < .*memory_open \(0.5\).* <= 1 must hold"),
        ({"first_audio_target_s": float("inf")}, "first_audio_target_s must be over 0 and finite, not inf"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_by_name(changes: dict[str, float], said: str):
    with pytest.raises(ConfigError, match=said):
        limits(**changes)


def test_nothing_said_of_quotas_is_no_quota():
    assert (key_quota(Config()), address_quota(Config())) == (Quota(), Quota())
    assert key_quota(Config(key_contexts=3)) == Quota(contexts=3)
    assert address_quota(Config(address_characters_per_minute=9)) == Quota(characters_per_minute=9)
