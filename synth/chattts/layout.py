"""The files of a ChatTTS directory: which tensors of which shapes each holds, and the published files' checksums.

The names of `gpt`, `Embed` and `Vocos` follow their public formats; those of `Decoder` and `DVAE` were inferred and
have not been held against the real files: an import lists what differs. Knows no tensors.
"""

from collections.abc import Iterator

from .shape import ConvNeXt, Shape

CONFIG = "gpt/config.json"
TOKENIZER = "tokenizer/tokenizer.json"
GPT, EMBED, DECODER, VOCOS, DVAE = (
    "gpt/model.safetensors",
    "Embed.safetensors",
    "Decoder.safetensors",
    "Vocos.safetensors",
    "DVAE.safetensors",
)
NEEDED = (CONFIG, TOKENIZER, GPT, EMBED, DECODER, VOCOS)  # DVAE is for cloned voices alone

# sha256 of the published files, as of 2025-05.
CHECKSUMS = {
    CONFIG: "0aaa1ecd96c49ad4f473459eb1982fa7ad79fa5de08cde2781bf6ad1f9a0c236",
    GPT: "cd0806fd971f52f6a22c923ec64982b305e817bcc41ca83417fcf9141b984a0f",
    EMBED: "2ff0be7134934155741b643b74e32fb6bf3eec41257984459b2ed60cdb4c48b0",
    DECODER: "77aa55e0a977949c4733df3c6f876fa85860d3298cba63295a7bc6901729d4e0",
    VOCOS: "07e5561491cce41f7f90cfdb94b2ff263ff5742c3d89339db99b17ad82cc3f44",
    DVAE: "1d0b044a8368c0513100a2eca98456b289e6be6a18b7a63be1bcaa315ea874d9",
    TOKENIZER: "843838a64e121e23e774cc75874c6fe862198d9f7dd43747914633a8fd89c20e",
}

Tensors = dict[str, tuple[int, ...]]


def tensors(file: str, shape: Shape) -> Tensors:
    """Name and shape of every tensor that is needed out of `file`."""
    return dict(_LISTS[file](shape))


def block(prefix: str, n: int, scale: str) -> dict[str, str]:
    """The names of one ConvNeXt block, by what they are; `scale` is what its per-channel scale is called."""
    parts = {"depthwise": "dwconv", "norm": "norm", "widen": "pwconv1", "narrow": "pwconv2"}
    names = {f"{part}.{kind}": f"{prefix}.{n}.{name}.{kind}" for part, name in parts.items() for kind in _BOTH}
    return {**names, "scale": f"{prefix}.{n}.{scale}"}


_BOTH = ("weight", "bias")
_List = Iterator[tuple[str, tuple[int, ...]]]


def _gpt(shape: Shape) -> _List:
    hidden, inner = shape.hidden, shape.intermediate
    for n in range(shape.layers):
        for name in "qkvo":
            yield f"layers.{n}.self_attn.{name}_proj.weight", (hidden, hidden)
        yield f"layers.{n}.mlp.gate_proj.weight", (inner, hidden)
        yield f"layers.{n}.mlp.up_proj.weight", (inner, hidden)
        yield f"layers.{n}.mlp.down_proj.weight", (hidden, inner)
        yield f"layers.{n}.input_layernorm.weight", (hidden,)
        yield f"layers.{n}.post_attention_layernorm.weight", (hidden,)
    yield "norm.weight", (hidden,)


def _embed(shape: Shape) -> _List:
    yield "emb_text.weight", (shape.text_vocabulary, shape.hidden)
    for n in range(shape.codebooks):
        yield f"emb_code.{n}.weight", (shape.codes, shape.hidden)
        # g and v of a weight norm: W = g * v / |v| of each row.
        yield f"head_code.{n}.parametrizations.weight.original0", (shape.codes, 1)
        yield f"head_code.{n}.parametrizations.weight.original1", (shape.codes, shape.hidden)


def _conv(name: str, out: int, into: int, kernel: int) -> _List:
    yield f"{name}.weight", (out, into, kernel)
    yield f"{name}.bias", (out,)


def _blocks(prefix: str, stack: ConvNeXt, scale: str) -> _List:
    width, inner = stack.width, stack.inner
    for n in range(stack.blocks):
        sizes = {
            "depthwise.weight": (width, 1, stack.kernel),
            "widen.weight": (inner, width),
            "widen.bias": (inner,),
            "narrow.weight": (width, inner),
        }
        for part, name in block(prefix, n, scale).items():
            yield name, sizes.get(part, (width,))


def _mel_stack(prefix: str, into: int, neck: int, stack: ConvNeXt, out: int) -> _List:
    yield from _conv(f"{prefix}.conv_in.0", neck, into, 3)
    yield from _conv(f"{prefix}.conv_in.2", stack.width, neck, 3)
    yield from _blocks(f"{prefix}.decoder_block", stack, "weight")
    yield f"{prefix}.conv_out.weight", (out, stack.width, 1)


def _decoder(shape: Shape) -> _List:
    yield "coef", (1, shape.mels, 1)
    yield from _mel_stack("decoder", shape.mel_in, shape.decoder_neck, shape.decoder, shape.mel_in)
    yield "out_conv.weight", (shape.mels, shape.mel_in, 3)


def _vocos(shape: Shape) -> _List:
    width = shape.vocos.width
    yield from _conv("backbone.embed", width, shape.mels, shape.vocos.kernel)
    for name in ("norm", "final_layer_norm"):
        for kind in _BOTH:
            yield f"backbone.{name}.{kind}", (width,)
    yield from _blocks("backbone.convnext", shape.vocos, "gamma")
    yield "head.out.weight", (shape.n_fft + 2, width)
    yield "head.out.bias", (shape.n_fft + 2,)


def _dvae(shape: Shape) -> _List:
    dim, folded = shape.dvae_dim, shape.dvae_dim // 2
    yield "coef", (1, shape.mels, 1)
    yield from _conv("downsample_conv.0", folded, shape.mels, 3)
    yield from _conv("downsample_conv.2", folded, folded, 4)
    yield from _mel_stack("encoder", folded, shape.dvae_neck, shape.dvae, dim)
    for group in range(2):
        quantizer = f"vq_layer.quantizer.rvqs.{group}"
        yield f"{quantizer}.project_in.weight", (4, folded)
        yield f"{quantizer}.project_in.bias", (4,)
        yield f"{quantizer}.project_out.weight", (folded, 4)
        yield f"{quantizer}.project_out.bias", (folded,)
    yield from _mel_stack("decoder", folded, shape.dvae_neck, shape.dvae, folded)
    yield "out_conv.weight", (shape.mels, folded, 3)


_LISTS = {GPT: _gpt, EMBED: _embed, DECODER: _decoder, VOCOS: _vocos, DVAE: _dvae}
