import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pyloudnorm
import pytest
from hibari import Hibari
from hibari.tts import ASSETS

from voxgate.gateway.cli.quality.sentences import sentences
from voxgate.synth import joins
from voxgate.synth.engines.hibari import AHEAD_FRAMES, DURATIONS, GAIN, HibariEngine
from voxgate.synth.engines.onnx_graph import with_outputs
from voxgate.synth.loudness import CEILING, TARGET_LUFS
from voxgate.synth.segment import Boundary, Mark, MarkKind, Segment, Style, without_margins
from voxgate.synth.speech import unpack_times, words_of
from voxgate.synth.text.segmenter import Segmenter

RATE = 24000
HEART = Style("heart")
MEASURABLE_MS = 25  # sounds that touch: fades, not a pause

# Cut at "|". The first dozen have the shortest pauses this voice makes, some none at all.
CUT = """
Hello, |how can I help you today?
Yes, |I have to admit that the view is remarkable.
Well, |we should check the numbers again.
No, |it turned out that the door had never been locked.
However, |how can I help you today?
Sarah, |the children were already asleep.
Well, |the fishermen hurried to their boats.
Sure, |give me one moment.
Okay, |let me look that up for you.
Right, |the second one is cheaper.
Thanks, |that helps a lot.
In 1987, |nothing about this surprised me.
At about half past six, |it began to rain.
Before we begin, |I would like to thank everyone who came.
When the storm finally broke over the harbour, |the fishermen hurried to their boats.
If you take the second street on the left, |you will see a small bakery with a green door.
After the third attempt, |she wrote the letter and burned it.
Because the market opens at dawn, |the price went up by 12 percent.
On Monday the 3rd of March, |they decided to wait for the next train.
As every typist knows, |two of the keys are worn out first.
Although nobody had asked him, |he put the keys on the table and left without a word.
With a box of apples under each arm, |the old man climbed the stairs.
Once the water boils, |please stir the soup slowly for five minutes.
Unlike her older sister, |she preferred the smaller room.
Having read the whole report twice, |the committee postponed its decision until Friday.
Good morning Mr. Thompson, |your package will arrive between nine and noon.
Three things matter here: |patience, a steady hand and good light.
The view is remarkable; |the rest can wait until tomorrow.
She opened the window, |which is exactly what we had hoped for.
The tickets cost $59.99 a month, |but only if you pay for the whole year.
They left early — |at least that is what the papers say.
Since you asked so nicely, |everybody laughed except the pianist.
Despite the heavy rain, |people stood in line for the new bread.
To be honest, |the answer depends on how you ask the question.
""".strip().splitlines()


@pytest.fixture(scope="module")
def engine():
    engine = HibariEngine()
    engine.warm()
    return engine


@pytest.fixture(scope="module")
def hibari():
    return Hibari()


def segment(text, before=Boundary.START, after=Boundary.END, lead_in="", index=0):
    return Segment(index, text, 0, len(text), before, after, lead_in)


def cut(text, speed=1.0):
    segmenter = Segmenter(speed=speed)
    return segmenter.push(text) + segmenter.end()


def signal(pcm):
    return pcm.astype(np.float32) / 32767


def audible_ms(samples):
    bounds = joins.audible(samples, RATE)
    assert bounds is not None
    return bounds[0] / RATE * 1000, bounds[1] / RATE * 1000


