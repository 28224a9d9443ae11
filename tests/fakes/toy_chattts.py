"""ChatTTS with made-up weights at a toy size, as an engine of an operator's own: `toy_chattts:make`.

With this folder and the one above on PYTHONPATH. A step is as long as the true model's.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tiny_chattts import write_tokenizer
from voxgate.synth.chattts.device import Device
from voxgate.synth.chattts.engine import ChatTTSEngine, Options
from voxgate.synth.chattts.lookahead import LookAhead
from voxgate.synth.chattts.prompt import Prompter
from voxgate.synth.chattts.sampler import Sampling
from voxgate.synth.chattts.shape import TINY
from voxgate.synth.chattts.weights import made_up
from voxgate.synth.engine import Setup

TOY = replace(TINY, n_fft=1024, hop=256)


def make(setup: Setup) -> ChatTTSEngine:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "tokenizer").mkdir()
        write_tokenizer(Path(folder) / "tokenizer" / "tokenizer.json")
        prompter = Prompter.read(Path(folder), TOY.text_vocabulary)
    return ChatTTSEngine(
        made_up(TOY, seed=1),
        prompter,
        {"mei": np.ones(TOY.hidden, np.float32), "bob": -np.ones(TOY.hidden, np.float32)},
        Options("", capacity=256, sampling=Sampling(temperature=0.7)),
        LookAhead(3, 12),
        device=Device(torch.device("cpu"), torch.float32),
        slots=setup.slots or 4,
        revision="toy",
    )
