from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxgate.synth.cache.key import KEY_BYTES, key_of
from voxgate.synth.engine import EngineInfo
from voxgate.synth.segment import Boundary, Mark, MarkKind, Segment, Style

INFO = EngineInfo("hibari", "1/1", 24000, (), 1, False, True)
STYLE = Style("heart", 1.0, 0)
SEGMENT = Segment(1, "one two", 10, 17, Boundary.CLAUSE, Boundary.SENTENCE, "zero,")

words = st.text(st.characters(codec="utf-8"), max_size=30)
infos = st.builds(
    EngineInfo, words, words, st.integers(1, 10**6), st.just(()), st.integers(1, 64), st.booleans(), st.booleans()
)
styles = st.builds(Style, words, st.floats(0.25, 4.0), st.integers())
segments = st.builds(
    Segment,
    st.integers(0, 1000),
    words,
    st.integers(0, 10**6),
    st.integers(0, 10**6),
    st.sampled_from(Boundary),
    st.sampled_from(Boundary),
    words,
)


def sounding(info: EngineInfo, style: Style, segment: Segment) -> tuple[object, ...]:
    """What decides the samples."""
    text, lead_in = segment.text.split(), segment.lead_in.split()
    return (info.name, info.revision, info.sample_rate, style, segment.before, segment.after, text, lead_in)


@pytest.mark.parametrize(
    ("info", "style", "segment"),
    [
        (replace(INFO, name="other"), STYLE, SEGMENT),
        (replace(INFO, revision="1/2"), STYLE, SEGMENT),
        (replace(INFO, sample_rate=22050), STYLE, SEGMENT),
        (INFO, replace(STYLE, voice="other"), SEGMENT),
        (INFO, replace(STYLE, speed=1.01), SEGMENT),
        (INFO, replace(STYLE, seed=1), SEGMENT),
        (INFO, STYLE, replace(SEGMENT, text="one  twO")),
        (INFO, STYLE, replace(SEGMENT, before=Boundary.FORCED)),
        (INFO, STYLE, replace(SEGMENT, after=Boundary.END)),
        (INFO, STYLE, replace(SEGMENT, lead_in="zero")),
        (INFO, STYLE, replace(SEGMENT, pause_s=0.3)),
        (INFO, STYLE, replace(SEGMENT, marks=(Mark(0, 3, MarkKind.ALIAS, "two"),))),
        (INFO, replace(STYLE, urls="spell"), SEGMENT),
    ],
)
def test_what_shapes_the_sound_changes_the_key(info: EngineInfo, style: Style, segment: Segment):
    assert key_of(info, style, segment) != key_of(INFO, STYLE, SEGMENT)


def test_where_a_segment_stands_changes_nothing():
    moved = Segment(7, " one \n two ", 100, 111, Boundary.CLAUSE, Boundary.SENTENCE, "  zero,")

    assert key_of(INFO, STYLE, moved) == key_of(INFO, STYLE, SEGMENT)


def test_what_an_engine_can_do_besides_changes_nothing():
    assert key_of(replace(INFO, max_slots=8, voices=(), deterministic=False), STYLE, SEGMENT) == key_of(
        INFO, STYLE, SEGMENT
    )


def test_every_field_was_thought_of():
    assert {field.name for part in (EngineInfo, Style, Segment) for field in fields(part)} == {
        *("name", "revision", "sample_rate", "voice", "speed", "seed", "text", "before", "after", "lead_in"),
        *("urls", "pause_s", "marks"),
        *("voices", "max_slots", "stepwise", "steps", "deterministic", "index", "start", "end"),
    }


@given(st.tuples(infos, styles, segments), st.tuples(infos, styles, segments))
def test_two_keys_are_equal_exactly_when_the_sound_is(one, other):
    assert (key_of(*one) == key_of(*other)) == (sounding(*one) == sounding(*other))
    assert len(key_of(*one)) == KEY_BYTES


@given(words, words)
def test_text_never_runs_over_into_its_neighbours(text: str, lead_in: str):
    swapped = replace(SEGMENT, text=lead_in, lead_in=text)

    same = text.split() == lead_in.split()
    assert (key_of(INFO, STYLE, swapped) == key_of(INFO, STYLE, replace(SEGMENT, text=text, lead_in=lead_in))) == same
