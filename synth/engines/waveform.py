"""From the voice's spectral frames to samples: the signal path of hibari, laid out for speed.

S = exp(lh) e^{i pi tanh(theta)} STFT(pulses(f0)) + exp(ln) Z + exp(lr) e^{i phi}, then one inverse STFT, as in
`hibari.dsp`, whose pulse train and overlap-add are used. Two things differ: frames are rows throughout, as the network
computes them, so that nothing is transposed; and the noise Z is a stretch of a table of normal noise instead of being
drawn for each call, which was 0.4 of the time (12.0 ms against 7.4 ms for 5.9 s of speech).
"""

import numpy as np
import scipy.fft
from hibari import dsp
from numpy.typing import NDArray

BINS = dsp.N_FFT // 2 + 1
PARTS = 5  # lh, theta, ln, lr, phi, side by side in a row of the network's head
NOISE_FRAMES = 2048  # 26 s: longer than any run of the network, so that a stretch of it does not repeat itself
_CEILING = np.float32(7.0)  # of the exponents, as in hibari
_PI = np.float32(np.pi)

Frames = NDArray[np.float32]  # [frames, PARTS * BINS]
Noise = NDArray[np.complex64]  # [frames, BINS]


def noise_table() -> Noise:
    """Complex normal noise [NOISE_FRAMES, BINS]; always the same."""
    parts = np.random.default_rng(0).standard_normal((NOISE_FRAMES, 2 * BINS), dtype=np.float32)
    return parts.view(np.complex64)


def stretch(table: Noise, frames: int, number: int) -> Noise:
    """`frames` rows of the table, which ones decided by `number` (any non-negative integer)."""
    if frames > len(table):
        table = np.tile(table, (-(-frames // len(table)), 1))
    begin = number % (len(table) - frames + 1)
    return table[begin : begin + frames]


def waveform(head: Frames, f0: NDArray[np.float32], noise: Noise) -> NDArray[np.float32]:
    """Samples [frames * 300] at 24 kHz. `f0` in Hz [frames]; `noise` has as many rows as `head`."""
    lh, theta, ln, lr, phi = (head[:, part * BINS : (part + 1) * BINS] for part in range(PARTS))
    spectrum = _pulse_spectrum(f0)
    term = np.empty_like(spectrum)

    size = _exp(lh)
    angle = np.tanh(theta)
    angle *= _PI
    part = np.cos(angle)
    np.multiply(part, size, out=term.real)
    np.sin(angle, out=part)
    np.multiply(part, size, out=term.imag)
    spectrum *= term

    np.multiply(noise, _exp(ln), out=term)
    spectrum += term

    size = _exp(lr)
    np.cos(phi, out=part)
    part *= size
    spectrum.real += part
    np.sin(phi, out=part)
    part *= size
    spectrum.imag += part
    return dsp.ola(spectrum.T)


def _pulse_spectrum(f0: NDArray[np.float32]) -> Noise:
    """STFT of the pulse train: [frames, BINS]."""
    padded = np.pad(dsp.pulses(f0), dsp.N_FFT // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, dsp.N_FFT)[:: dsp.HOP][: len(f0)]
    return scipy.fft.rfft(windows * dsp.WIN_SRC, axis=1, overwrite_x=True)  # pyright: ignore[reportReturnType]


def _exp(exponents: NDArray[np.float32]) -> NDArray[np.float32]:
    bounded = np.minimum(exponents, _CEILING)
    return np.exp(bounded, out=bounded)
