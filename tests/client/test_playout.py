import pytest

from voxgate.client.playout import PlayoutClock

RATE = 24000


def fed(*arrivals: tuple[int, float]) -> PlayoutClock:
    clock = PlayoutClock(RATE, asked_at=10.0)
    for start, at in arrivals:
        clock.feed(start, at)
    return clock


def test_before_the_first_audio_there_is_nothing():
    clock = fed()

    assert (clock.time_to_first_audio, clock.position(11.0), clock.heard(0, 11.0)) == (None, 0.0, 0)


def test_time_to_first_audio_counts_from_the_text():
    assert fed((0, 10.25), (480, 10.5)).time_to_first_audio == 0.25


def test_audio_that_stays_ahead_has_no_underrun():
    clock = fed((0, 11.0), (12000, 11.1), (24000, 11.75), (36000, 12.25))

    assert (clock.underruns, clock.underrun_seconds, clock.lowest_lead) == (0, 0.0, 0.25)


def test_audio_that_comes_late_is_an_underrun_and_stops_the_clock():
    clock = fed((0, 11.0), (24000, 12.5), (48000, 13.25), (72000, 14.25))

    assert (clock.underruns, clock.underrun_seconds, clock.largest_gap) == (1, 0.5, 0.5)
    assert clock.lowest_lead == -0.5
    assert clock.position(14.5) == 3.0


def test_underruns_add_up_and_the_largest_is_kept():
    clock = fed((0, 11.0), (24000, 12.25), (48000, 13.75))

    assert (clock.underruns, clock.underrun_seconds, clock.largest_gap) == (2, 0.75, 0.5)


def test_feed_returns_the_underrun_it_ended():
    clock = fed((0, 11.0))

    assert [clock.feed(24000, 12.0), clock.feed(48000, 13.5)] == [0.0, 0.5]


def test_jitter_below_what_a_sound_card_hides_is_no_underrun():
    assert fed((0, 11.0), (24000, 12.0005)).underruns == 0


@pytest.mark.parametrize(("now", "heard"), [(10.5, 0), (11.0, 0), (11.5, 12000), (20.0, 48000)])
def test_heard_follows_the_clock_up_to_what_was_received(now, heard):
    assert fed((0, 11.0)).heard(48000, now) == heard
