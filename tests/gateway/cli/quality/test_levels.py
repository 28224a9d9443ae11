from voxgate.gateway.cli.quality.levels import measure


async def test_a_few_sentences_have_the_level():
    _loudness, off, true_peak, clipped = await measure(6)

    assert off.value < 1.5
    assert true_peak.value > 0
    assert clipped.value == 0
