import logging

import pytest

from scripted_stage import HEART
from voxgate.gateway.adapters.names import BadNames, VoiceNames
from voxgate.synth.engine import Voice

NICOLE = Voice("nicole", "en-US", "scripted", "realtime", 24000)
VOICES = (HEART, NICOLE)


def test_a_name_is_whom_the_setting_says_then_who_is_called_so_then_the_default():
    names = VoiceNames(["nova = nicole", "alloy=heart"])

    assert [names.resolve(name, VOICES) for name in ("nova", "nicole", "alloy", "shimmer", "x7Q", None)] == [
        "nicole",
        "nicole",
        "heart",
        None,
        None,
        None,
    ]
    assert names.mapped == ("nova", "alloy")


def test_a_name_nobody_has_is_written_into_the_log_once_but_not_those_every_bot_brings(caplog):
    names = VoiceNames([])
    with caplog.at_level(logging.WARNING):
        for name in ("x7Q", "x7Q", "alloy", "heart"):
            names.resolve(name, VOICES)

    assert [record.getMessage() for record in caplog.records] == [
        "no voice 'x7Q' here: the default speaks for it (setting voice_names)"
    ]


def test_names_that_never_end_do_not_fill_the_memory(caplog):
    names = VoiceNames([])
    for number in range(1000):
        names.resolve(f"voice {number}", VOICES)

    assert len(caplog.records) == 256


@pytest.mark.parametrize("entry", ["alloy", "=heart", "alloy=", ""])
def test_an_entry_that_is_no_pair_is_refused(entry):
    with pytest.raises(BadNames, match="name=voice"):
        VoiceNames([entry])
