import pytest

from voxgate.admission.answer import Ask, Outcome, Permit


def test_a_permit_is_given_back_with_how_it_ended_and_only_once():
    heard = []
    permit = Permit(lambda permit, outcome, now: heard.append((permit.ask, outcome, now)), Ask(1, "hibari"))

    permit.release(Outcome.SERVED, 7.0)

    assert heard == [(Ask(1, "hibari"), Outcome.SERVED, 7.0)]
    with pytest.raises(RuntimeError):
        permit.release(Outcome.SERVED, 8.0)
