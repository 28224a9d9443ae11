from voxgate.synth.chattts.shape import TRUE


def test_the_published_model_makes_47_steps_a_second_and_needs_52_around_a_window():
    assert TRUE.steps_per_second == 46.875
    assert TRUE.context_steps == 52
    assert TRUE.kv_bytes_per_token(2) == 61_440
