"""TensorRT's and CUDA's surface on host memory: a plan is an ONNX graph that onnxruntime runs.

Streams are lazy: what a stream is asked for happens when somebody waits for it, as late as a GPU might. So memory that
is freed or changed too early is caught. `OPEN` counts what has been allocated and not freed.
"""

import ctypes
import json
from collections.abc import Callable, Mapping
from enum import Enum, IntEnum
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnxruntime as ort

_TYPES = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64}


# --- the CUDA runtime -------------------------------------------------------------------------------------------------


class cudaError_t(IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidValue = 1
    cudaErrorNotReady = 600


class cudaMemcpyKind(IntEnum):
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2


OK = cudaError_t.cudaSuccess


class Stream:
    def __init__(self) -> None:
        self.pending: list[Callable[[], object]] = []

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        while self.pending and not until():
            self.pending.pop(0)()


class HostCuda:
    """The functions of `cuda.bindings.runtime` that cuda.py calls."""

    cudaMemcpyKind = cudaMemcpyKind

    def __init__(self, total_bytes: int = 1 << 30, *, foreign: bool = False) -> None:
        """`foreign`: memory of others (torch's) is taken on trust."""
        self.foreign = foreign
        self.memory: dict[int, Any] = {}
        self.left = total_bytes
        self.streams: dict[int, Stream] = {}
        self.events: dict[int, list[Any]] = {}  # [stream, has passed]

    def cudaMalloc(self, size: int) -> tuple[Any, int]:
        if size > self.left:
            return cudaError_t.cudaErrorMemoryAllocation, 0
        buffer = ctypes.create_string_buffer(size)
        self.left -= size
        self.memory[ctypes.addressof(buffer)] = buffer
        return OK, ctypes.addressof(buffer)

    def cudaFree(self, devPtr: int) -> tuple[Any]:
        buffer = self.memory.pop(devPtr)
        self.left += len(buffer)
        ctypes.memset(devPtr, 0x7F, len(buffer))  # whoever still reads it shall notice
        return (OK,)

    def cudaMallocHost(self, size: int) -> tuple[Any, int]:
        return self.cudaMalloc(size)

    def cudaFreeHost(self, ptr: int) -> tuple[Any]:
        return self.cudaFree(ptr)

    def cudaStreamCreateWithFlags(self, flags: int) -> tuple[Any, int]:
        self.streams[len(self.streams) + 1] = Stream()
        return OK, len(self.streams)

    def cudaStreamSynchronize(self, stream: int) -> tuple[Any]:
        self.streams[stream].run()
        return (OK,)

    def cudaStreamDestroy(self, stream: int) -> tuple[Any]:
        assert not self.streams.pop(stream).pending
        return (OK,)

    def cudaMemcpyAsync(self, dst: int, src: int, count: int, kind: Any, stream: int) -> tuple[Any]:
        if not isinstance(kind, cudaMemcpyKind):
            return (cudaError_t.cudaErrorInvalidValue,)
        self.streams[stream].pending.append(lambda: ctypes.memmove(dst, src, count))
        return (OK,)

    def cudaMemsetAsync(self, devPtr: int, value: int, count: int, stream: int) -> tuple[Any]:
        self.streams[stream].pending.append(lambda: ctypes.memset(devPtr, value, count))
        return (OK,)

    def cudaEventCreateWithFlags(self, flags: int) -> tuple[Any, int]:
        self.events[len(self.events) + 1000] = [None, False]
        return OK, max(self.events)

    def cudaEventRecord(self, event: int, stream: int) -> tuple[Any]:
        record = self.events[event]
        record[0] = stream
        self.streams[stream].pending.append(lambda: record.__setitem__(1, True))
        return (OK,)

    def cudaEventQuery(self, event: int) -> tuple[Any]:
        return (OK if self.events[event][1] else cudaError_t.cudaErrorNotReady,)

    def cudaEventSynchronize(self, event: int) -> tuple[Any]:
        record = self.events[event]
        self.streams[record[0]].run(until=lambda: record[1])
        return (OK,)

    def cudaEventDestroy(self, event: int) -> tuple[Any]:
        self.events[event][0] = -1
        return (OK,)


# --- TensorRT ---------------------------------------------------------------------------------------------------------


class TensorIOMode(Enum):
    INPUT = 1
    OUTPUT = 2


def plan_of(onnx: bytes, inputs: Mapping[str, Any], profiles: list[dict[str, Any]]) -> bytes:
    """What `deserialize_cuda_engine` takes here. `profiles`: (least, best, most) shape of every input."""
    head = json.dumps({"inputs": list(inputs), "profiles": profiles}).encode()
    return len(head).to_bytes(8) + head + onnx


class IExecutionContext:
    def __init__(self, engine: "ICudaEngine") -> None:
        self.engine = engine
        self.profile = -1
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}

    def set_optimization_profile_async(self, profile_index: int, stream_handle: int) -> bool:
        self.profile = profile_index
        return 0 <= profile_index < self.engine.num_optimization_profiles

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        least, _, most = self.engine.get_tensor_profile_shape(name, self.profile)
        self.shapes[name] = tuple(shape)
        return all(a <= n <= b for a, n, b in zip(least, shape, most, strict=True))

    def set_tensor_address(self, name: str, memory: int) -> bool:
        self.addresses[name] = memory
        return name in self.engine.names

    def infer_shapes(self) -> list[str]:
        return sorted(set(self.engine.inputs) - set(self.shapes))

    def execute_async_v3(self, stream_handle: int) -> bool:
        if set(self.addresses) != set(self.engine.names):
            return False
        shapes, addresses = dict(self.shapes), dict(self.addresses)
        self.engine.cuda.streams[stream_handle].pending.append(lambda: self._execute(shapes, addresses))
        return True

    def _execute(self, shapes: dict[str, tuple[int, ...]], addresses: dict[str, int]) -> None:
        session = self.engine.session
        feed = {}
        for given in session.get_inputs():
            kind, shape = np.dtype(_TYPES[given.type]), shapes[given.name]
            self.engine.check(addresses[given.name], int(np.prod(shape)) * kind.itemsize)
            data = ctypes.string_at(addresses[given.name], int(np.prod(shape)) * kind.itemsize)
            feed[given.name] = np.frombuffer(data, kind).reshape(shape)
        for made, value in zip(session.get_outputs(), session.run(None, feed), strict=True):
            data = np.ascontiguousarray(value).tobytes()
            self.engine.check(addresses[made.name], len(data))
            ctypes.memmove(addresses[made.name], data, len(data))


