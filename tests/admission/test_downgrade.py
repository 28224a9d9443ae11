from voxgate.admission.breaker import Cause
from voxgate.admission.downgrade import Downgrades


def taken(downgrades: Downgrades, causes: set[Cause], begin: float, end: float) -> list[tuple[float, int | None, int]]:
    """(when, width, time level) at each change, looking ten times a second."""
    seen: list[tuple[float, int | None, int]] = []
    for tick in range(round(begin * 10), round(end * 10) + 1):
        downgrades.advance(causes, tick / 10)
        now = (downgrades.width, downgrades.time_level)
        if not seen or seen[-1][1:] != now:
            seen.append((tick / 10, *now))
    return seen


def test_memory_narrows_the_batch_in_steps_down_to_a_single_slot_and_back():
    it = Downgrades(16)
    assert it.width == 16
    assert taken(it, {Cause.MEMORY}, 5, 20) == [(5.0, 8, 0), (6.0, 4, 0), (7.0, 1, 0)]
    assert taken(it, set(), 30, 40) == [(30.0, 4, 0), (31.0, 8, 0), (32.0, 16, 0)]


def test_want_of_time_saves_work_and_never_narrows():
    it = Downgrades(16)
    assert taken(it, {Cause.TIME}, 5, 20) == [(5.0, 16, 1), (6.0, 16, 2)]
    assert (it.cheaper_opus, it.realtime_only) == (True, True)


def test_a_cause_that_comes_back_goes_on_from_where_it_was_and_one_step_at_a_time():
    it = Downgrades(16)
    taken(it, {Cause.MEMORY}, 0, 0.5)
    assert taken(it, set(), 0.6, 0.6) == [(0.6, 16, 0)]
    assert taken(it, {Cause.MEMORY}, 0.7, 1.7) == [(0.7, 8, 0), (1.7, 4, 0)]


def test_each_cause_has_steps_of_its_own():
    it = Downgrades(16)
    assert taken(it, {Cause.MEMORY, Cause.TIME}, 0, 9) == [(0.0, 8, 1), (1.0, 4, 2), (2.0, 1, 2)]
    assert taken(it, {Cause.TIME}, 10, 20) == [(10.0, 4, 2), (11.0, 8, 2), (12.0, 16, 2)]
    assert taken(it, {Cause.FAILURES}, 30, 40) == [(30.0, 16, 1), (31.0, 16, 0)]


def test_an_engine_without_slots_knows_only_want_of_time():
    it = Downgrades(None)
    assert taken(it, {Cause.MEMORY}, 0, 10) == [(0.0, None, 0)]
    assert not it.cheaper_opus


def test_a_small_batch_never_becomes_none():
    it = Downgrades(2)
    assert [width for _, width, _ in taken(it, {Cause.MEMORY}, 0, 10)] == [1]
