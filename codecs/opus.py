"""libopus: encode and decode mono frames of 16-bit PCM. The only file that touches the library.

Knows no resampling, no context and no container. The functions of the library are called through prototypes of our
own, with one output buffer per encoder: the binding's classes copy every frame twice and allocate its output anew.
All calls run without the GIL. An encoder or decoder may be used by one thread at a time.

    OpusError
"""

import ctypes
import weakref
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray
from opuslib_next.api import libopus

OPUS_RATES = (8000, 12000, 16000, 24000, 48000)  # Hz, what an encoder takes (RFC 6716, section 2)
OPUS_FRAME_MS = (2.5, 5, 10, 20, 40, 60, 80, 100, 120)  # one packet, opus_encode()

_LONGEST_FRAME_MS = 120
# Recommended by opus_encode(). 120 ms at 80 kbit/s are 1200 bytes, and constrained VBR stays near.
_MAX_PACKET_BYTES = 4000


class OpusError(RuntimeError):
    """libopus refused. `code` is its negative error number."""

    def __init__(self, doing: str, code: int):
        super().__init__(f"{doing}: {_strerror(code).decode('ascii', 'replace')} ({code})")
        self.code = code


class Application(IntEnum):
    """What the encoder optimizes for: OPUS_APPLICATION_*."""

    VOIP = 2048
    AUDIO = 2049
    RESTRICTED_LOWDELAY = 2051


class RateControl(IntEnum):
    """How closely packets keep to the bitrate: OPUS_SET_VBR, OPUS_SET_VBR_CONSTRAINT."""

    CBR = 0
    VBR = 1
    CONSTRAINED_VBR = 2


@dataclass(frozen=True, slots=True)
class OpusSettings:
    """How to encode. In-band error correction and discontinuous transmission stay off: the wire loses nothing."""

    application: Application
    complexity: int  # 0 … 10
    bitrate: int  # bits per second
    rate_control: RateControl = RateControl.CONSTRAINED_VBR
    voice_hint: bool = False  # OPUS_SET_SIGNAL(VOICE) instead of letting the encoder guess


def shipped(rate: int) -> OpusSettings:
    """What listeners get at `rate` Hz, chosen by measurement in docs/opus.md; libopus then uses CELT for all of it."""
    bitrate = {8000: 32000, 12000: 48000, 16000: 48000, 24000: 64000}.get(rate, 80000)
    return OpusSettings(Application.AUDIO, complexity=1, bitrate=bitrate)


def economical(rate: int) -> OpusSettings:
    """While the machine is short of time: three quarters of the CPU of `shipped` (24 kHz: 1.11 against 1.45 ms per
    second of speech), and PESQ 4.08 instead of 4.24 (docs/opus.md)."""
    return OpusSettings(Application.AUDIO, complexity=0, bitrate=min(48000, shipped(rate).bitrate))


