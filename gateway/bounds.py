"""The settings of admission, as its parts want them."""

import math

from ..admission.breaker import BreakerSettings
from ..admission.controller import Controller, Forecast, Limits
from ..admission.limit import LimitSettings
from ..admission.queue import QueueSettings
from ..admission.quotas import Quota
from .config import Config, ConfigError

UTTERANCES_PER_CORE = 100  # the plateau measured by `voxgate bench capacity`, to begin with
MOST_PER_CORE = 400  # what the adaptive limit may find a faster machine to carry


def controller(config: Config, cores: int, forecast: Forecast) -> Controller:
    """Raises `ConfigError` for settings that contradict each other."""
    if not math.isfinite(config.first_audio_target_s):
        raise ConfigError(f"first_audio_target_s must be over 0 and finite, not {config.first_audio_target_s:g}")
    if not 0 < config.memory_recover < config.memory_degrade < config.memory_open <= 1:
        raise ConfigError(
            f"0 < memory_recover ({config.memory_recover:g}) < memory_degrade ({config.memory_degrade:g}) < "
            f"memory_open ({config.memory_open:g}) <= 1 must hold"
        )
    ceiling = config.max_utterances or max(MOST_PER_CORE * cores, config.min_utterances)
    initial = min(config.max_utterances or ceiling, max(UTTERANCES_PER_CORE * cores, config.min_utterances))
    try:
        limits = Limits(
            connections=config.max_connections,
            utterances=ceiling,
            segments=config.max_queued_segments,
            limit=LimitSettings(
                initial=initial,
                floor=min(config.min_utterances, initial),
                ceiling=ceiling,
                target_s=config.first_audio_target_s,
            ),
            breaker=BreakerSettings(
                degrade=config.memory_degrade,
                recover=config.memory_recover,
                open=config.memory_open,
                failures=config.engine_failures,
                degrade_dwell_s=config.degrade_dwell_s,
                recover_dwell_s=config.recover_dwell_s,
                open_dwell_s=config.open_dwell_s,
                probe_after_s=config.probe_after_s,
                target_s=config.first_audio_target_s,
            ),
            queue=QueueSettings(waiting=config.max_waiting),
        )
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    return Controller(limits, forecast=forecast)


def key_quota(config: Config) -> Quota:
    """What each key may use that has no line of its own in the accounts file."""
    return _quota(config.key_connections, config.key_contexts, config.key_utterances, config.key_characters_per_minute)


def address_quota(config: Config) -> Quota:
    """What each address without a key may use."""
    return _quota(
        config.address_connections,
        config.address_contexts,
        config.address_utterances,
        config.address_characters_per_minute,
    )


def _quota(connections: int, contexts: int, utterances: int, characters_per_minute: int) -> Quota:
    return Quota(connections or None, contexts or None, utterances or None, characters_per_minute or None)
