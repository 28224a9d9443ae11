import pytest

from voxgate.admission.answer import Outcome, Permit
from voxgate.admission.controller import Controller
from voxgate.admission.controller import Limits as HouseLimits
from voxgate.admission.quotas import Quota
from voxgate.gateway.accounts import EVERYBODY, Account
from voxgate.gateway.desk import Desk
from voxgate.gateway.handshake import Rejection
from voxgate.gateway.session import Limits


def desk(*, connections: int = 2, ready: bool = True) -> Desk:
    return Desk(Controller(HouseLimits(connections=connections)), Limits(), ready=lambda: ready)


def admitted(answer: Permit | Rejection) -> Permit:
    assert isinstance(answer, Permit)
    return answer


def test_nobody_is_let_in_before_the_voices_are_ready():
    assert desk(ready=False).admit(EVERYBODY) == Rejection(503, "the voices are still loading", 1.0)


def test_a_place_is_free_again_when_its_permit_is_given_back():
    full = desk(connections=1)
    permit = admitted(full.admit(EVERYBODY))
    refused = full.admit(EVERYBODY)
    permit.release(Outcome.SERVED, 0.0)

    assert isinstance(refused, Rejection)
    assert (refused.status, refused.retry_after) == (503, 2.0)
    admitted(full.admit(EVERYBODY))


def test_an_account_that_has_what_it_may_have_is_told_so():
    one = Account("one", quota=Quota(connections=1))
    full = desk()
    admitted(full.admit(one))
    refused = full.admit(one)

    assert isinstance(refused, Rejection)
    assert refused.status == 429
    admitted(full.admit(Account("other")))


async def test_a_permit_is_given_back_where_accepting_fails():
    full = desk(connections=1)
    full.house = object()  # pyright: ignore[reportAttributeAccessIssue]

    async def send(message) -> None:
        raise OSError("gone")

    permit = admitted(full.admit(EVERYBODY))
    with pytest.raises(OSError, match="gone"):
        await full.serve(permit, EVERYBODY, send, send, None, accept={})  # pyright: ignore[reportArgumentType]

    admitted(full.admit(EVERYBODY))
