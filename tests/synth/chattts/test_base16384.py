import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.chattts.base16384 import decode, encode

# What another implementation (pybase16384 0.3.9) makes of the bytes 200, 201, 202, …
PUBLISHED = [
    "",
    "\u8000\u3d01",
    "\u8032\u5e00\u3d02",
    "\u8032\u6aa0\u3d03",
    "\u8032\u6aac\u7a00\u3d04",
    "\u8032\u6aac\u7d30\u3d05",
    "\u8032\u6aac\u7d33\u5b00\u3d06",
    "\u8032\u6aac\u7d33\u5bce",
    "\u8032\u6aac\u7d33\u5bce\u81c0\u3d01",
]


@pytest.mark.parametrize(("size", "text"), list(enumerate(PUBLISHED)))
def test_bytes_are_the_characters_that_others_make_of_them(size, text):
    data = bytes(range(200, 200 + size))

    assert encode(data) == text
    assert decode(text) == data


@given(st.binary(max_size=60))
def test_what_was_encoded_is_decoded(data):
    assert decode(encode(data)) == data


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "\u8032\u6aac\u7d33",  # three characters, no tail
        "\u3d01",  # a tail of nothing
        "\u8001\u3d01",  # a bit behind the last byte
        "\u8032\u3d05",  # five bytes in one character
        "\u3d01\u8000",
    ],
)
def test_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r"base16384|groups|bits"):
        decode(text)
