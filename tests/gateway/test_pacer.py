import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.gateway.pacer import SLACK_S, Pacer

FRAME = 0.02


def send_all_allowed(pacer: Pacer, now: float, owed_since: float = 0.0) -> int:
    packets = 0
    while pacer.may_send(now, FRAME):
        pacer.sent(now, FRAME, owed_since)
        packets += 1
    return packets


def test_first_packets_go_out_at_once_up_to_the_lead():
    pacer = Pacer(lead_s=2.0)

    assert send_all_allowed(pacer, now=100.0) == 100
    assert pacer.lead(100.0) == pytest.approx(2.0)


def test_a_full_listener_is_topped_up_by_quanta():
    pacer = Pacer(lead_s=2.0)
    send_all_allowed(pacer, now=0.0)

    assert pacer.opens_at(FRAME) == pytest.approx(2 / 3)
    assert not pacer.may_send(0.66, FRAME)
    assert send_all_allowed(pacer, now=0.67) == 33


def test_a_lead_of_zero_sends_the_next_packet_shortly_before_the_last_one_ends():
    pacer = Pacer(lead_s=0.0)

    assert send_all_allowed(pacer, now=0.0) == 2
    assert pacer.opens_at(FRAME) == pytest.approx(FRAME)
    assert send_all_allowed(pacer, now=0.021) == 1


def test_silence_earns_no_credit_for_a_burst():
    pacer = Pacer(lead_s=1.0)
    send_all_allowed(pacer, now=0.0)

    assert pacer.lead(60.0) == 0
    assert send_all_allowed(pacer, now=60.0) == 50


def test_running_dry_is_an_underrun_only_while_speech_is_owed():
    pacer = Pacer(lead_s=1.0)
    pacer.sent(0.0, FRAME, owed_since=0.0)

    pacer.sent(5.0, FRAME, owed_since=4.9)

    assert pacer.underruns.count == 1
    assert pacer.underruns.seconds == pytest.approx(0.1)


def test_speech_asked_for_after_running_dry_counts_from_the_asking():
    pacer = Pacer(lead_s=1.0)
    pacer.sent(0.0, FRAME, owed_since=0.0)

    pacer.sent(5.0, FRAME, owed_since=5.0)

    assert pacer.underruns.count == 0


def test_the_first_audio_is_never_an_underrun():
    pacer = Pacer(lead_s=1.0)

    pacer.sent(7.0, FRAME, owed_since=1.0)

    assert pacer.underruns.count == 0


def test_a_listener_that_reports_less_than_assumed_is_sent_less():
    pacer = Pacer(lead_s=1.0)
    send_all_allowed(pacer, now=0.0)

    pacer.played(0.8, 0.0)

    assert pacer.lead(0.8) == pytest.approx(1.0)
    assert not pacer.may_send(0.8, FRAME)


def test_a_listener_that_reports_more_than_assumed_earns_nothing():
    pacer = Pacer(lead_s=1.0)
    send_all_allowed(pacer, now=0.0)

    pacer.played(0.1, 1.0)

    assert pacer.lead(0.1) == pytest.approx(0.9)


@given(
    lead=st.floats(0, 5),
    frame=st.sampled_from([0.0025, 0.01, 0.02, 0.06, 0.12]),
    pauses=st.lists(st.floats(0, 3), max_size=60),
)
def test_the_lead_never_exceeds_what_was_agreed(lead: float, frame: float, pauses: list[float]):
    pacer = Pacer(lead)
    now = 0.0
    for pause in pauses:
        now += pause
        while pacer.may_send(now, frame):
            pacer.sent(now, frame, 0.0)
        assert pacer.lead(now) <= max(lead, frame + SLACK_S) + 1e-6
        assert pacer.opens_at(frame) > now - 1e-6


@given(lead=st.floats(0, 5), frame=st.sampled_from([0.01, 0.02, 0.06]))
def test_a_pacer_woken_when_it_asks_never_starves_its_listener(lead: float, frame: float):
    pacer = Pacer(lead)
    now = 0.0
    for _ in range(200):
        assert pacer.may_send(now, frame)
        while pacer.may_send(now, frame):
            pacer.sent(now, frame, 0.0)
        now = pacer.opens_at(frame) + 1e-9
    assert pacer.underruns.seconds < 1e-6
