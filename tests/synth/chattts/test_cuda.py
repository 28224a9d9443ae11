from importlib import import_module
from typing import Any

import numpy as np
import pytest

from fakes.trt_on_host import HostCuda
from voxgate.synth.chattts.cuda import Cuda, opened, runtime, view
from voxgate.synth.chattts.errors import DeviceError, OutOfMemory

FLOAT = np.dtype(np.float32)


def test_what_is_uploaded_comes_back_once_the_stream_has_run():
    with opened(HostCuda()) as cuda:
        here, there, back = cuda.pinned(40), cuda.allocate(40), cuda.pinned(40)
        view(here, (10,), FLOAT)[:] = np.arange(10)
        view(back, (10,), FLOAT)[:] = 0
        cuda.upload(there, here, 40)
        cuda.download(back, there, 40)
        event = cuda.mark()

        assert not cuda.has_passed(event)
        assert not view(back, (10,), FLOAT).any()
        cuda.wait(event)
        assert cuda.has_passed(event)
        assert view(back, (10,), FLOAT).tolist() == list(range(10))

        cuda.clear(there, 40)
        cuda.download(back, there, 40)
        cuda.settle()
        assert not view(back, (10,), FLOAT).any()
        cuda.forget(event)


def test_all_memory_is_given_back_also_after_a_failure():
    api = HostCuda(total_bytes=100)
    with opened(api) as cuda:
        cuda.free(cuda.pinned(60))
        cuda.allocate(60)
        with pytest.raises(OutOfMemory, match="cudaMalloc: the device has too little free memory"):
            cuda.allocate(60)

    assert api.memory == {}


def test_an_error_of_the_device_is_named():
    class Broken(HostCuda):
        def cudaStreamSynchronize(self, stream: int):
            from fakes.trt_on_host import cudaError_t

            return (cudaError_t.cudaErrorInvalidValue,)

    with pytest.raises(DeviceError, match="cudaStreamSynchronize: cudaErrorInvalidValue"):
        Cuda(Broken()).settle()


def test_without_a_gpu_the_real_runtime_says_so():
    cudart: Any = import_module("cuda.bindings.runtime")
    status, count = cudart.cudaGetDeviceCount()
    if status.value == 0 and count:
        assert runtime() is cudart
    else:
        with pytest.raises(DeviceError, match="no GPU can be used: cudaError"):
            runtime()
