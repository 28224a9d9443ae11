from voxgate.gateway.errors import CLOSE_CODES, ERROR_CODES, NAMES


def test_every_code_stands_once_and_says_what_to_do():
    assert len(NAMES) == len(ERROR_CODES)
    assert all(row.meaning and row.remedy for row in ERROR_CODES)


def test_the_codes_are_those_of_the_protocol():
    codes = (
        "bad_message context_exists context_closed unknown_voice unsupported_codec unsupported_text text_too_long "
        "too_many_contexts overloaded rate_limited unauthorized voice_loading engine_failed slow_reader idle internal"
    )
    assert set(codes.split(" ")) == NAMES
    assert [code for code, _ in CLOSE_CODES] == [1000, 1001, 1007, 1008, 1009, 1011, 1013, 4408]
