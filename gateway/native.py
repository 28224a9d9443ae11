"""The native wire as a dialect: messages as wire.py has them, audio behind its binary header."""

from ..codecs.packetizer import WIRE_CODECS, Packet, pack_audio
from . import wire
from .context import Context
from .dialect import Call, Event, Item, Spoken


class Native:
    """`voxgate.v1`. Holds nothing of a connection, so that one serves all of them."""

    protocol = wire.PROTOCOL
    codecs = WIRE_CODECS

    def __init__(self) -> None:
        self.later: list[Call] = []

    def hear(self, message: str) -> tuple[Call, ...]:
        return (wire.parse(message),)

    def say(self, event: Event, out: list[Item]) -> None:
        if isinstance(event, Spoken):
            if not event.words:
                return
            event = wire.Words(event.context, event.words, estimated=event.estimated)
        out.append(wire.serialize(event))

    def audio(self, context: Context, packets: list[Packet], out: list[Item]) -> None:
        header = wire.audio_header(
            first=context.sequence == 0, stream=context.stream, sequence=context.sequence, start=packets[0].start
        )
        out.append(header + pack_audio(context.settings.form, packets))


NATIVE = Native()
