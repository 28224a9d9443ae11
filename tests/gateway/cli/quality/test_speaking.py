import numpy as np

from voxgate.client import connect
from voxgate.gateway.cli.quality.speaking import Bare, hear, hear_all

TEXT = "The boats went out. They came back before the morning, and nobody knew."


async def test_the_server_says_what_the_bare_engine_says(server: str):
    take = Bare().speak(TEXT)
    async with connect(server) as connection:
        (whole,) = await hear_all(connection, [TEXT], "pcm_s16le")
        in_words = await hear(connection, TEXT, "pcm_s16le", whole=False)
        opus = await hear(connection, TEXT)

    assert np.array_equal(whole, take.pcm)
    assert np.array_equal(in_words, take.pcm)
    assert len(opus) == len(take.pcm)
    assert len(take.joins) == 1
    assert np.abs(take.pcm[take.joins[0] - 20 : take.joins[0] + 20]).max() < 200
