from voxgate.synth.chattts import layout
from voxgate.synth.chattts.shape import TINY, TRUE


def test_every_file_lists_the_tensors_it_needs():
    assert layout.tensors(layout.GPT, TRUE)["layers.19.mlp.down_proj.weight"] == (768, 3072)
    assert layout.tensors(layout.EMBED, TRUE)["head_code.3.parametrizations.weight.original1"] == (626, 768)
    assert layout.tensors(layout.DECODER, TRUE)["decoder.decoder_block.11.dwconv.weight"] == (512, 1, 7)
    assert layout.tensors(layout.VOCOS, TRUE)["head.out.weight"] == (1026, 512)
    assert layout.tensors(layout.DVAE, TRUE)["encoder.conv_in.0.weight"] == (128, 512, 3)


def test_the_names_of_a_block_are_among_those_of_its_file():
    names = layout.block("backbone.convnext", 1, "gamma")

    assert names["depthwise.weight"] == "backbone.convnext.1.dwconv.weight"
    assert set(names.values()) <= layout.tensors(layout.VOCOS, TINY).keys()


def test_every_published_file_has_a_checksum():
    assert set(layout.NEEDED) < layout.CHECKSUMS.keys()
