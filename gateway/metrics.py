"""What Prometheus is told, and the only file that knows its client.

Read from the parts' own counters when it is asked for, so that the hot path counts nothing twice; only waits are
observed as they happen, once per utterance. No label has an unbounded set of values. Of several gateways each tells its
own (`snapshot`), and the one that is asked tells all (`exposition_of`).
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder

from ..admission.answer import Outcome, Permit
from ..admission.breaker import Cause
from .house import House, clock
from .stage import Part

WAITS = 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.35, 0.5, 1.0, 2.5, 5.0  # seconds
PARTS = 0.0005, 0.001, 0.002, *WAITS
LAGS = 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5


class Metrics:
    """The metrics of one gateway process."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._registry = CollectorRegistry()
        self._first_audio = Histogram(
            "voxgate_first_audio_wait_seconds",
            "From the first segment of an utterance being there to its first audio being handed to the socket",
            ("protocol", "engine"),
            buckets=WAITS,
            registry=self._registry,
        )
        self._stage = Histogram(
            "voxgate_stage_seconds",
            "What the wait for a first audio was made of; the sums of all stages add up to it",
            ("stage",),
            buckets=PARTS,
            registry=self._registry,
        )
        self._queue_wait = Histogram(
            "voxgate_queue_wait_seconds",
            "How long newcomers waited for the permit they got",
            buckets=WAITS,
            registry=self._registry,
        )
        self._loop_lag = Histogram(
            "voxgate_loop_lag_seconds",
            "How late the event loop woke a timer",
            buckets=LAGS,
            registry=self._registry,
        )
        self._registry.register(self)  # pyright: ignore[reportArgumentType]
        house.on_first_audio.append(self._heard)
        house.on_took.append(self._took)
        house.on_queued.append(self._queue_wait.observe)

    def _heard(self, permit: Permit, wait_s: float, protocol: str) -> None:
        assert permit.ask is not None
        self._first_audio.labels(protocol, permit.ask.engine).observe(wait_s)

    def _took(self, part: Part, seconds: float) -> None:
        self._stage.labels(part.value).observe(seconds)

    def lagged(self, seconds: float) -> None:
        """A timer of the event loop came so late."""
        self._loop_lag.observe(max(0.0, seconds))

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """The text and its content type, as the `Accept` header asks for."""
        encode, content_type = _encoder(accept)
        return encode(self._registry), content_type

    def snapshot(self) -> bytes:
        """All of it, for the gateway that tells of several."""
        return _encode(
            [
                _Family(
                    metric.name,
                    metric.documentation,
                    metric.type,
                    [_Sample(sample.name, sample.labels, float(sample.value)) for sample in metric.samples],
                )
                for metric in self._registry.collect()
            ]
        )

    def collect(self) -> Iterator[Metric]:
        """Called by the registry, at every scrape."""
        yield from self._of_streams()
        yield from self._of_admission()
        yield from self._of_synthesis()

    def _of_streams(self) -> Iterator[Metric]:
        house, controller = self._house, self._house.controller
        yield _gauge("voxgate_sessions", "Connections open", len(house.connections))
        yield _gauge("voxgate_streams_active", "Utterances being spoken", controller.utterances)
        yield _counter("voxgate_underruns", "Times a listener was owed audio and had none", house.underruns)
        yield _counter("voxgate_underrun_seconds", "How long together", house.underrun_s)
        sockets = sum(connection.unsent_bytes for connection in house.connections)
        yield _gauge("voxgate_send_buffer_bytes", "Bytes that wait in this machine for their readers", sockets)

    def _of_admission(self) -> Iterator[Metric]:
        controller = self._house.controller
        outcomes = CounterMetricFamily("voxgate_utterances", "Utterances by how they ended", labels=["outcome"])
        for outcome in Outcome:
            outcomes.add_metric([outcome.value], sum(line.outcomes[outcome] for line in controller.lines.values()))
        yield outcomes
        refusals = CounterMetricFamily("voxgate_refusals", "What was refused, by reason", labels=["reason"])
        for reason, count in controller.refusals.items():
            refusals.add_metric([reason.value], count)
        yield refusals
        depth = GaugeMetricFamily("voxgate_queue_depth", "Newcomers that wait for a permit", labels=["engine"])
        state = GaugeMetricFamily(
            "voxgate_admission_state", "0 normal, 1 degraded, 2 half open, 3 open", labels=["engine"]
        )
        since = GaugeMetricFamily(
            "voxgate_admission_cause", "1 while this is a cause of the state", labels=["engine", "cause"]
        )
        steps = GaugeMetricFamily("voxgate_downgrade_steps", "Downgrades in force", labels=["engine", "cause"])
        limit = GaugeMetricFamily(
            "voxgate_concurrency_limit", "Utterances that may be spoken at once", labels=["engine"]
        )
        active = GaugeMetricFamily("voxgate_utterances_active", "Utterances being spoken", labels=["engine"])
        for name, line in controller.lines.items():
            depth.add_metric([name], len(line.asks))
            state.add_metric([name], line.breaker.state.value)
            for cause in Cause:
                since.add_metric([name, cause.value], cause in line.breaker.causes)
            steps.add_metric([name, Cause.MEMORY.value], line.downgrades.memory_level)
            steps.add_metric([name, Cause.TIME.value], line.downgrades.time_level)
            limit.add_metric([name], line.limit.current)
            active.add_metric([name], line.active)
        yield from (depth, state, since, steps, limit, active)
        free = GaugeMetricFamily("voxgate_vram_free_bytes", "Memory that is free", labels=["device"])
        total = GaugeMetricFamily("voxgate_vram_total_bytes", "Memory of the device", labels=["device"])
        age = GaugeMetricFamily("voxgate_vram_reading_age_seconds", "Since it was last asked", labels=["device"])
        now = clock()
        for device, reading in self._house.devices.items():
            age.add_metric([device], now - reading.at)
            if reading.free_bytes is not None and reading.total_bytes is not None:
                free.add_metric([device], reading.free_bytes)
                total.add_metric([device], reading.total_bytes)
        yield from (free, total, age)

    def _of_synthesis(self) -> Iterator[Metric]:
        synthesizer = self._house.synthesizer
        audio = CounterMetricFamily("voxgate_audio_seconds", "Audio that engines made", labels=["engine"])
        compute = CounterMetricFamily("voxgate_synth_seconds", "Time it took them", labels=["engine"])
        loads = CounterMetricFamily("voxgate_model_loads", "Engines loaded by workers", labels=["model", "event"])
        waiting = GaugeMetricFamily("voxgate_segments_waiting", "Segments that wait for an engine", labels=["engine"])
        width = GaugeMetricFamily(
            "voxgate_batch_width", "Segments being computed; of a stepwise engine in its last step", labels=["engine"]
        )
        idle = GaugeMetricFamily(
            "voxgate_pool_idle_bytes", "Device memory reserved for slots that nothing is in", labels=["engine"]
        )
        restarts = CounterMetricFamily(
            "voxgate_worker_restarts", "Engine workers that were replaced", labels=["engine"]
        )
        for name, engine in synthesizer.engines.items():
            audio.add_metric([name], engine.audio_s)
            compute.add_metric([name], engine.compute_s)
            loads.add_metric([name, "loaded"], engine.loads)
            waiting.add_metric([name], engine.backlog)
            width.add_metric([name], engine.batch_width)
            if engine.info is not None and engine.info.stepwise:
                idle.add_metric([name], engine.idle_pool_bytes)
            restarts.add_metric([name], engine.restarts)
        yield from (audio, compute, loads, waiting, width, idle, restarts)
        cache = CounterMetricFamily(
            "voxgate_cache_requests", "Look-ups of the caches of speech", labels=["level", "result"]
        )
        for (level, result), count in sorted(synthesizer.caches.requests.items()):
            cache.add_metric([level, result], count)
        yield cache


