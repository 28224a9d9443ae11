import numpy as np

from talk import talking
from voxgate.gateway.cli.bench_afternoon import _afternoon, _figures
from voxgate.gateway.cli.bench_capacity import Level


async def test_the_afternoons_server_really_speaks():
    async with _afternoon() as (url, process_id), talking(url) as talk:
        heard = await talk.speak("c1", "Hello there. How are you?", codec="pcm_s16le")

    assert process_id > 0
    pcm = heard.pcm()
    assert len(pcm) > 24000
    assert np.abs(pcm.astype(int)).max() > 2000


def test_both_servers_are_told_in_the_same_figures():
    names = [figure.name for figure in _figures("x", Level(128, 1.0, 0.03, 0.05, 0, 0.007, 0.1))]

    assert names == [
        "x, 128 listeners: gapless",
        "x, 128 listeners: first audio p50",
        "x, 128 listeners: first audio p95",
        "x, 128 listeners: refused or failed",
        "x, 128 listeners: CPU per second of audio",
    ]
