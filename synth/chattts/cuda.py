"""Memory, streams and events of a GPU through cuda-python, every answer checked.

What it calls is passed in, because tests run it on host memory; `runtime()` is the real one. No test has executed it
on a GPU.
"""

import contextlib
import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DeviceError, OutOfMemory

_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
_NOT_READY = 600  # cudaErrorNotReady
_TO_DEVICE, _TO_HOST = 1, 2  # cudaMemcpyKind
_NON_BLOCKING = 1  # cudaStreamNonBlocking: TensorRT must not run on the default stream
_NO_TIMING = 2  # cudaEventDisableTiming


def runtime() -> Any:
    """The CUDA runtime of the GPU at hand. Raises `DeviceError`."""
    try:
        from cuda.bindings import runtime as cudart  # pyright: ignore[reportAttributeAccessIssue]
    except ImportError as error:
        raise DeviceError(f"cuda-python is not installed: {error}") from error
    status, count = cudart.cudaGetDeviceCount()
    if status.value or not count:
        raise DeviceError(f"no GPU can be used: {status.name}")
    return cudart


class Cuda:
    """What this process holds on one device. `close` gives all of it back, once the device is done with it."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self._device: set[int] = set()
        self._pinned: set[int] = set()
        self.stream = self._call("cudaStreamCreateWithFlags", _NON_BLOCKING)

    def allocate(self, size: int) -> int:
        """Address of `size` bytes of device memory. Raises `OutOfMemory`."""
        address = int(self._call("cudaMalloc", max(size, 1)))
        self._device.add(address)
        return address

    def pinned(self, size: int) -> int:
        """Address of `size` bytes of host memory that the device can copy to and from by itself."""
        address = int(self._call("cudaMallocHost", max(size, 1)))
        self._pinned.add(address)
        return address

    def free(self, address: int) -> None:
        if address in self._device:
            self._device.remove(address)
            self._call("cudaFree", address)
        else:
            self._pinned.remove(address)
            self._call("cudaFreeHost", address)

    def upload(self, address: int, pinned: int, size: int) -> None:
        """Ask for a copy; `pinned` must stay as it is until the device has got there."""
        kind = self._kind(_TO_DEVICE)
        self._call("cudaMemcpyAsync", address, pinned, size, kind, self.stream)

    def download(self, pinned: int, address: int, size: int) -> None:
        self._call("cudaMemcpyAsync", pinned, address, size, self._kind(_TO_HOST), self.stream)

    def clear(self, address: int, size: int) -> None:
        self._call("cudaMemsetAsync", address, 0, size, self.stream)

    def mark(self) -> Any:
        """An event at the end of all that has been asked for so far."""
        event = self._call("cudaEventCreateWithFlags", _NO_TIMING)
        self._call("cudaEventRecord", event, self.stream)
        return event

    def has_passed(self, event: Any) -> bool:
        (status,) = self._api.cudaEventQuery(event)
        if int(status) == _NOT_READY:
            return False
        self._check("cudaEventQuery", status)
        return True

    def wait(self, event: Any) -> None:
        self._call("cudaEventSynchronize", event)

    def forget(self, event: Any) -> None:
        self._call("cudaEventDestroy", event)

    def settle(self) -> None:
        self._call("cudaStreamSynchronize", self.stream)

    def close(self) -> None:
        self.settle()
        for address in [*self._device, *self._pinned]:
            self.free(address)
        self._call("cudaStreamDestroy", self.stream)

    def _kind(self, number: int) -> Any:
        return self._api.cudaMemcpyKind(number)

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *results = getattr(self._api, name)(*arguments)
        self._check(name, status)
        return results[0] if results else None

    def _check(self, name: str, status: Any) -> None:
        code = int(status)
        if code == _OUT_OF_MEMORY:
            raise OutOfMemory(f"{name}: the device has too little free memory")
        if code:
            raise DeviceError(f"{name}: {getattr(status, 'name', code)}")


@contextlib.contextmanager
def opened(api: Any) -> Iterator[Cuda]:
    cuda = Cuda(api)
    try:
        yield cuda
    finally:
        cuda.close()


def view(pinned: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Pinned memory as an array; it must not outlive the memory."""
    size = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(memoryview((ctypes.c_char * size).from_address(pinned)), dtype).reshape(shape)
