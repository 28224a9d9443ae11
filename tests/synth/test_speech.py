from voxgate.synth.speech import pack_times, unpack_times, words_of


def test_times_are_those_of_so_many_words_or_none():
    times = pack_times([(0, 12), (12, 40_000_000)])

    assert unpack_times(times, 2) == [(0, 12), (12, 40_000_000)]
    assert unpack_times(times, 3) is None
    assert unpack_times(b"", 0) is None
    assert unpack_times(times[:-1], 2) is None


def test_words_are_what_is_between_white_space():
    assert [word[0] for word in words_of(" one,\ntwo\N{NO-BREAK SPACE}— 3 ")] == ["one,", "two", "—", "3"]
