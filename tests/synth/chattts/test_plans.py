import pytest

from voxgate.synth.chattts.errors import ProfileError
from voxgate.synth.chattts.graphs import Exported
from voxgate.synth.chattts.plans import PlanCache, Range, Recipe, buckets, key

GRAPH = Exported("step", b"graph", "float16", {"x": ("B", 32), "position": ("B",)})
RECIPE = Recipe("8.9", ({"B": Range(1, 2, 4)},))


def test_open_axes_take_the_sizes_of_the_profile():
    assert RECIPE.shapes(GRAPH, RECIPE.profiles[0]) == {
        "x": ((1, 32), (2, 32), (4, 32)),
        "position": ((1,), (2,), (4,)),
    }


def test_an_axis_without_sizes_is_named():
    with pytest.raises(ProfileError, match="step: no range for the axis B of x"):
        RECIPE.shapes(GRAPH, {"T": Range(1, 1, 1)})
    with pytest.raises(ProfileError, match="5, 2, 4"):
        Range(5, 2, 4)


def test_buckets_double_and_leave_no_size_out():
    assert [(p["B"].least, p["B"].most) for p in buckets(20)] == [(1, 1), (2, 3), (4, 7), (8, 15), (16, 20)]
    assert [(p["B"].least, p["B"].most) for p in buckets(1)] == [(1, 1)]


def test_whatever_changes_the_engine_changes_its_key():
    others = [
        key(Exported("step", b"other", "float16", GRAPH.inputs), RECIPE, "tensorrt 11"),
        key(GRAPH, Recipe("8.6", RECIPE.profiles), "tensorrt 11"),
        key(GRAPH, Recipe("8.9", ({"B": Range(1, 2, 8)},)), "tensorrt 11"),
        key(GRAPH, Recipe("8.9", RECIPE.profiles, 1 << 30), "tensorrt 11"),
        key(GRAPH, RECIPE, "tensorrt 12"),
    ]

    assert len({key(GRAPH, RECIPE, "tensorrt 11"), *others}) == 6
    assert key(GRAPH, RECIPE, "tensorrt 11") == key(GRAPH, Recipe("8.9", ({"B": Range(1, 2, 4)},)), "tensorrt 11")


def test_an_engine_is_found_as_it_was_kept_and_not_when_it_is_damaged(tmp_path):
    cache = PlanCache(tmp_path / "plans")
    assert cache.get("k") is None
    assert cache.kept() == []

    kept = cache.put("k", b"plan", GRAPH, RECIPE, "tensorrt 11")
    assert cache.get("k") == b"plan"
    assert [(each.key, each.graph, each.bytes) for each in cache.kept()] == [("k", "step", 4)]
    assert kept.target == "8.9"

    (tmp_path / "plans" / "k.plan").write_bytes(b"plan?")
    assert cache.get("k") is None
    (tmp_path / "plans" / "k.json").write_text("{}")
    assert cache.kept() == []
