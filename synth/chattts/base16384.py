"""base16384: binary data as Han characters, 14 bits in each; how ChatTTS' speakers are passed around.

Seven bytes are four characters from U+4E00 on, most significant bit first. A last group of fewer is padded with zero
bits, and U+3D00 plus its number of bytes follows it.
"""

_FIRST = 0x4E00
_TAIL = 0x3D00
_BITS = 14
_GROUP = 7  # bytes in a whole group


def encode(data: bytes) -> str:
    bits = len(data) * 8
    characters = -(-bits // _BITS)
    number = int.from_bytes(data) << characters * _BITS - bits
    text = "".join(chr(_FIRST + (number >> _BITS * n & 0x3FFF)) for n in reversed(range(characters)))
    rest = len(data) % _GROUP
    return text + (chr(_TAIL + rest) if rest else "")


def decode(text: str) -> bytes:
    """Raises `ValueError` for what `encode` never makes."""
    rest = ord(text[-1]) - _TAIL if text else 0
    if 0 < rest < _GROUP:
        text = text[:-1]
    else:
        rest = 0
    number = 0
    for at, character in enumerate(text):
        value = ord(character) - _FIRST
        if not 0 <= value < 1 << _BITS:
            raise ValueError(f"character {at} ({character!r}) is not base16384")
        number = number << _BITS | value
    bits = len(text) * _BITS
    last = -(-rest * 8 // _BITS)  # characters of the last group
    groups, odd = divmod(len(text) - last, 4)
    if odd or groups < 0:
        raise ValueError(f"{len(text)} characters are no whole number of groups")
    size = groups * _GROUP + rest
    if number & (1 << bits - size * 8) - 1:
        raise ValueError("the bits behind the last byte are not zero")
    return (number >> bits - size * 8).to_bytes(size)
