from dataclasses import replace
from importlib import import_module

import pytest

from voxgate.synth.engine import EngineInfo, Setup, Steps, Voice
from voxgate.synth.registry import BUNDLED, FACTORY, EngineUnavailable, make, named

INFO = EngineInfo("own", "3", 24000, (Voice("v", "en", "own", "realtime", 24000),), 1, False, True)


@pytest.mark.parametrize("name", BUNDLED)
def test_every_bundled_engine_has_its_factory(name: str):
    module, _, attribute = BUNDLED[name].factory.partition(":")

    assert FACTORY.fullmatch(BUNDLED[name].factory)
    assert callable(getattr(import_module(module), attribute))


def test_an_engine_of_ones_own_is_made_with_what_the_operator_says():
    engine = make(Setup("mine", "fakes.stepping:make", slots=3, options={"voices": ["ann"]}))

    assert (engine.info.max_slots, [voice.id for voice in engine.info.voices]) == (3, ["ann"])


@pytest.mark.parametrize(
    ("factory", "says"),
    [
        ("no.such.module:make", "ModuleNotFoundError"),
        ("fakes.stepping:nothing", "nothing"),
        ("fakes.stepping:fail", "no weights here"),
        ("builtins:repr", "no engine"),
    ],
)
def test_a_factory_that_gives_no_engine_is_told_by_name(factory: str, says: str):
    with pytest.raises(EngineUnavailable, match=says) as problem:
        make(Setup("mine", factory))

    assert factory in str(problem.value)


def test_an_engine_goes_by_the_name_it_is_given_and_keeps_its_own_in_its_revision():
    known = named(INFO, Setup("house"))

    assert (known.name, known.voices[0].engine, known.revision) == ("house", "house", "own/3")
    assert named(INFO, Setup("own")).revision == "3"


@pytest.mark.parametrize(
    "wrong",
    [
        replace(INFO, voices=()),
        replace(INFO, stepwise=True),
        replace(INFO, steps=Steps(480, 0.01, 0.01)),
        replace(INFO, max_slots=0),
        replace(INFO, sample_rate=16000),
    ],
)
def test_an_engine_that_contradicts_itself_is_refused(wrong: EngineInfo):
    with pytest.raises(EngineUnavailable, match="own"):
        named(wrong, Setup("house"))


def test_slots_are_for_stepwise_engines():
    with pytest.raises(EngineUnavailable, match="no use for slots"):
        named(INFO, Setup("house", slots=4))
