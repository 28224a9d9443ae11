from voxgate.gateway.cli.quality.understood import measure


async def test_a_few_sentences_are_understood_and_backwards_they_are_not():
    alone, over_wire, backwards = await measure(2)

    assert alone.value < 12  # one word is 2 %
    assert over_wire.value < 12
    assert backwards.kept
