"""Runs built engines: binds device memory, chooses the profile, submits, and throws away what was cancelled.

One execution context for each profile. A submission is asynchronous and holds on to its memory until the device has
passed it, also when nobody wants its result any more. TensorRT's module and CUDA are passed in: tests run this on a
small stand-in with the same surface; on a GPU it has not been executed.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .cuda import Cuda
from .errors import DeviceError, ProfileError

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Binding:
    """A tensor on the device."""

    address: int
    shape: Shape


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of an engine. `alias`: the input whose memory an output must be given."""

    name: str
    is_input: bool
    shape: Shape  # -1 where it is open
    alias: str | None


class Program:
    """An engine that can be run. `trt`: the module it was built with."""

    def __init__(self, trt: Any, log: Any, plan: bytes) -> None:
        """Raises `DeviceError` for a plan of another version or device."""
        self._runtime = trt.Runtime(log)
        self._engine = self._runtime.deserialize_cuda_engine(plan)
        if self._engine is None:
            said = "; ".join(text for _, text in getattr(log, "messages", [])[-3:])
            raise DeviceError(f"the engine was built for another device or version of TensorRT: {said}")
        self.ports = {port.name: port for port in map(self._port(trt), range(self._engine.num_io_tensors))}
        self._contexts: dict[int, Any] = {}

    def profile(self, shapes: Mapping[str, Shape]) -> int:
        """The narrowest profile that takes inputs of these shapes. Raises `ProfileError`."""
        fitting = []
        for index in range(self._engine.num_optimization_profiles):
            ranges = {name: self._engine.get_tensor_profile_shape(name, index) for name in shapes}
            if all(_fits(shapes[name], tuple(least), tuple(most)) for name, (least, _, most) in ranges.items()):
                fitting.append((sum(math.prod(most) for _, _, most in ranges.values()), index))
        if not fitting:
            raise ProfileError(f"no profile of the engine takes {dict(shapes)}")
        return min(fitting)[1]

    def submit(
        self,
        cuda: Cuda,
        bindings: Mapping[str, Binding],
        then: Callable[[], None] = lambda: None,
        release: Callable[[], None] = lambda: None,
    ) -> "Submission":
        """`enqueue` on the stream of `cuda`, and what is needed to wait for it.

        `then` asks the stream for what follows (downloads); `release` is called once the device has passed all of it.
        """
        self.enqueue(bindings, cuda.stream)
        then()
        return Submission(cuda, release)

    def enqueue(self, bindings: Mapping[str, Binding], stream: int) -> None:
        """Run once, after all that the stream has been asked for; its memory must stay until then.

        The first run of a profile makes its context, which a CUDA graph cannot capture. Raises `ProfileError` for
        tensors that are missing or do not fit, `DeviceError` where TensorRT refuses.
        """
        missing = self.ports.keys() - bindings.keys()
        unknown = bindings.keys() - self.ports.keys()
        if missing or unknown:
            raise ProfileError(f"tensors missing: {sorted(missing)}, unknown: {sorted(unknown)}")
        for port in self.ports.values():
            if port.alias and bindings[port.name].address != bindings[port.alias].address:
                raise ProfileError(f"{port.name} must lie where {port.alias} does")
        inputs = {name: bindings[name].shape for name, port in self.ports.items() if port.is_input}
        context = self._context(self.profile(inputs), stream)
        for name, shape in inputs.items():
            _must(context.set_input_shape(name, shape), f"the shape {shape} of {name}")
        for name, binding in bindings.items():
            _must(context.set_tensor_address(name, binding.address), f"the address of {name}")
        if lacking := context.infer_shapes():
            raise DeviceError(f"TensorRT wants to know more of {', '.join(lacking)}")
        _must(context.execute_async_v3(stream), "the execution")

    def _context(self, profile: int, stream: int) -> Any:
        if profile not in self._contexts:
            context = self._engine.create_execution_context()
            if context is None:
                raise DeviceError("no execution context could be made: the device has too little memory for it")
            _must(context.set_optimization_profile_async(profile, stream), f"profile {profile}")
            self._contexts[profile] = context
        return self._contexts[profile]

    def _port(self, trt: Any) -> Callable[[int], Port]:
        def read(index: int) -> Port:
            name = self._engine.get_tensor_name(index)
            is_input = self._engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            alias = None if is_input else self._engine.get_aliased_input_tensor(name) or None
            return Port(name, is_input, tuple(self._engine.get_tensor_shape(name)), alias)

        return read


class Submission:
    """One run on its way. Ends by `wait` or `cancel`, either of them once."""

    def __init__(self, cuda: Cuda, release: Callable[[], None]) -> None:
        self._cuda = cuda
        self._event = cuda.mark()
        self._release = release
        self._ended = False
        self.cancelled = False

    def wait(self) -> None:
        """Until its results are there."""
        self._cuda.wait(self._event)
        self._end()

    def cancel(self) -> None:
        """Nobody wants the results; the device computes them all the same, and memory stays until `reap`."""
        self.cancelled = True

    def reap(self) -> bool:
        """Whether the device has passed it; then its memory is released. Never waits."""
        if not self._ended and self._cuda.has_passed(self._event):
            self._end()
        return self._ended

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._cuda.forget(self._event)
            self._release()


def _fits(shape: Shape, least: Shape, most: Shape) -> bool:
    return len(shape) == len(least) and all(a <= n <= b for a, n, b in zip(least, shape, most, strict=True))


def _must(accepted: bool, what: str) -> None:
    if not accepted:
        raise DeviceError(f"TensorRT did not accept {what}")
