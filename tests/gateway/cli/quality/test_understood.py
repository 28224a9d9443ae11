from voxgate.gateway.cli.quality.understood import measure


async def test_a_few_sentences_are_understood_and_backwards_they_are_not():
    alone, over_wire, backwards = await measure(3)

    assert alone.value < 5
    assert over_wire.kept
    assert backwards.kept
