import json

import numpy as np

from scripted_stage import HEART, ScriptedStage
from voxgate.codecs.packetizer import Packet, choose_format
from voxgate.gateway import wire
from voxgate.gateway.context import Context, Settings
from voxgate.gateway.dialect import Item, Spoken
from voxgate.gateway.native import NATIVE
from voxgate.synth.segment import Style


def said(event) -> list[Item]:
    out: list[Item] = []
    NATIVE.say(event, out)
    return out


def test_a_message_is_one_call():
    assert NATIVE.hear('{"type":"text","context":"c1","text":"Hi"}') == (wire.Text("c1", "Hi"),)


def test_text_with_words_is_told_by_its_words_and_other_text_not_at_all():
    words = (("Hi", 0.1, 0.3, 0),)
    (message,) = said(Spoken("c1", 0.0, 0.5, "Hi ", 0, words, estimated=True))

    assert json.loads(str(message)) == {
        "type": "words",
        "context": "c1",
        "words": [["Hi", 0.1, 0.3, 0]],
        "estimated": True,
    }
    assert said(Spoken("c1", 0.5, 0.9, " — ", 3, (), estimated=True)) == []


def test_packets_are_one_message_behind_a_header_that_says_where_they_begin():
    form = choose_format("pcm_s16le", 24000, 20, 24000)
    settings = Settings(HEART, Style("heart"), form, 2.0, timestamps=False)
    context = Context("c1", 7, settings, ScriptedStage(), NATIVE, now=0.0)
    context.sequence = 3
    payload = np.arange(480, dtype="<i2").tobytes()
    out: list[Item] = []
    NATIVE.audio(context, [Packet(payload, 960, 1440), Packet(payload, 1440, 1920)], out)

    assert out == [wire.HEADER.pack(1, 0, 7, 3, 960) + 2 * payload]
