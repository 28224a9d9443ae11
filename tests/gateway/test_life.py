from voxgate.gateway.life import TABLE, Action, Event, State


def test_no_transition_leads_back_to_unseen():
    assert all(
        transition.state is not State.UNSEEN for (state, _), transition in TABLE.items() if state is not State.UNSEEN
    )


def test_only_start_leaves_closed():
    leaving = [event for (state, event), to in TABLE.items() if state is State.CLOSED and to.state is not State.CLOSED]

    assert leaving == [Event.START]


def test_a_live_context_ends_in_exactly_the_three_ways():
    ending = {to.action for (state, _), to in TABLE.items() if state is not State.CLOSED and to.state is State.CLOSED}

    assert ending == {Action.DONE, Action.CANCEL, Action.FAIL}


def test_a_refused_message_changes_nothing():
    unmoved = {Action.REFUSE_EXISTS, Action.REFUSE_CLOSED, Action.COUNT_LATE, Action.IGNORE, Action.CANCEL_AGAIN}

    assert all(to.state is state for (state, _), to in TABLE.items() if to.action in unmoved)
