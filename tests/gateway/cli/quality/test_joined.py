from voxgate.gateway.cli.quality.joined import measure


async def test_joins_of_every_kind_are_heard_and_none_is_a_click():
    figures = {figure.name: figure for figure in await measure(6)}

    kinds = [figures[f"joins, {kind}"].value for kind in ("fresh", "remembered", "phrases", "resumed")]
    assert min(kinds) > 0
    assert all(figure.kept for figure in figures.values() if figure.kept is not None)
