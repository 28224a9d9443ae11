import pytest

from voxgate.admission.limit import AdaptiveLimit, LimitSettings

SETTINGS = LimitSettings(initial=100, floor=10, ceiling=110)


def feed(it: AdaptiveLimit, wait_s: float, in_flight: int, begin: float, end: float) -> None:
    for tick in range(round(begin * 20), round(end * 20)):
        it.sample(wait_s, in_flight, tick / 20)


def test_it_stands_still_while_nobody_presses():
    it = AdaptiveLimit(SETTINGS)
    feed(it, 0.01, 50, 0, 600)
    assert it.current == 100


def test_it_grows_while_it_is_in_use_up_to_its_ceiling():
    it = AdaptiveLimit(SETTINGS)
    feed(it, 0.01, 95, 0, 3.2)
    assert it.current == 106
    feed(it, 0.01, 100, 3.2, 60)
    assert it.current == 110


def test_slow_waits_lower_it_once_in_a_window_and_not_for_each_of_them():
    it = AdaptiveLimit(SETTINGS)
    feed(it, 0.5, 100, 0, 2.2)
    assert it.current == pytest.approx(81)
    feed(it, 0.5, 100, 2.2, 120)
    assert it.current == 10


def test_an_underrun_and_slow_waits_of_the_same_congestion_lower_it_once():
    it = AdaptiveLimit(SETTINGS)
    feed(it, 0.5, 100, 0, 0.95)
    it.overload(0.95)
    it.sample(0.5, 100, 1.0)  # the end of the window, full of slow ones
    assert it.current == 90


def test_it_does_not_grow_in_the_window_in_which_it_was_lowered():
    it = AdaptiveLimit(SETTINGS)
    feed(it, 0.01, 100, 0.0, 0.5)
    it.overload(0.5)
    feed(it, 0.01, 100, 0.5, 1.5)  # the window ends at 1.0
    assert it.current == 90
    feed(it, 0.01, 100, 1.5, 2.1)
    assert it.current == 92


def test_nobody_who_was_served_is_nothing_learnt():
    it = AdaptiveLimit(SETTINGS)  # all were cancelled: never told
    assert it.current == 100
    it.sample(0.01, 100, 500.0)
    assert it.current == 100


def test_a_few_slow_ones_among_many_are_no_congestion():
    it = AdaptiveLimit(SETTINGS)
    for tick in range(400):
        it.sample(0.5 if tick % 40 == 0 else 0.01, 50, tick / 20)
    assert it.current == 100


def test_underruns_of_one_moment_lower_it_once():
    it = AdaptiveLimit(SETTINGS)
    for _ in range(50):
        it.overload(5.0)
    assert it.current == 90
    it.overload(6.0)
    assert it.current == pytest.approx(81)


def test_one_listener_alone_does_not_lower_it():
    it = AdaptiveLimit(SETTINGS)
    for second in range(60):
        it.underrun(2.0 * second)
        it.sample(9.0, 50, 2.0 * second + 1.0)
    assert it.current == 100


def test_two_that_run_dry_in_one_moment_do():
    it = AdaptiveLimit(SETTINGS)
    it.underrun(5.0)
    assert it.current == 100
    it.underrun(5.9)
    assert it.current == 90


def test_a_minute_without_samples_earns_no_leap():
    it = AdaptiveLimit(SETTINGS)
    it.sample(0.01, 100, 0.0)
    it.sample(0.01, 100, 60.0)
    assert it.current == 102


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"floor": 0}, "1 <= floor"),
        ({"initial": 500}, "initial <= ceiling"),
        ({"backoff": 1.0}, "backoff"),
        ({"target_s": -1}, "target_s must be over 0"),
        ({"window_s": 0}, "window_s must be over 0"),
        ({"growth_per_s": float("nan")}, "growth_per_s must be over 0 and finite"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(changes: dict[str, float], said: str):
    with pytest.raises(ValueError, match=said):
        LimitSettings(**{"initial": 100, "floor": 10, "ceiling": 110, **changes})
