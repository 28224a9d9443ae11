import numpy as np
import pytest

from voxgate.gateway.cli.quality.clicks import Sound, flux, judge

RATE = 24000


def speechlike(seconds: float = 2.0) -> np.ndarray:
    """Bursts of a harmonic tone with soft edges."""
    at = np.arange(int(seconds * RATE)) / RATE
    tone = sum(np.sin(2 * np.pi * 180 * n * at) / n for n in range(1, 12))
    return (3000 * tone * np.clip(np.sin(2 * np.pi * 2 * at), 0, 1) ** 2).astype(np.int16)


def test_a_join_in_silence_is_none():
    pcm = speechlike()

    verdict = judge([Sound(pcm, (RATE * 3 // 8,))], RATE)

    assert (verdict.joins, verdict.clicks_by_step, verdict.clicks_by_flux) == (1, 0, 0)


@pytest.mark.parametrize("offset", [-40, 0, 40])  # samples: a click somewhere near the join
def test_a_click_at_a_join_is_one_by_both_measures(offset: int):
    pcm = speechlike()
    at = RATE * 3 // 8
    pcm[at + offset : at + offset + 12] = 20_000

    verdict = judge([Sound(pcm, (at,))], RATE)

    assert (verdict.clicks_by_step, verdict.clicks_by_flux) == (1, 1)
    assert verdict.worst_step > 1


def test_a_click_elsewhere_is_not_the_joins():
    pcm = speechlike()
    pcm[1000:1012] = 20_000

    verdict = judge([Sound(pcm, (RATE * 3 // 8,))], RATE)

    assert (verdict.clicks_by_step, verdict.clicks_by_flux) == (0, 0)


def test_flux_is_what_is_new_in_the_spectrum():
    signal = np.concatenate([np.zeros(960), np.sin(np.arange(960))]).astype(np.float32)

    grown = flux(signal, 240, 60)

    assert grown[:11].max() == 0
    assert grown[11:17].max() > 1
    assert grown[20:].max() < 0.1


def test_what_is_shorter_than_a_window_has_no_flux():
    assert len(flux(np.zeros(100, np.float32), 240, 60)) == 0
