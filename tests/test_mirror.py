"""Tests mirror the tree: who changes `synth/joins.py` finds its tests in `tests/synth/test_joins.py`, and those of one
idea of it, where they are many, in `tests/synth/test_joins_IDEA.py`.

What only a running server shows is tested in `tests/e2e/`, which mirrors nothing.
"""

from pathlib import Path

from tree import ROOT, has_code, mirrors, modules


def mirror_of(module: Path) -> Path:
    return module.parent / f"test_{module.name}"


def names(paths: set[Path]) -> list[str]:
    return sorted(str(path) for path in paths)


def test_every_module_with_behaviour_has_its_tests():
    wanted = {mirror_of(module) for module in modules() if module.parent != Path() and has_code(module)}

    assert names(wanted - set(mirrors())) == []


def test_every_file_of_tests_has_its_module():
    stems = [str(mirror_of(module).with_suffix("")) for module in modules()]
    orphans = {test for test in mirrors() if not any(_is_of(test, stem) for stem in stems)}

    assert names(orphans) == []


def test_every_test_of_the_page_has_its_script():
    tested = {file.name.removesuffix(".test.js") for file in (ROOT / "tests" / "web").glob("*.test.js")}

    assert sorted(tested - {file.stem for file in (ROOT / "web").glob("*.js")}) == []


def _is_of(test: Path, stem: str) -> bool:
    return str(test) == f"{stem}.py" or str(test).startswith(f"{stem}_")
