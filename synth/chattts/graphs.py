"""ChatTTS as ONNX graphs: prefill, step (with its sampler) and vocoder. One source for onnxruntime and TensorRT.

They compute what llama.py, sampler.py and vocoder.py do, in the form both runtimes take: keys and values scattered
into caches that are inputs and outputs, an explicit mask, no random numbers inside. Weights go in as they are in their
files. Knows neither runtime.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import layout
from .llama import rotary
from .onnx_build import BOOL, FLOAT, INT64, Array, Graph
from .sampler import COLUMNS, LEAST_KEPT, MOST_K, RECENT
from .shape import FRAMES_PER_STEP, ConvNeXt, Shape
from .uniforms import ATTEMPTS
from .vocoder import MOST_MAGNITUDE, inverse_stft
from .weights import Model, folded_head

_Weights = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Exported:
    """A graph, and the sizes of its inputs; those that are open have letters: "B" rows, "T" steps or tokens."""

    name: str
    onnx: bytes
    precision: str
    inputs: Mapping[str, tuple[int | str, ...]]


def step(model: Model, capacity: int, precision: str, scales: Mapping[str, float] | None = None) -> Exported:
    """One step of B rows: next embeddings, codes and hidden states; the caches are written in place.

    Inputs: x [B, H], position [B], steps [B], recent [B, RECENT, Q], uniforms [B, ATTEMPTS, Q], settings [B, COLUMNS]
    and key_N, value_N [B, heads, capacity, D]. Outputs: hidden [B, H], codes [B, Q], next [B, H], and new_key_N,
    new_value_N, which must be bound where key_N and value_N are.
    """
    shape = model.shape
    graph = Graph("step", precision, scales)
    books = shape.codebooks
    x = graph.input("x", graph.type, ["B", shape.hidden])
    position = graph.input("position", INT64, ["B"])
    steps = graph.input("steps", INT64, ["B"])
    recent = graph.input("recent", INT64, ["B", RECENT, books])
    uniforms = graph.input("uniforms", FLOAT, ["B", ATTEMPTS, books])
    settings = graph.input("settings", FLOAT, ["B", COLUMNS])
    at = graph.op("Unsqueeze", position, graph.integers(1))  # [B, 1]
    hidden = _llama(graph, model, graph.op("Unsqueeze", x, graph.integers(1)), position, at, capacity)
    hidden = graph.op("Squeeze", hidden, graph.integers(1))
    graph.output("hidden", hidden, graph.type, ["B", shape.hidden])
    heads = np.concatenate([folded_head(model[layout.EMBED], n).numpy() for n in range(books)])
    head = graph.weight("heads", heads.T, FLOAT)
    logits = graph.op("MatMul", graph.cast(hidden, FLOAT), head)
    logits = graph.op("Reshape", logits, graph.integers(-1, books, shape.codes))
    codes = _sampler(graph, shape, logits, recent, uniforms, settings, steps)
    graph.output("codes", codes, INT64, ["B", books])
    tables = np.concatenate([model[layout.EMBED][f"emb_code.{n}.weight"].numpy() for n in range(books)])
    rows = graph.op("Add", codes, graph.weight("book_offsets", np.arange(books) * shape.codes, INT64))
    embedded = graph.op("Gather", graph.weight("code_embeddings", tables), rows, axis=0)
    summed = graph.op("ReduceSum", embedded, graph.integers(1), keepdims=0)
    graph.output("next", summed, graph.type, ["B", shape.hidden])
    return Exported("step", graph.bytes(), precision, graph.inputs)


def prefill(model: Model, capacity: int, precision: str, scales: Mapping[str, float] | None = None) -> Exported:
    """A sequence x [B, T, H] from its beginning into the caches; it has no other output."""
    shape = model.shape
    graph = Graph("prefill", precision, scales)
    x = graph.input("x", graph.type, ["B", "T", shape.hidden])
    start = graph.input("start", INT64, ["B"])  # zero: where the caches are written from
    size = graph.op("Squeeze", graph.op("Shape", x, start=1, end=2), graph.integers(0))
    columns = graph.op("Range", graph.number(0, INT64), size, graph.number(1, INT64))
    at = graph.op("Add", graph.op("Unsqueeze", start, graph.integers(1)), columns)  # [B, T]
    _llama(graph, model, x, start, at, capacity)
    return Exported("prefill", graph.bytes(), precision, graph.inputs)


def vocoder(model: Model, precision: str) -> Exported:
    """Sound [B, 2 T * hop] of hidden states [B, T, H], of which `lengths` [B] steps are there."""
    shape = model.shape
    graph = Graph("vocoder", precision)
    hidden = graph.input("hidden", graph.type, ["B", "T", shape.hidden])
    lengths = graph.input("lengths", INT64, ["B"])
    frames = graph.op("Reshape", hidden, graph.integers(0, -1, shape.mel_in))  # [B, F, C]
    size = graph.op("Squeeze", graph.op("Shape", frames, start=1, end=2), graph.integers(0))
    places = graph.op("Range", graph.number(0, INT64), size, graph.number(1, INT64))
    ends = graph.op("Mul", lengths, graph.number(FRAMES_PER_STEP, INT64))
    present = graph.op("Less", places, graph.op("Unsqueeze", ends, graph.integers(1)))  # [B, F]
    mask = graph.op("Unsqueeze", graph.cast(present, graph.type), graph.integers(1))
    x = _decoder(graph, model, graph.op("Transpose", frames, perm=[0, 2, 1]), mask)
    sound = _vocos(graph, model, x, mask, graph.cast(present, FLOAT))
    graph.output("sound", sound, FLOAT, ["B", "N"])
    return Exported("vocoder", graph.bytes(), precision, graph.inputs)


# --- the transformer ------------------------------------------------------------------------------------------------


def _llama(graph: Graph, model: Model, x: str, start: str, at: str, capacity: int) -> str:
    """Hidden states [B, T, H]. `start` [B]: where the caches are written from; `at` [B, T]: the positions."""
    shape, gpt = model.shape, model[layout.GPT]
    tables = zip(("cos", "sin"), rotary(shape.head_dim, shape.rope_theta, capacity), strict=True)
    rows = [graph.op("Gather", graph.weight(name, table.numpy()), at, axis=0) for name, table in tables]
    cos, sin = (graph.op("Unsqueeze", row, graph.integers(1)) for row in rows)
    columns = graph.weight("columns", np.arange(capacity), INT64)
    seen = graph.op("LessOrEqual", columns, graph.op("Unsqueeze", at, graph.integers(2)))  # [B, T, capacity]
    seen = graph.op("Unsqueeze", seen, graph.integers(1))
    mask = graph.op("Where", seen, graph.number(0.0), graph.number(-6e4))  # the least that float16 has room for, nearly
    cache = ["B", shape.heads, capacity, shape.head_dim]
    for n in range(shape.layers):
        names = f"layers.{n}.self_attn", f"layers.{n}.mlp"
        y = _rms_norm(graph, x, f"layers.{n}.input_layernorm", gpt[f"layers.{n}.input_layernorm.weight"].numpy(), shape)
        qkv = np.concatenate([gpt[f"{names[0]}.{part}_proj.weight"].numpy() for part in "qkv"])
        y = graph.linear(f"{n}.qkv", y, qkv)
        y = graph.op("Reshape", y, graph.integers(0, 0, 3 * shape.heads, shape.head_dim))
        y = graph.op("Transpose", y, perm=[0, 2, 1, 3])  # [B, 3 heads, T, D]
        q, k, v = (graph.slice(y, part * shape.heads, (part + 1) * shape.heads, 1) for part in range(3))
        q, k = _rotated(graph, q, cos, sin, shape), _rotated(graph, k, cos, sin, shape)
        stored = []
        for name, update in ((f"key_{n}", k), (f"value_{n}", v)):
            kept = graph.input(name, graph.type, cache)
            graph.renamed("TensorScatter", f"new_{name}", kept, update, start, axis=2)
            graph.declare(f"new_{name}", graph.type, cache)
            stored.append(f"new_{name}")
        y = _attention(graph, q, stored[0], stored[1], mask, shape)
        y = graph.op("Reshape", graph.op("Transpose", y, perm=[0, 2, 1, 3]), graph.integers(0, 0, shape.hidden))
        x = graph.op("Add", x, graph.linear(f"{n}.out", y, gpt[f"{names[0]}.o_proj.weight"].numpy()))
        name = f"layers.{n}.post_attention_layernorm"
        y = _rms_norm(graph, x, name, gpt[f"{name}.weight"].numpy(), shape)
        both = np.concatenate([gpt[f"{names[1]}.{part}_proj.weight"].numpy() for part in ("gate", "up")])
        y = graph.linear(f"{n}.gate_up", y, both)
        gate, up = (
            graph.slice(y, 0, shape.intermediate, 2),
            graph.slice(y, shape.intermediate, 2 * shape.intermediate, 2),
        )
        y = graph.op("Mul", graph.op("Mul", gate, graph.op("Sigmoid", gate)), up)
        x = graph.op("Add", x, graph.linear(f"{n}.down", y, gpt[f"{names[1]}.down_proj.weight"].numpy()))
    return _rms_norm(graph, x, "norm", gpt["norm.weight"].numpy(), shape)


def _rms_norm(graph: Graph, x: str, name: str, weight: Array, shape: Shape) -> str:
    wide = graph.cast(x, FLOAT)
    square = graph.op("ReduceMean", graph.op("Mul", wide, wide), graph.integers(-1), keepdims=1)
    root = graph.op("Sqrt", graph.op("Add", square, graph.number(shape.rms_eps, FLOAT)))
    normed = graph.cast(graph.op("Div", wide, root), graph.type)
    return graph.op("Mul", normed, graph.weight(f"{name}.weight", weight))


def _attention(graph: Graph, q: str, k: str, v: str, mask: str, shape: Shape) -> str:
    """Written out: TensorRT has fused kernels for the operator `Attention` only in some sizes, and refuses others; what
    stands here it recognizes and fuses where it can."""
    q = graph.op("Mul", q, graph.number(shape.head_dim**-0.5))
    scores = graph.op("Add", graph.op("MatMul", q, graph.op("Transpose", k, perm=[0, 1, 3, 2])), mask)
    return graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)


def _rotated(graph: Graph, x: str, cos: str, sin: str, shape: Shape) -> str:
    half = shape.head_dim // 2
    first, second = graph.slice(x, 0, half, 3), graph.slice(x, half, shape.head_dim, 3)
    turned = graph.op("Concat", graph.op("Neg", second), first, axis=3)
    return graph.op("Add", graph.op("Mul", x, cos), graph.op("Mul", turned, sin))


# --- the sampler ----------------------------------------------------------------------------------------------------


def _sampler(graph: Graph, shape: Shape, logits: str, recent: str, uniforms: str, settings: str, steps: str) -> str:
    """Codes [B, Q], as sampler.py draws them."""
    op, most = graph.op, min(MOST_K, shape.codes)

    def real(value: float) -> str:
        return graph.number(value, FLOAT)

    def whole_numbers(name: str, count: int) -> str:
        return graph.weight(name, np.arange(count), INT64)

    def column(n: int) -> str:
        return op("Unsqueeze", graph.slice(settings, n, n + 1, 1), graph.integers(2))  # [B, 1, 1]

    temperature, top_p, top_k, penalty, least, random = (column(n) for n in range(COLUMNS))
    so_far = op("Unsqueeze", graph.cast(steps, FLOAT), graph.integers(1, 2))
    is_end = graph.weight("is_end", np.arange(shape.codes) == shape.end_code, BOOL)
    too_early = op("And", op("Less", so_far, least), is_end)
    scores = op("Where", too_early, real(-1e30), op("Div", logits, temperature))

    every = whole_numbers("every_code", shape.codes)
    same = op("Equal", op("Unsqueeze", recent, graph.integers(3)), every)  # [B, RECENT, Q, N]
    counts = op("ReduceSum", graph.cast(same, FLOAT), graph.integers(1), keepdims=0)
    alpha = op("Pow", penalty, counts)
    negative = op("Less", scores, real(0.0))
    scores = op("Where", negative, op("Mul", scores, alpha), op("Div", scores, alpha))

    best = op("TopK", scores, graph.integers(most), outputs=2, axis=2, largest=1, sorted=1)
    candidates = f"{best}.1"
    total = op("ReduceLogSumExp", scores, graph.integers(2), keepdims=1)
    odds = op("Exp", op("Sub", best, total))
    rank = graph.weight("rank", np.arange(most), FLOAT)
    before = op("Sub", op("CumSum", odds, graph.number(2, INT64)), odds)
    likely = op("Or", op("Less", before, top_p), op("Less", rank, real(LEAST_KEPT)))
    among = op("Less", rank, op("Max", top_k, real(LEAST_KEPT)))
    odds = op("Where", op("And", likely, among), odds, real(0.0))
    up_to = op("Unsqueeze", op("CumSum", odds, graph.number(2, INT64)), graph.integers(1))  # [B, 1, Q, K]
    last = graph.slice(up_to, most - 1, most, 3)
    draws = op("Unsqueeze", op("Mul", uniforms, random), graph.integers(3))
    passed = op("And", op("LessOrEqual", up_to, op("Mul", draws, last)), op("Less", up_to, last))  # [B, A, Q, K]
    chosen = op("ReduceSum", graph.cast(passed, FLOAT), graph.integers(3), keepdims=1)
    picked = op("Equal", graph.cast(chosen, INT64), whole_numbers("rank_whole", most))
    here = op("Mul", graph.cast(picked, INT64), op("Unsqueeze", candidates, graph.integers(1)))
    codes = op("ReduceSum", here, graph.integers(3), keepdims=0)  # [B, A, Q]

    ends = op("Equal", codes, graph.number(shape.end_code, INT64))
    broken = op("ReduceMax", graph.cast(ends, FLOAT), graph.integers(2), keepdims=0)  # [B, A], 1 where one ends
    order = graph.weight("attempts", np.arange(ATTEMPTS), FLOAT)
    value = op("Add", order, op("Mul", broken, real(float(ATTEMPTS))))
    first = op("ArgMin", value, axis=1, keepdims=0)  # the first that goes on, else the first
    attempt = op("Where", op("Equal", steps, graph.number(0, INT64)), first, graph.number(0, INT64))
    which = op("Equal", op("Unsqueeze", attempt, graph.integers(1)), whole_numbers("attempt_whole", ATTEMPTS))
    which = op("Unsqueeze", graph.cast(which, INT64), graph.integers(2))
    return op("ReduceSum", op("Mul", which, codes), graph.integers(1), keepdims=0)


# --- the vocoder ----------------------------------------------------------------------------------------------------


def _decoder(graph: Graph, model: Model, x: str, mask: str) -> str:
    """Log-mel [B, mels, F] of frames [B, C, F]."""
    weights = {name: tensor.numpy() for name, tensor in model[layout.DECODER].items()}
    op = graph.op
    x = _conv(graph, "decoder.conv_in.0", op("Mul", x, mask), weights, padding=1)
    x = op("Mul", op("Gelu", x), mask)
    x = op("Mul", _conv(graph, "decoder.conv_in.2", x, weights, padding=1), mask)
    for n in range(model.shape.decoder.blocks):
        x = _convnext(graph, x, layout.block("decoder.decoder_block", n, "weight"), weights, model.shape.decoder, mask)
    x = op("Mul", _conv(graph, "decoder.conv_out", x, weights), mask)
    x = _conv(graph, "out_conv", x, weights, padding=1)
    return op("Mul", op("Mul", x, graph.weight("decoder.coef", weights["coef"])), mask)


def _vocos(graph: Graph, model: Model, mel: str, mask: str, present: str) -> str:
    shape, op = model.shape, graph.op
    weights = {name: tensor.numpy() for name, tensor in model[layout.VOCOS].items()}
    x = _conv(graph, "backbone.embed", mel, weights, padding=shape.vocos.kernel // 2)
    x = op("Transpose", x, perm=[0, 2, 1])
    x = _layer_norm(graph, "backbone.norm", x, weights)
    x = op("Mul", op("Transpose", x, perm=[0, 2, 1]), mask)
    for n in range(shape.vocos.blocks):
        x = _convnext(graph, x, layout.block("backbone.convnext", n, "gamma"), weights, shape.vocos, mask)
    x = _layer_norm(graph, "backbone.final_layer_norm", op("Transpose", x, perm=[0, 2, 1]), weights)
    x = graph.cast(graph.linear("head.out", x, weights["head.out.weight"], weights["head.out.bias"]), FLOAT)
    bins = shape.n_fft // 2 + 1
    there = op("Unsqueeze", present, graph.integers(2))  # [B, F, 1]
    magnitude = op("Min", op("Exp", graph.slice(x, 0, bins, 2)), graph.number(MOST_MAGNITUDE, FLOAT))
    magnitude, phase = op("Mul", magnitude, there), graph.slice(x, bins, 2 * bins, 2)
    spectrum = op("Concat", op("Mul", magnitude, op("Cos", phase)), op("Mul", magnitude, op("Sin", phase)), axis=2)
    basis, window = inverse_stft(shape.n_fft)
    frames = op("MatMul", spectrum, graph.weight("istft_basis", basis.numpy(), FLOAT))
    envelope = op("Mul", there, graph.weight("istft_squares", window.square().numpy(), FLOAT))
    summed = _overlapped(graph, frames, shape)
    return op("Div", summed, op("Max", _overlapped(graph, envelope, shape), graph.number(1e-11, FLOAT)))


def _overlapped(graph: Graph, frames: str, shape: Shape) -> str:
    """Frames [B, F, n_fft] added up at their places [B, F * hop]: shifted adds, see vocoder.py."""
    hop, parts = shape.hop, shape.n_fft // shape.hop
    half = parts // 2
    padded = graph.op("Pad", frames, graph.integers(0, half - 1, 0, 0, half, 0))
    total = ""
    for n in range(parts):
        piece = graph.slice(padded, (parts - 1 - n) * hop, (parts - n) * hop, 2)
        far = n + 1 - parts  # from the end, so that the number of frames need not be known
        piece = graph.slice(piece, n, far if far else np.iinfo(np.int64).max, 1)
        total = graph.op("Add", total, piece) if total else piece
    return graph.op("Reshape", total, graph.integers(0, -1))


def _convnext(graph: Graph, x: str, names: Mapping[str, str], weights: _Weights, stack: ConvNeXt, mask: str) -> str:
    def linear(part: str, x: str) -> str:
        name = names[f"{part}.weight"]
        return graph.linear(name.removesuffix(".weight"), x, weights[name], weights[names[f"{part}.bias"]])

    depthwise = names["depthwise.weight"].removesuffix(".weight")
    padding = stack.dilation * (stack.kernel // 2)
    y = _conv(graph, depthwise, x, weights, padding=padding, dilation=stack.dilation, groups=stack.width)
    y = graph.op("Transpose", y, perm=[0, 2, 1])
    y = _layer_norm(graph, names["norm.weight"].removesuffix(".weight"), y, weights)
    y = linear("narrow", graph.op("Gelu", linear("widen", y)))
    y = graph.op("Mul", y, graph.weight(names["scale"], weights[names["scale"]]))
    return graph.op("Mul", graph.op("Add", x, graph.op("Transpose", y, perm=[0, 2, 1])), mask)


def _conv(
    graph: Graph, name: str, x: str, weights: _Weights, padding: int = 0, dilation: int = 1, groups: int = 1
) -> str:
    names = [each for each in (f"{name}.weight", f"{name}.bias") if each in weights]
    given = [graph.weight(each, weights[each]) for each in names]
    return graph.op("Conv", x, *given, pads=[padding, padding], dilations=[dilation], group=groups)


def _layer_norm(graph: Graph, name: str, x: str, weights: _Weights) -> str:
    given = [graph.weight(f"{name}.{kind}", weights[f"{name}.{kind}"]) for kind in ("weight", "bias")]
    return graph.op("LayerNormalization", x, *given, axis=-1, epsilon=1e-6)
