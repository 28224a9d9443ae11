import torch

from tiny_chattts import CPU
from voxgate.synth.chattts.replay import Replay


def test_without_a_gpu_a_computation_is_run_each_time():
    total, replay = torch.zeros(1), Replay(CPU)

    results = [float(replay("add", lambda: total.add_(2))) for _ in range(3)]

    assert results == [2, 4, 6]