class _Sample(msgspec.Struct, frozen=True, array_like=True):
    name: str
    labels: dict[str, str]
    value: float


class _Family(msgspec.Struct, frozen=True, array_like=True):
    name: str
    text: str
    type: str
    samples: list[_Sample]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[_Family]).decode


def exposition_of(snapshots: Mapping[int, bytes | None], accept: str) -> tuple[bytes, str]:
    """What several gateways tell, by their numbers; None: one that did not answer."""
    encode, content_type = _encoder(accept)
    return encode(_Joined(snapshots)), content_type


def _encoder(accept: str) -> tuple[Callable[[Any], bytes], str]:
    try:
        return choose_encoder(accept)
    except (TypeError, ValueError):  # it trips over a version that is no number
        return choose_encoder("")


class _Joined:
    """The metrics of several gateways, each sample labelled with the number of the one it comes from.

    Not added up: one gateway that is replaced would make the sum of its counters and the others' fall a little, which
    Prometheus takes for a restart of all.
    """

    def __init__(self, snapshots: Mapping[int, bytes | None]) -> None:
        self._snapshots = snapshots

    def collect(self) -> Iterator[Metric]:
        families: dict[str, Metric] = {}
        up = GaugeMetricFamily("voxgate_gateway_up", "Whether this gateway process answers", labels=["gateway"])
        for number, snapshot in sorted(self._snapshots.items()):
            gateway = str(number)
            up.add_metric([gateway], snapshot is not None)
            for told in _decode(snapshot) if snapshot is not None else ():
                family = families.setdefault(told.name, Metric(told.name, told.text, told.type))
                for sample in told.samples:
                    family.add_sample(sample.name, {**sample.labels, "gateway": gateway}, sample.value)
        yield from (up, *families.values())


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value=value)


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)
