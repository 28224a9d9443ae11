import asyncio

import pytest

from voxgate.client.context import HIGH_EVENTS, LOW_EVENTS, Context
from voxgate.client.errors import ConnectionClosed, ContextError, ProtocolError
from voxgate.client.messages import Audio, Cancel, Cancelled, Done, End, Error, Flush, Played, Text


class Wire:
    """What a context says, and when it asks for reading to stop."""

    def __init__(self) -> None:
        self.said = []
        self.crowded = []
        self.reopened = []
        self.context = Context("c1", self.send, self.reopened.append, lambda _, full: self.crowded.append(full))

    async def send(self, message) -> None:
        self.said.append(message)

    def hear(self, *sequences: int) -> None:
        for sequence in sequences:
            self.context.receive(Audio(1, sequence, 480 * sequence, b"", sequence == 0, 0.0))


async def read(context: Context) -> list:
    return [event async for event in context]


async def test_what_the_caller_says_goes_out_in_order():
    wire = Wire()

    await wire.context.send("Hello")
    await wire.context.flush()
    await wire.context.played(480)
    await wire.context.cancel(played=960)
    await wire.context.end()

    assert wire.said == [Text("c1", "Hello"), Flush("c1"), Played("c1", 480), Cancel("c1", 960), End("c1")]


async def test_the_iteration_ends_with_done():
    wire = Wire()
    wire.hear(0, 1)
    wire.context.receive(Done("c1", 960))

    events = await read(wire.context)

    assert [type(event) for event in events] == [Audio, Audio, Done]
    assert await read(wire.context) == []


async def test_a_waiting_reader_is_woken():
    wire = Wire()
    reading = asyncio.ensure_future(read(wire.context))
    await asyncio.sleep(0)

    wire.context.receive(Cancelled("c1", 0, 0, ""))

    assert await reading == [Cancelled("c1", 0, 0, "")]


async def test_an_error_of_the_context_is_raised_after_what_came_before_it():
    wire = Wire()
    wire.hear(0)
    wire.context.receive(Error("overloaded", "c1", None, "no room", 1.5))

    assert isinstance(await anext(wire.context), Audio)
    with pytest.raises(ContextError, match="no room") as caught:
        await anext(wire.context)
    assert (caught.value.code, caught.value.retry_after) == ("overloaded", 1.5)


async def test_an_error_about_the_context_changes_nothing():
    wire = Wire()
    error = Error("bad_message", None, "c1", "?")
    wire.context.receive(error)
    wire.context.receive(Done("c1", 0))

    assert await read(wire.context) == [error, Done("c1", 0)]


async def test_the_loss_of_the_connection_is_raised():
    wire = Wire()
    wire.context.fail(ConnectionClosed(1006, ""))

    with pytest.raises(ConnectionClosed):
        await anext(wire.context)


@pytest.mark.parametrize("sequences", [(1,), (0, 2), (0, 0)])
async def test_a_gap_in_the_audio_is_a_protocol_error(sequences):
    wire = Wire()

    with pytest.raises(ProtocolError):
        wire.hear(*sequences)


async def test_a_reader_who_falls_behind_stops_the_socket_until_it_has_caught_up():
    wire = Wire()
    wire.hear(*range(HIGH_EVENTS + 10))
    assert wire.crowded == [True]

    for _ in range(HIGH_EVENTS + 10 - LOW_EVENTS - 1):
        await anext(wire.context)
    assert wire.crowded == [True]
    await anext(wire.context)

    assert wire.crowded == [True, False]


async def test_a_cancelled_context_drops_what_nobody_reads_instead_of_stopping_the_socket():
    wire = Wire()
    wire.hear(*range(HIGH_EVENTS))
    await wire.context.cancel()
    wire.hear(*range(HIGH_EVENTS, HIGH_EVENTS + 50))
    wire.context.receive(Cancelled("c1", 0, 0, ""))

    assert wire.crowded == [True, False]
    assert wire.context.dropped == 50
    assert (await read(wire.context))[-1] == Cancelled("c1", 0, 0, "")


async def test_cancelling_an_ended_context_asks_to_be_heard_again():
    wire = Wire()
    wire.context.receive(Done("c1", 960))
    await read(wire.context)

    await wire.context.cancel(played=480)

    assert (wire.reopened, wire.said) == ([wire.context], [Cancel("c1", 480)])


async def test_two_readers_at_once_are_refused():
    wire = Wire()
    first = asyncio.ensure_future(read(wire.context))
    await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="two at once"):
        await anext(wire.context)
    first.cancel()
