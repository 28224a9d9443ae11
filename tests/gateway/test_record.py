from voxgate.gateway.pacer import Pacer
from voxgate.gateway.record import Record
from voxgate.gateway.timeline import Timeline


def record(heard: int | Pacer) -> Record:
    return Record("c1", 3.0, "One two.", sent=24_000, sample_rate=24_000, timeline=Timeline(24_000), heard=heard)


def test_the_clock_of_play_out_goes_on_up_to_what_was_sent():
    pacer = Pacer(2.0)
    pacer.sent(10.0, 1.0, owed_since=10.0)
    kept = record(pacer)

    assert [kept.heard_at(at) for at in (10.0, 10.5, 20.0)] == [0, 12_000, 24_000]


def test_a_late_report_fixes_what_was_heard_and_is_never_more_than_was_sent():
    kept = record(Pacer(2.0))
    kept.report(6_000)
    assert kept.cancelled(99.0).heard == 6_000

    kept.report(10**9)
    assert kept.cancelled(99.0).heard == 24_000
