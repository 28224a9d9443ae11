from voxgate.gateway.cli.quality.sentences import LITERATURE, sentences


def test_a_thousand_different_ones_literature_first_always_the_same():
    given = list(sentences(1000))

    assert len(set(given)) == 1000
    assert given[: len(LITERATURE)] == LITERATURE
    assert given == list(sentences(1000))
    assert not any("{" in sentence for sentence in given)


def test_another_seed_gives_others():
    count = len(LITERATURE) + 50

    assert set(sentences(count)) & set(sentences(count, seed=1)) < {*LITERATURE, *sentences(count)}


def test_fewer_than_the_literature_are_its_beginning():
    assert list(sentences(3)) == LITERATURE[:3]