def pause_ms(samples, at):
    """Length of the silence around sample `at`: from the last loud 5 ms window before it to the first one after it."""
    window = RATE // 200
    energy = np.concatenate([[0.0], np.cumsum(np.square(samples, dtype=np.float64))])
    loud = np.sqrt((energy[window:] - energy[:-window]) / window) > 10 ** (-45 / 20)
    if loud[at - window // 2]:
        return 0.0
    before = np.flatnonzero(loud[: at - window // 2])[-1] + window
    after = np.flatnonzero(loud[at - window // 2 :])[0] + at - window // 2
    return max(0.0, (after - before) / RATE * 1000)


def spoken_in_two(engine, left, right, boundary, style=HEART):
    first = engine.synthesize(segment(left, after=boundary), style).pcm
    second = engine.synthesize(segment(right, before=boundary, lead_in=left, index=1), style).pcm
    return signal(np.concatenate([first, second])), len(first)


# --- the contract ---------------------------------------------------------------------------------------------------


def test_output_is_mono_int16_at_the_declared_rate(engine):
    pcm = engine.synthesize(segment("Good morning."), HEART).pcm

    assert pcm.dtype == np.int16
    assert pcm.ndim == 1
    assert 0.5 < len(pcm) / engine.info.sample_rate < 2


def test_the_same_segment_style_and_seed_give_the_same_samples(engine):
    text = segment("The same again, please.")

    once = engine.synthesize(text, HEART).pcm
    engine.synthesize(segment("Something else in between."), HEART)

    assert np.array_equal(engine.synthesize(text, HEART).pcm, once)
    assert not np.array_equal(engine.synthesize(text, Style("heart", seed=1)).pcm, once)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_every_integer_is_a_seed(engine, seed):
    assert len(engine.synthesize(segment("Yes."), Style("heart", seed=seed)).pcm)


@pytest.mark.parametrize("style", [Style("nobody"), Style("heart", speed=0.1), Style("heart", speed=float("nan"))])
def test_an_unknown_voice_or_speed_is_refused(engine, style):
    with pytest.raises(ValueError, match=r"unknown voice|speed"):
        engine.synthesize(segment("Hello."), style)


@pytest.mark.parametrize("text", ["", " ", "(", "...", "—", "😊", "\x00"])
def test_text_without_a_sound_gives_no_samples(engine, text):
    assert len(engine.synthesize(segment(text), HEART).pcm) == 0


@pytest.mark.parametrize("text", ["0th", "1" * 100, "The 0th of 10" + "0" * 60 + " is next."])
def test_what_the_front_end_cannot_read_is_spelled_out(engine, text):
    assert len(engine.synthesize(segment(text), HEART).pcm)


def test_phonemes_in_the_text_are_not_executed(engine, hibari):
    link = "[cat](/dˈɔɡ/)"
    assert hibari.phonemize(link) == hibari.phonemize("dog"), "hibari has no such links any more"

    assert not np.array_equal(engine.synthesize(segment(link), HEART).pcm, engine.synthesize(segment("dog"), HEART).pcm)


@pytest.mark.parametrize("boundary", [Boundary.CLAUSE, Boundary.SENTENCE, Boundary.FORCED])
@pytest.mark.parametrize("speed", [1.0, 2.0])
def test_a_pause_that_was_asked_for_is_made(engine, boundary, speed):
    style = Style("heart", speed)
    left = engine.synthesize(segment("The first one ends here", after=boundary), style).pcm
    lead_in = "" if boundary is Boundary.SENTENCE else "The first one ends here"
    right = segment("and here begins the next", before=boundary, lead_in=lead_in, index=1)
    pcm = engine.synthesize(replace(right, pause_s=1.5), style).pcm

    assert pause_ms(signal(np.concatenate([left, pcm])), len(left)) == pytest.approx(1500, abs=60)


# --- silence around an utterance ------------------------------------------------------------------------------------


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    "text", ["Hello there.", "How are you?", "Fish swim.", "Three.", "What a day!", "Apples, please."]
)
def test_the_first_audible_sample_comes_within_20_ms(engine, text, speed):
    onset, _end = audible_ms(signal(engine.synthesize(segment(text), Style("heart", speed)).pcm))

    assert onset <= 20


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("text", ["Hello there.", "She sells sea shells by the sea shore.", "Wait"])
def test_nothing_audible_is_lost_to_rendering_only_a_part(engine, hibari, text, speed):
    whole = hibari(text, speed, seed=0)
    begin, end = audible_ms(whole * np.float32(GAIN))

    pcm = engine.synthesize(segment(text, after=Boundary.CLAUSE), Style("heart", speed)).pcm
    onset, stop = audible_ms(signal(pcm))

    assert stop - onset == pytest.approx(end - begin, abs=12)


def test_trailing_silence_at_the_end_is_the_voices_own(engine, hibari):
    whole = hibari("That is all.", seed=0)

    pcm = engine.synthesize(segment("That is all."), HEART).pcm

    natural = len(whole) / RATE * 1000 - audible_ms(whole)[1]
    assert len(pcm) / RATE * 1000 - audible_ms(signal(pcm))[1] == pytest.approx(natural, abs=60)


# --- joins ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sentence", CUT)
def test_a_cut_clause_pauses_like_the_sentence_spoken_whole(engine, sentence):
    left, right = sentence.split("|")
    whole = signal(engine.synthesize(segment(left + right), HEART).pcm)

    joined, seam = spoken_in_two(engine, left, right, Boundary.CLAUSE)

    pause = pause_ms(joined, seam)
    natural = longest_pause_ms(whole, near=seam)
    assert pause <= 250
    assert pause <= max(1.3 * natural, MEASURABLE_MS)
    if natural >= 150 / 1.2:
        assert pause >= 150


def longest_pause_ms(whole, near):
    """The clause pause of the whole sentence: it lies within a third of a second of where the cut one has it."""
    window, reach = RATE // 200, RATE // 3
    energy = np.concatenate([[0.0], np.cumsum(np.square(whole, dtype=np.float64))])
    loud = np.flatnonzero(np.sqrt((energy[window:] - energy[:-window]) / window) > 10 ** (-45 / 20))
    pauses = [
        (after - before - window) / RATE * 1000
        for before, after in itertools.pairwise(loud)
        if after - before > window and before < near + reach and after > near - reach
    ]
    return max(pauses, default=0.0)


@pytest.mark.parametrize("speed", [0.5, 1.0, 2.0])
@pytest.mark.parametrize(
    ("boundary", "shortest", "longest"), [(Boundary.SENTENCE, 600, 800), (Boundary.PARAGRAPH, 980, 1020)]
)
def test_sentences_and_paragraphs_have_their_pause_at_the_pace_of_the_voice(engine, boundary, shortest, longest, speed):
    left = engine.synthesize(segment("The first one ends here.", after=boundary), Style("heart", speed)).pcm
    right = engine.synthesize(segment("And here begins the next.", before=boundary, index=1), Style("heart", speed)).pcm

    assert shortest <= pause_ms(signal(np.concatenate([left, right])), len(left)) * speed <= longest


@pytest.mark.parametrize(
    "sentence",
    [
        "It was the only house |in the street without a light",
        "They took the later train |to Hamburg",
        "a big |black dog",
    ],
)
def test_a_forced_cut_is_hardly_a_pause(engine, sentence):
    left, right = sentence.split("|")

    joined, seam = spoken_in_two(engine, left, right, Boundary.FORCED)

    assert pause_ms(joined, seam) <= 30


def test_a_continuation_is_not_spoken_like_a_beginning(engine):
    text = "the fishermen hurried to their boats."

    alone = engine.synthesize(segment(text, before=Boundary.CLAUSE), HEART).pcm
    continued = engine.synthesize(segment(text, before=Boundary.CLAUSE, lead_in="When the storm broke, "), HEART).pcm

    assert abs(len(alone) - len(continued)) < 0.3 * RATE  # the words of the lead-in are not in it
    assert not np.array_equal(alone, continued)


def test_no_join_clicks(engine):
    for sentence in CUT[:12]:
        left, right = sentence.split("|")
        joined, seam = spoken_in_two(engine, left, right, Boundary.CLAUSE)
        steps = np.abs(np.diff(joined))

        assert steps[seam - 240 : seam + 240].max() <= np.percentile(steps, 99.9)


@pytest.mark.parametrize("speed", [0.8, 1.0, 1.5])
@pytest.mark.parametrize("text", ["The first one ends here.\n\nAnd here begins the next.", "One.\n\nTwo. \n\nThree."])
def test_a_blank_line_is_a_second_wherever_it_stands(engine, text, speed):
    segments = cut(text, speed)
    parts = [signal(engine.synthesize(each, Style("heart", speed)).pcm) for each in segments]
    joined = np.concatenate(parts)

    pauses = [pause_ms(joined, sum(map(len, parts[:at]))) for at in range(1, len(parts))]

    assert all(950 <= pause * speed <= 1050 for pause in pauses), pauses


@pytest.mark.parametrize(("sign", "words"), [("€", "euro"), ("50 €", "fifty euros"), ("%", "percent"), ("&", "and")])
def test_a_sign_alone_is_spoken_as_its_word(engine, sign, words):
    said = [engine.synthesize(each, HEART) for each in cut(sign)]

    assert [len(each.pcm) for each in said] == [len(engine.synthesize(each, HEART).pcm) for each in cut(words)]
    assert [
        word for each, own in zip(said, cut(sign), strict=True) for word, *_ in words_said(each, own.text)
    ] == sign.split()


@pytest.mark.parametrize("tag", ['<emphasis level="strong">', "<emphasis>", '<prosody rate="slow">'])
def test_emphasis_is_neither_spoken_nor_spoken_differently(engine, tag):
    marked = f"I {tag}never{tag.split()[0].rstrip('>').replace('<', '</')}> said that."

    said, plain = (
        [engine.synthesize(each, HEART).pcm for each in cut(text)] for text in (marked, "I never said that.")
    )

    assert np.array_equal(np.concatenate(said), np.concatenate(plain))


def test_the_voice_has_the_common_loudness_and_does_not_clip(engine):
    parts = [engine.synthesize(each, HEART).pcm for sentence in sentences(30, seed=5) for each in cut(sentence)]
    samples = np.concatenate(parts) / 32768

    assert pyloudnorm.Meter(RATE).integrated_loudness(samples) == pytest.approx(TARGET_LUFS, abs=0.7)
    assert np.abs(samples).max() < CEILING


@pytest.mark.parametrize("text", ["Wait... what was that?", "Wait… what was that?", "Wait — what was that?"])
def test_dots_and_dashes_between_words_hold_the_next_one_back(engine, text):
    def begin_of_what(text):
        return next(
            start for word, start, _ in words_said(engine.synthesize(segment(text), HEART), text) if word == "what"
        )

    assert begin_of_what(text) > begin_of_what("Wait what was that?") + 0.1 * RATE


def test_white_space_around_a_segment_makes_no_difference(engine):
    wide = Segment(1, "  she  smiled. ", 0, 15, Boundary.CLAUSE, Boundary.END, " When it broke, ")

    speeches = [engine.synthesize(each, HEART) for each in (wide, without_margins(wide))]

    assert np.array_equal(speeches[0].pcm, speeches[1].pcm)
    assert speeches[0].times == speeches[1].times


# --- when the words sound -------------------------------------------------------------------------------------------

FRAME = 300  # samples


def durations_of(hibari, phonemes):
    """Samples of each phoneme, the silence before the first and after the last included, from the model itself."""
    model = with_outputs((Path(ASSETS) / "hibari.onnx").read_bytes(), (DURATIONS,), frozenset())
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    feed = {"ids": np.asarray([hibari.ids(phonemes)], np.int64), "speed": np.ones(1, np.float32)}
    (durations,) = session.run(None, feed)
    return 2 * FRAME * np.asarray(durations).astype(int)


def words_said(speech, text):
    times = unpack_times(speech.times, len(words_of(text)))
    assert times is not None
    return [(word[0], start, end) for word, (start, end) in zip(words_of(text), times, strict=True) if end > start]


@pytest.mark.parametrize("text", ["The boats went out again before the morning came", "Nobody knew where it was."])
def test_word_times_are_the_networks_own_durations(engine, hibari, text):
    phonemes = hibari.g2p(text)
    edges = np.cumsum([0, *durations_of(hibari, phonemes)])
    silent = [at for at, phoneme in enumerate(phonemes) if phoneme in " ."] + [len(phonemes)]
    stops = silent[: len(text.split())]
    starts = [0, *(at + 1 for at in stops[:-1])]

    speech = engine.synthesize(segment(text), HEART)
    said = words_said(speech, text)

    # The end of a text is not trimmed, so times are counted from there; sound is ahead of durations by so much.
    rest = len(speech.pcm) - int(edges[-1]) - AHEAD_FRAMES * FRAME
    expected = [(int(edges[a + 1]) + rest, int(edges[b + 1]) + rest) for a, b in zip(starts, stops, strict=True)]
    assert [start for _, start, _ in said] == [max(start, 0) for start, _ in expected]
    assert [end for *_, end in said[:-1]] == [end for _, end in expected[:-1]]
    assert said[-1][1] < said[-1][2] <= expected[-1][1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dr. Smith paid $59.99.", ["Dr.", "Smith", "paid", "$59.99."]),
        ("It was March 3, 2025.", ["It", "was", "March", "3,", "2025."]),
        ("About 5 miles — or 50 %!", ["About", "5", "miles", "or", "50", "%!"]),
        ("She said \u201cno\u201d (twice) and can't, don't [1] won't...", None),
        ("See https://example.com/a or mail a.b@c.de at 9:30 a.m.", None),
        ("Ｈｅｌｌｏ, caf\u00e9 na\u00efve \u00bd cup", None),
        ("no0th 12345678901234567890123456789012345678901 yes", None),
        ("word " * 120, None),
    ],
)
def test_every_word_that_is_said_has_its_time(engine, text, expected):
    speech = engine.synthesize(segment(text), HEART)

    said = words_said(speech, text)

    assert [word for word, *_ in said] == (expected or text.split())
    instants = [instant for _, start, end in said for instant in (start, end)]
    assert instants == sorted(instants)
    assert 0 <= instants[0] <= instants[-1] <= len(speech.pcm)


def test_marked_words_have_times_too(engine):
    text = "Say hello to the World Cup now"
    marks = (Mark(4, 9, MarkKind.PHONEMES, "həˈləʊ"), Mark(17, 26, MarkKind.ALIAS, "big tournament of them all"))

    speech = engine.synthesize(replace(segment(text), marks=marks), HEART)

    assert [word for word, *_ in words_said(speech, text)] == text.split()


@pytest.mark.parametrize("speed", [0.6, 1.0, 1.8])
@pytest.mark.parametrize("boundary", [Boundary.CLAUSE, Boundary.SENTENCE, Boundary.PARAGRAPH])
def test_words_lie_beside_the_pause_of_a_join(engine, boundary, speed):
    style = Style("heart", speed)
    left, right = "After the third attempt,", " she wrote the letter and burned it."
    first = engine.synthesize(segment(left, after=boundary), style)
    second = engine.synthesize(segment(right, before=boundary, lead_in=left, index=1), style)
    samples = signal(np.concatenate([first.pcm, second.pcm]))
    middle = len(first.pcm)

    (*_, last_end), (_, next_start, _) = words_said(first, left)[-1], words_said(second, right)[0]

    about = RATE * 0.06 / min(speed, 1)
    loud = np.flatnonzero(np.abs(samples) > 10 ** (-45 / 20))
    assert abs(last_end - loud[loud < middle][-1]) < about
    assert abs(middle + next_start - loud[loud >= middle][0]) < about
