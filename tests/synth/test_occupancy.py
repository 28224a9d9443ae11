import pytest

from voxgate.synth.occupancy import RESTART_S, Occupancy


@pytest.mark.parametrize(
    ("before", "busy", "slots", "wait_s"),
    [(0, 0, 4, 0.0), (0, 3, 4, 0.0), (0, 4, 4, 0.25), (1, 3, 4, 0.25), (3, 0, 4, 0.0), (2, 6, 4, 1.25)],
)
def test_who_finds_no_free_slot_waits_for_as_many_as_are_before_it(before: int, busy: int, slots: int, wait_s: float):
    assert Occupancy().predicted_wait(before=before, busy=busy, slots=slots) == wait_s


def test_what_segments_take_is_learned():
    occupancy = Occupancy()
    for _ in range(200):
        occupancy.measure(3.0)

    assert occupancy.predicted_wait(before=0, busy=2, slots=2) == pytest.approx(1.5, rel=0.01)


def test_without_a_worker_it_takes_a_restart():
    assert Occupancy().predicted_wait(before=0, busy=0, slots=0) == RESTART_S