class ICudaEngine:
    def __init__(self, cuda: HostCuda, plan: bytes) -> None:
        size = int.from_bytes(plan[:8])
        head = json.loads(plan[8 : 8 + size])
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        self.session = ort.InferenceSession(plan[8 + size :], options, providers=["CPUExecutionProvider"])
        self.cuda = cuda
        self.inputs: list[str] = head["inputs"]
        self.profiles: list[dict[str, Any]] = head["profiles"]
        self.names = [*self.inputs, *(output.name for output in self.session.get_outputs())]
        self.num_io_tensors = len(self.names)
        self.num_optimization_profiles = len(self.profiles)

    def get_tensor_name(self, index: int) -> str:
        return self.names[index]

    def get_tensor_mode(self, name: str) -> TensorIOMode:
        return TensorIOMode.INPUT if name in self.inputs else TensorIOMode.OUTPUT

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        both = [*self.session.get_inputs(), *self.session.get_outputs()]
        (found,) = (each for each in both if each.name == name)
        return tuple(size if isinstance(size, int) else -1 for size in found.shape)

    def get_tensor_profile_shape(self, name: str, profile_index: int) -> list[Any]:
        return self.profiles[profile_index][name]

    def get_aliased_input_tensor(self, name: str) -> str:
        return name.removeprefix("new_") if name.startswith("new_") else ""

    def create_execution_context(self) -> IExecutionContext:
        return IExecutionContext(self)

    def check(self, address: int, size: int) -> None:
        """That all of it lies in one allocation that has not been freed."""
        ours = self.cuda.memory.items()
        assert self.cuda.foreign or any(start <= address and address + size <= start + len(b) for start, b in ours)


class Runtime:
    def __init__(self, cuda: HostCuda, logger: Any) -> None:
        self.cuda, self.logger = cuda, logger

    def deserialize_cuda_engine(self, serialized_engine: bytes) -> ICudaEngine | None:
        try:
            return ICudaEngine(self.cuda, serialized_engine)
        except Exception as error:
            self.logger.messages.append(("ERROR", f"not a plan: {error}"))
            return None


def module(cuda: HostCuda) -> Any:
    """What stands in for `import tensorrt`."""
    return SimpleNamespace(Runtime=lambda logger: Runtime(cuda, logger), TensorIOMode=TensorIOMode)