class OpusEncoder:
    """One stream of frames of `frame_samples` at `rate` Hz into packets, in order; as `shipped` unless told."""

    def __init__(self, rate: int, frame_samples: int, settings: OpusSettings | None = None):
        settings = settings or shipped(rate)
        code = ctypes.c_int()
        state = _encoder_create(rate, 1, settings.application, ctypes.byref(code))
        if not state:
            raise OpusError("creating an encoder", code.value)
        self._state: int = state
        weakref.finalize(self, _encoder_destroy, state).atexit = False
        self._frame_samples = frame_samples
        self._packet = ctypes.create_string_buffer(_MAX_PACKET_BYTES)
        for request, value in (
            (_SET_COMPLEXITY, settings.complexity),
            (_SET_BITRATE, settings.bitrate),
            (_SET_VBR, int(settings.rate_control is not RateControl.CBR)),
            (_SET_VBR_CONSTRAINT, int(settings.rate_control is RateControl.CONSTRAINED_VBR)),
            (_SET_SIGNAL, _SIGNAL_VOICE if settings.voice_hint else _AUTO),
        ):
            _check("setting up an encoder", _encoder_ctl(state, request, ctypes.c_int(value)))

    @property
    def lookahead(self) -> int:
        """Samples by which decoded audio comes late: what a decoder drops at the start."""
        value = ctypes.c_int()
        _check("asking for the look-ahead", _encoder_ctl(self._state, _GET_LOOKAHEAD, ctypes.byref(value)))
        return value.value

    def encode(self, pcm: NDArray[np.int16]) -> list[bytes]:
        """One packet for each frame of `pcm`, which is contiguous and holds whole frames only."""
        if len(pcm) % self._frame_samples or not pcm.flags.c_contiguous or pcm.dtype != np.int16:
            raise ValueError(f"not contiguous int16 frames of {self._frame_samples} samples: {len(pcm)} {pcm.dtype}")
        packets: list[bytes] = []
        out = ctypes.addressof(self._packet)
        frame_bytes = 2 * self._frame_samples
        first = pcm.ctypes.data
        for frame in range(first, first + 2 * len(pcm), frame_bytes):
            length = _check("encoding", _encode(self._state, frame, self._frame_samples, out, _MAX_PACKET_BYTES))
            packets.append(ctypes.string_at(out, length))
        return packets


class OpusDecoder:
    """One stream of packets into PCM at `rate` Hz, in order, look-ahead included."""

    def __init__(self, rate: int):
        code = ctypes.c_int()
        state = _decoder_create(rate, 1, ctypes.byref(code))
        if not state:
            raise OpusError("creating a decoder", code.value)
        self._state: int = state
        weakref.finalize(self, _decoder_destroy, state).atexit = False
        self._pcm = np.empty(rate * _LONGEST_FRAME_MS // 1000, np.int16)

    def decode(self, packet: bytes) -> NDArray[np.int16]:
        """The samples of one packet, all of its frames."""
        room = len(self._pcm)
        length = _check("decoding", _decode(self._state, packet, len(packet), self._pcm.ctypes.data, room, 0))
        return self._pcm[:length].copy()


@cache
def lookahead(rate: int) -> int:
    """The look-ahead of an encoder with the shipped settings, in samples at `rate` Hz."""
    return OpusEncoder(rate, rate // 50).lookahead


# --- the library -----------------------------------------------------------------------------------------------------

# opus_defines.h
_SET_BITRATE = 4002
_SET_VBR = 4006
_SET_COMPLEXITY = 4010
_SET_VBR_CONSTRAINT = 4020
_SET_SIGNAL = 4024
_GET_LOOKAHEAD = 4027
_SIGNAL_VOICE = 3001
_AUTO = -1000


def _prototype(name: str, result: type | None, *arguments: type):
    # Indexing gives a function object of our own; the attribute is the binding's, with its prototypes.
    function = libopus[name]
    function.restype = result
    function.argtypes = arguments
    return function


_int, _int32, _pointer = ctypes.c_int, ctypes.c_int32, ctypes.c_void_p
_strerror = _prototype("opus_strerror", ctypes.c_char_p, _int)
_encoder_create = _prototype("opus_encoder_create", _pointer, _int32, _int, _int, _pointer)
_encoder_destroy = _prototype("opus_encoder_destroy", None, _pointer)
# Variadic: the two fixed arguments only, so that ctypes passes the third as the platform passes varargs.
_encoder_ctl = _prototype("opus_encoder_ctl", _int, _pointer, _int)
_encode = _prototype("opus_encode", _int32, _pointer, _pointer, _int, _pointer, _int32)
_decoder_create = _prototype("opus_decoder_create", _pointer, _int32, _int, _pointer)
_decoder_destroy = _prototype("opus_decoder_destroy", None, _pointer)
_decode = _prototype("opus_decode", _int, _pointer, ctypes.c_char_p, _int32, _pointer, _int, _int)


def _check(doing: str, result: int) -> int:
    if result < 0:
        raise OpusError(doing, result)
    return result
