from dataclasses import replace

from voxgate.gateway.cli.quality.texts import cut, lost, measure

TEXT = "It costs $3.50, they said. Dr. Smith paid on March 3."


def test_nothing_is_lost_of_what_is_cut_and_written_out():
    assert lost(TEXT, cut([TEXT])) == lost(TEXT, cut(list(TEXT))) == []


def test_a_word_that_is_missing_is_named():
    first, *rest = cut([TEXT])

    assert lost(TEXT, [replace(first, text=first.text.replace("they", "    ")), *rest]) == ["they"]
    assert "March" in lost(TEXT, [first])


async def test_all_of_it_is_promised():
    figures = await measure(60)

    assert [figure.kept for figure in figures[:4]] == [True] * 4
