"""Telephone numbers, versions, addresses of machines, codes."""

import pytest

from voxgate.synth.text.normalize.normalizer import normalize


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("555-0123", "five five five, zero one two three"),
        ("(555) 123-4567", "five five five, one two three, four five six seven"),
        ("800-555-0199", "eight zero zero, five five five, zero one nine nine"),
        ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight"),
        ("call 5550123", "call five five five zero one two three"),
        ("phone: 555 0123", "phone: five five five, zero one two three"),
        ("4111 1111 1111 1111", "four one one one, one one one one, one one one one, one one one one"),
        ("123-45-6789", "one two three, four five, six seven eight nine"),
        ("10 20 30", "ten twenty thirty"),
        ("v2.0.1, version v3", "version two point zero point one, version three"),
        ("Python 3.11.7", "Python three point eleven point seven"),
        ("192.168.1.1", "one nine two dot one six eight dot one dot one"),
        ("10.0.0.1:8080", "one zero dot zero dot zero dot one port eight zero eight zero"),
        ("A4-17", "A four seventeen"),
        ("GPT-4, B2B, A380", "G P T four, B two B, A three eighty"),
        ("COVID-19, mp3, 4K", "COVID nineteen, M P three, four K"),
        ("agent 007", "agent zero zero seven"),
    ],
)
def test_is_spoken(text: str, spoken: str) -> None:
    assert normalize(text, "en-US").text == spoken
