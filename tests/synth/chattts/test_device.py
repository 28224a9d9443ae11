import pytest
import torch

from voxgate.synth.chattts.device import Device
from voxgate.synth.chattts.errors import DeviceError


def test_without_a_gpu_the_cpu_computes_in_full_precision():
    device = Device.find(on_gpu=False)

    assert device == Device(torch.device("cpu"), torch.float32)
    assert not device.is_gpu
    assert Device.find(on_gpu=False, precision="bfloat16").dtype is torch.bfloat16


def test_a_precision_that_is_none_is_refused():
    with pytest.raises(ValueError, match="'int8' is none of float16, bfloat16, float32"):
        Device.find(on_gpu=False, precision="int8")


def test_a_torch_that_cannot_use_the_gpu_says_so():
    """On a machine with a GPU that torch can use there is nothing to say."""
    if torch.cuda.is_available():
        assert Device.find(on_gpu=True).is_gpu
    else:
        with pytest.raises(DeviceError, match=r"without CUDA|finds no GPU"):
            Device.find(on_gpu=True)


def test_a_call_is_timed():
    done = []

    assert Device.find(on_gpu=False).timed(lambda: done.append(1)) > 0
    assert done == [1]
