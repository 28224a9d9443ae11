import pytest

from voxgate.admission.quotas import Quota
from voxgate.gateway.bounds import address_quota, controller, key_quota
from voxgate.gateway.config import Config, ConfigError


def limits(**changes: float) -> tuple[float, float, float]:
    made = controller(Config(**changes), 2, lambda _ask, _now: 0.0).limits.limit  # pyright: ignore[reportArgumentType]
    return made.floor, made.initial, made.ceiling


def test_the_limit_begins_with_what_the_cores_are_known_to_carry():
    assert limits() == (10, 200, 800)


def test_a_limit_that_is_set_is_never_exceeded():
    assert limits(max_utterances=50) == (10, 50, 50)
    assert limits(max_utterances=5) == (5, 5, 5)
    assert limits(max_utterances=1000, min_utterances=1000) == (1000, 1000, 1000)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"memory_degrade": 0.95}, "degrade 0.95"),
        ({"memory_recover": 0.85}, "recover 0.85"),
        ({"memory_open": 0.5}, "open 0.5"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_by_name(changes: dict[str, float], said: str):
    with pytest.raises(ConfigError, match=said):
        limits(**changes)


def test_nothing_said_of_quotas_is_no_quota():
    assert (key_quota(Config()), address_quota(Config())) == (Quota(), Quota())
    assert key_quota(Config(key_contexts=3)) == Quota(contexts=3)
    assert address_quota(Config(address_characters_per_minute=9)) == Quota(characters_per_minute=9)
