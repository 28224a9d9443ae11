"""Where cuts fall, and that they fall there however the text arrives."""

import pickle
import re
import sys
import tracemalloc
from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from voxgate.synth.segment import Boundary, Segment
from voxgate.synth.text.blank import blank, is_said_alone, is_speakable
from voxgate.synth.text.boundaries import ADDRESS_SECONDS, WORD_CODE_POINTS
from voxgate.synth.text.estimate import seconds
from voxgate.synth.text.limits import PARAGRAPH_SECONDS
from voxgate.synth.text.segmenter import FIRST_WORDS, SEGMENT_CODE_POINTS, SEGMENT_SECONDS, Segmenter

SCRIPTS = ("Latin", "Han")
WITHIN_SENTENCE = (Boundary.CLAUSE, Boundary.FORCED)


def cut(*pushes: str) -> list[Segment]:
    segmenter = Segmenter(SCRIPTS)
    segments = [segment for text in pushes for segment in segmenter.push(text)]
    return segments + segmenter.end()


def texts(*pushes: str) -> list[str]:
    return [segment.text for segment in cut(*pushes)]


def sentences(*pushes: str) -> list[str]:
    """Segments joined where a cut fell inside a sentence."""
    joined = [""]
    for segment in cut(*pushes):
        joined[-1] += segment.text
        if segment.after not in WITHIN_SENTENCE:
            joined.append("")
    return [sentence for sentence in joined if sentence]


def tokens(text: str) -> list[str]:
    """Pieces as a language model sends them: a word with the space before it."""
    pieces: list[str] = []
    for char in text:
        if pieces and char.isalnum():
            pieces[-1] += char
        else:
            pieces.append(char)
    return pieces


# The corpus: text, its sentences.

CORPUS = [
    (
        "Dr. Smith and Mrs. Jones travelled to the U.S. capital, e.g. at 9:30 a.m. sharp.",
        ["Dr. Smith and Mrs. Jones travelled to the U.S. capital, e.g. at 9:30 a.m. sharp."],
    ),
    ("J. R. R. Tolkien wrote it. St. Mary agreed.", ["J. R. R. Tolkien wrote it.", " St. Mary agreed."]),
    (
        "It is 98.6°F, pi is 3.14, the price is 22,1 €, $1,234.56, v1.0.0, 3.50 GHz.",
        ["It is 98.6°F, pi is 3.14, the price is 22,1 €, $1,234.56, v1.0.0, 3.50 GHz."],
    ),
    (
        "See https://example.com/a.b?c=1. Then mail a.b@c.de.",
        ["See https://example.com/a.b?c=1.", " Then mail a.b@c.de."],
    ),
    ("Well... you know… — fine.", ["Well... you know… — fine."]),
    *((nothing, []) for nothing in ("...", "—", "*", "()", "😊", '"', "", " \n\n \t ")),
    ("8...", ["8..."]),
    ("9", ["9"]),
    ("**bold**", ["  bold  "]),
    ("`code`", [" code "]),
    ("- item", ["  item"]),
    ("Perfect, 12345.Let me check.", ["Perfect, 12345.", "Let me check."]),
    ("Hola. Todo listo.", ["Hola.", " Todo listo."]),
    ("bye for now", ["bye for now"]),
    (
        "What?! No way!! (Really.) \"Yes,\" she said. 'Fine.'",
        ["What?!", " No way!!", " (Really.)", ' "Yes," she said.', " 'Fine.'"],
    ),
    ("Chapter 3. The Storm\n\nIt began.", ["Chapter 3. The Storm", "\n\nIt began."]),
    ("- apples\n- pears\n- plums", ["  apples", "\n  pears", "\n  plums"]),
    ("Apples\nPears\nPlums", ["Apples", "\nPears", "\nPlums"]),
    (
        "你好，今天是2024年5月3日，温度36.5℃。好的！真的吗？",
        ["你好,今天是2024年5月3日,温度36.5℃。", "好的!", "真的吗?"],
    ),
    ("我用GPT-4写code，OK吗？Yes。", ["我用GPT-4写code,OK吗?", "Yes。"]),
    ("什么？[uv_break]好的", ["什么?", "          好的"]),
    ("see [1", ["see  1"]),
    ("a\0b \ud800.", ["a b  ."]),
    ('<break time="9999s"/>', []),
    ("[Stts][spk_emb]", []),
]


@pytest.mark.parametrize(("text", "expected"), CORPUS)
def test_corpus_is_cut_into_its_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(("text", "expected"), CORPUS)
@pytest.mark.parametrize("pieces", [tokens, list])
def test_corpus_in_pieces_gives_the_same_segments(pieces, text: str, expected: list[str]) -> None:
    assert cut(*pieces(text)) == cut(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one.Sentence two.", ["one.", "Sentence two."]),
        ("What?No.", ["What?", "No."]),
        ("Booking.Com is up.", ["Booking.Com is up."]),
        ("She has a Ph.D. from M.I.T. in maths.", ["She has a Ph.D. from M.I.T. in maths."]),
        ("I moved to the U.S. The end.", ["I moved to the U.S.", " The end."]),
        ("The U.S. Capitol is open.", ["The U.S. Capitol is open."]),
        ("Come at 9 a.m. Monday.", ["Come at 9 a.m. Monday."]),
        ("Come at 9 a.m. Bring food.", ["Come at 9 a.m.", " Bring food."]),
        ("Apples, etc. are in. Fine.", ["Apples, etc. are in.", " Fine."]),
        ("See No. 5 first. No. Never.", ["See No. 5 first.", " No.", " Never."]),
        ("I have 3. Take 2.", ["I have 3.", " Take 2."]),
        ("1. First point\n2. Second point", ["1. First point", "\n2. Second point"]),
        ('"No!" she said. "Go!" Then he went.', ['"No!" she said.', ' "Go!"', " Then he went."]),
        ("Wait... What?", ["Wait...", " What?"]),
        ("It went on\nand on.\nThen it\nEnded.", ["It went on\nand on.", "\nThen it", "\nEnded."]),
        ("a line that ends in the\nMiddle of things.", ["a line that ends in the\nMiddle of things."]),
        ("# Title\nsome text.", ["  Title", "\nsome text."]),
        ("Bonjour ! Ça va ?", ["Bonjour !", " Ça va ?"]),
        ("**Bold.** Next.", ["  Bold.", "   Next."]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_blank_line_is_a_paragraph_boundary() -> None:
    first, second, third = cut("One.\n\nTwo. \n\nThree.")
    assert (first.after, second.before, second.pause_s) == (
        Boundary.SENTENCE,
        Boundary.SENTENCE,
        1.0,
    )  # kept nobody waiting
    assert (second.after, third.before, third.pause_s) == (Boundary.SENTENCE, Boundary.SENTENCE, 1.0)
    assert [segment.after for segment in cut("One.\n\nTwo.\n\nThree.")][1] is Boundary.PARAGRAPH


# The first segment.


def test_first_segment_is_cut_at_a_clause_with_four_words_before_it() -> None:
    assert texts("In the old town, we walked for hours, then slept well.") == [
        "In the old town,",
        " we walked for hours, then slept well.",
    ]


def test_first_segment_is_not_cut_before_four_words() -> None:
    assert texts("Hello, how can I help you today?") == ["Hello, how can I help you today?"]


@pytest.mark.parametrize(
    "text",
    [
        "I would really love that, thanks.",  # what remains would be a stub
        "We counted about 1, 2, 3 times.",
        "It is open until 22:30 every single day.",
        "They said it is 3,5 metres wide.",
    ],
)
def test_first_segment_is_not_cut_at(text: str) -> None:
    assert texts(text) == [text]


def test_first_segment_without_a_clause_is_cut_before_a_phrase() -> None:
    first, second = cut(
        "The quick brown fox jumps over the lazy dog and then it runs away from the farmer who has a gun."
    )
    assert first.text == "The quick brown fox jumps over the lazy dog"
    assert (first.after, second.before, second.lead_in) == (Boundary.FORCED, Boundary.FORCED, first.text)


def test_sentence_a_little_over_the_limit_stays_whole() -> None:
    text = " ".join(["word"] * FIRST_WORDS) + " end."
    assert texts(text) == [text]


def test_first_segment_is_emitted_before_its_sentence_ends() -> None:
    segmenter = Segmenter()
    assert segmenter.push("In the old town, we") == []  # "we" may still be the whole rest
    assert [segment.text for segment in segmenter.push(" walked")] == ["In the old town,"]


def test_a_finished_sentence_is_emitted_with_the_space_after_it() -> None:
    segmenter = Segmenter()
    assert segmenter.push("Hello.") == []  # "Hello.txt"
    assert [segment.text for segment in segmenter.push(" ")] == ["Hello."]


# Later segments.


def test_long_sentence_is_cut_at_its_last_clause_within_the_limit() -> None:
    clauses = [f"clause {number} that goes on and on for quite a while" for number in range(8)]
    segments = cut("Yes. " + ", ".join(clauses) + ".")
    assert all(segment.after in (Boundary.CLAUSE, Boundary.SENTENCE, Boundary.END) for segment in segments)
    assert all(segment.text.endswith((",", ".")) for segment in segments)


def test_long_text_without_punctuation_is_cut_at_spaces() -> None:
    text = "abcdefghi " * 1000
    segments = cut(text)
    assert "".join(segment.text for segment in segments) == text
    assert {len(segment.text) % 10 for segment in segments[1:-1]} == {0}


def test_what_remains_of_an_over_long_sentence_is_no_stub() -> None:
    text = "Then the men who had waited all night in the cold hurried on because they knew the sea would be rough "
    for count in range(20, 60):
        *_, last = cut("Yes. " + " ".join((text * 3).split()[:count]) + ".")
        assert length(last.text) > 1.0


def test_a_word_of_10000_letters_is_cut_hard() -> None:
    segments = cut("x" * 10_000)
    assert "".join(segment.text for segment in segments) == "x" * 10_000
    assert {segment.after for segment in segments} == {Boundary.FORCED, Boundary.END}


def test_han_without_punctuation_is_cut_between_characters() -> None:
    segments = cut("好" * 500)
    assert "".join(segment.text for segment in segments) == "好" * 500
    assert all(length(segment.text) <= SEGMENT_SECONDS for segment in segments)


def test_lead_in_is_the_previous_segment_of_the_same_sentence() -> None:
    first, second, third = cut("In the old town, we walked for hours. Then we slept.")
    assert (first.lead_in, second.lead_in, third.lead_in) == ("", "In the old town,", "")


# Numbers, amounts, dates, addresses.


@pytest.mark.parametrize(
    "item",
    [
        "(555) 123-4567",
        "555 123 4567",
        "22,1 €",
        "$ 22",
        "March 3rd, 2024",
        "5:30 p.m.",
        "10 - 12",
        "Chapter 4",
        "3 km/h",
    ],
)
def test_what_is_said_as_one_is_not_cut(item: str) -> None:
    for count in range(1, 40):
        words = ("please wait here for some time until they tell you what was found " * 3).split()[:count]
        for start in ("", "Yes. "):
            segments = cut(f"{start}{' '.join(words)} {item} in the big old house where they all used to live then.")
            assert any(item in segment.text for segment in segments)


def test_a_long_address_is_one_word() -> None:
    address = "https://example.com/" + "a1-b2/" * 30
    assert any(address in segment.text for segment in cut(f"Please see {address} for the details."))


# Markup.


def test_break_cuts_and_the_next_segment_waits_for_it() -> None:
    text = 'Wait <break time="300ms"/> for it. <break time="9s"/> Go.<break/>'
    found = [(" ".join(each.text.split()), each.before, each.after, each.pause_s) for each in cut(text)]
    assert found == [
        ("Wait", Boundary.START, Boundary.CLAUSE, 0.0),
        ("for it.", Boundary.CLAUSE, Boundary.SENTENCE, 0.3),
        ("Go.", Boundary.SENTENCE, Boundary.SENTENCE, 3.0),
    ]


def test_breaks_at_one_place_add_up_to_the_cap_and_none_comes_before_the_first_word() -> None:
    first, second = cut("<break/>One. <break/><break time='200ms'/>Two.")
    assert (first.pause_s, second.pause_s) == (0.0, pytest.approx(0.7))
    assert cut("One. " + "<break time='2s'/>" * 5 + "Two.")[1].pause_s == 3.0


def test_break_survives_a_flush() -> None:
    segmenter = Segmenter()
    segmenter.push("One <break/>")
    segmenter.flush()
    segmenter.push("two")
    assert [segment.pause_s for segment in segmenter.end()] == [0.5]


def test_marks_stand_where_their_words_do() -> None:
    (segment,) = cut('Hi, <sub alias="World Wide Web">W3 C</sub> it <say-as interpret-as="digits">12</say-as>')
    assert [(segment.text[mark.start : mark.end], mark.value) for mark in segment.marks] == [
        ("W3\N{NO-BREAK SPACE}C", "World Wide Web"),
        ("12", "digits"),
    ]


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ('<sub alias="x">never closed, so it is', "never closed, so it is"),
        ('<sub alias="x"><b>no</b></sub>', "no"),
        ('<foo bar="x">that</foo>', "that"),
        ("see < there", "see < there"),
        ("see [1", "see 1"),
        ("what?[uv_break]ok[laugh_0]", "what? ok"),
        ('<b title="' + "long " * 14 + '"/>x', '<b title="' + "long " * 13 + 'long "/>x'),
    ],
)
def test_what_is_not_allowed_is_neither_executed_nor_spoken(text: str, spoken: str) -> None:
    segments = cut(text)
    assert " ".join(" ".join(segment.text for segment in segments).split()) == spoken
    assert not any(segment.marks or segment.pause_s for segment in segments)
    assert cut(*text) == segments


# Flush, idle, end.


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Hello there.", Boundary.SENTENCE),
        ("Hello there,", Boundary.CLAUSE),
        ("Hello there", Boundary.FORCED),
        ("Hello there\n\n", Boundary.PARAGRAPH),
    ],
)
def test_flush_ends_with_the_boundary_its_punctuation_deserves(text: str, after: Boundary) -> None:
    segmenter = Segmenter()
    segments = segmenter.push(text) + segmenter.flush()
    assert [(segment.text, segment.after) for segment in segments] == [(text, after)]
    assert [segment.before for segment in segmenter.push("more.") + segmenter.end()] == [after]


def test_segment_after_a_flush_is_a_first_one_again() -> None:
    segmenter = Segmenter()
    segmenter.push("Yes.")
    segmenter.flush()
    assert [segment.text for segment in segmenter.push(" In the old town, we walked on")] == [" In the old town,"]


@pytest.mark.parametrize("text", ["€", "%", "50 €", " $ ", "&", "°", "%\n", " " * 300 + "€", "(%)", "€ € €"])
def test_a_sign_that_is_all_there_is_is_spoken(text: str) -> None:
    segmenter = Segmenter()
    (segment,) = segmenter.push(text) + segmenter.end()
    assert (segment.text, segment.start, segment.end) == (blank(text, SCRIPTS).text, 0, len(text))


@pytest.mark.parametrize("text", ["*", "—", "...", "😊", "()", '"', "#", "=", "~", "+", "/", "|", "<>", "^"])
def test_decoration_that_is_all_there_is_is_not(text: str) -> None:
    assert cut(text) == []


def test_a_sign_by_itself_stays_with_the_words_around_it() -> None:
    assert texts("It is 5. € And more.") == ["It is 5.", " € And more."]
    assert texts("It is 5. €") == ["It is 5. €"] or texts("It is 5. €") == ["It is 5.", " €"]


NUMBERS = ["555-0123", "(555) 123-4567", "+1 (555) 123-4567", "+44 20 7946 0018", "555 123 4567", "1-800-555-0123",
           "555 - 123 - 4567", "+49 (0) 30 123456", "0800 / 123 45 67", "5, 5, 5, 0, 1, 2, 3",
           "+1 555 123 4567 ext 890", "+1-(800)-555-0123", "1 800 FLOWERS", "(0 30) 12 34 56 78"]  # fmt: skip


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("word", ["word ", "and ", "a, ", "X "])
def test_a_telephone_number_is_never_cut(number: str, word: str) -> None:
    for words in (*range(20), 28, 29, 36, 37):
        before = word * words
        for segment in cut(f"{before}{number} and do not wait for it to be all over " + "word " * 12):
            assert not len(before) < segment.start < len(before) + len(number), segment


def test_flush_keeps_what_is_not_spoken_for_the_next_segment() -> None:
    segmenter = Segmenter()
    assert segmenter.push("(") + segmenter.flush() == []
    assert [(segment.text, segment.start) for segment in segmenter.push("hello") + segmenter.flush()] == [("(hello", 0)]


def test_last_segment_takes_what_is_not_spoken_behind_it() -> None:
    assert [(segment.text, segment.after) for segment in cut('"Really?" 😊')] == [('"Really?"  ', Boundary.END)]


@pytest.mark.parametrize(
    ("text", "spoken", "after"),
    [
        ("hel", None, None),
        ("well hel", "well", Boundary.FORCED),
        ("well, hel", "well,", Boundary.CLAUSE),
        ("well hello ", "well hello", Boundary.FORCED),
        ("well hello.", "well hello.", Boundary.SENTENCE),
        ("well hello,", "well hello,", Boundary.CLAUSE),
        ("it was Dr.", "it was", Boundary.FORCED),
        ("it was Dr. ", "it was", Boundary.FORCED),
        ("Dr. ", None, None),
        ("it is 3.", "it is 3.", Boundary.SENTENCE),
        ("it is 22,", "it is", Boundary.FORCED),
        ("好的", "好的", Boundary.FORCED),
        ("好的 [uv_", "好的", Boundary.FORCED),
        ("— ", None, None),
    ],
)
def test_idle_speaks_up_to_the_last_word_boundary(text: str, spoken: str | None, after: Boundary | None) -> None:
    segmenter = Segmenter(SCRIPTS)
    segments = segmenter.push(text) + segmenter.idle()
    assert [(segment.text, segment.after) for segment in segments] == ([(spoken, after)] if spoken else [])
    rest = segmenter.push("x") + segmenter.end()
    assert "".join(segment.text for segment in segments + rest) == blank(text + "x", SCRIPTS).text


def test_word_over_an_idle_pause_stays_whole() -> None:
    segmenter = Segmenter()
    segments = segmenter.push("hel") + segmenter.idle() + segmenter.push("lo there") + segmenter.end()
    assert [segment.text for segment in segments] == ["hello there"]


@pytest.mark.parametrize(
    ("text", "pending"),
    [("", False), ("hel", True), ("...", False), ("8", True), ("Hello. ", False), ("Hello. 😊 ", False), ("[uv", True)],
)
def test_pending_says_whether_something_speakable_waits(text: str, pending: bool) -> None:
    segmenter = Segmenter()
    segmenter.push(text)
    assert segmenter.pending is pending


def test_received_counts_code_points() -> None:
    segmenter = Segmenter()
    segmenter.push("Hi 😊")
    segmenter.push("ok")
    assert segmenter.received == 6


# Words in scripts the voice lacks.


def test_dropped_words_are_reported_once_with_the_segment_that_held_them() -> None:
    segmenter = Segmenter()
    segmenter.push("Say при")
    assert segmenter.take_dropped() == []
    segmenter.push("вет now. And 你好")
    assert segmenter.take_dropped() == [(4, 10)]
    segmenter.end()
    assert segmenter.take_dropped() == [(20, 22)]
    assert segmenter.take_dropped() == []


def test_text_only_in_a_foreign_script_yields_no_segment_and_is_reported() -> None:
    segmenter = Segmenter()
    assert segmenter.push("Привет, мир") + segmenter.end() == []
    assert segmenter.take_dropped() == [(0, 6), (8, 11)]


# Properties.

FLUSH, IDLE = object(), object()

TRICKY_WORDS = """Dr. U.S. a.m. e.g. J. 3.14 22,1 $1,234.56 v1.0 12345.Let one.Sentence No. 5. Chapter 1. 2) The and
, ; : . ! ? ?! ... … — - = ( ) [ ] [uv_break] [uv_ ](http://a.b/c) ]( <break/> <b> < <a b='c ** * _ ` ``` # > ~~ " ' ”
。 ！ ？ ， 你好 好 。” Привет 😊 https://a.b/C?D=1 a@b.c hello Hello I me, you; 1 2024"""
TRICKY = st.sampled_from(TRICKY_WORDS.split())
SPACE = st.sampled_from([" ", " ", " ", "\n", "\n\n", "\n \n", " \n", "", "  ", "\r\n"])
MARKUP = [
    "<break/>",
    "<break time='1s'/>",
    "<sub alias='three words'>x y</sub>",
    "<phoneme ph='x'>",
    "</sub>",
    "<say-as interpret-as='digits'>12</say-as>",
]
LONG = [
    "word",
    " word",
    " many words",
    "(" * 40,
    "9" * 60,
    " " * 700,
    "(" * 70,
    "(" * 700,
    "(! " * 40,
    "= " * 20,
    "\n" * 700,
    "好" * 20,
]
FRAGMENTS = st.lists(st.one_of(TRICKY, SPACE, st.sampled_from(LONG), st.sampled_from(MARKUP)), max_size=60).map("".join)
ANYTHING = st.text(st.characters(), max_size=40)
TEXTS = st.one_of(FRAGMENTS, ANYTHING, st.builds(str.__add__, FRAGMENTS, ANYTHING))
SCRIPTS_OF_WRITERS = st.lists(st.one_of(TEXTS, st.sampled_from([FLUSH, IDLE])), max_size=6)


def play(script: list[object], pieces) -> tuple[list[Segment], list[tuple[int, int]]]:
    segmenter = Segmenter(SCRIPTS)
    segments: list[Segment] = []
    dropped: list[tuple[int, int]] = []
    for step in script:
        if isinstance(step, str):
            for piece in pieces(step):
                segments += segmenter.push(piece)
        else:
            segments += segmenter.flush() if step is FLUSH else segmenter.idle()
        dropped += segmenter.take_dropped()
    segments += segmenter.end()
    return segments, dropped + segmenter.take_dropped()


def length(text: str) -> float:
    """Estimated seconds of speech."""
    return sum(map(said_in, re.split(r"[ \n]+", text)))


def said_in(word: str) -> float:
    return min(seconds(word), ADDRESS_SECONDS) if re.search(r"://|\w@\w|www\.", word) else seconds(word)


@given(SCRIPTS_OF_WRITERS)
@example(["Hello.\n", "\nWorld"])
@example(["Yes. Hello.\n \nWorld"])
@example(["Yes. Hello" + " " * 700 + "\n\nWorld"])
@example([" " * 250 + "= " * 20 + "0", "\na.m."])
@settings(max_examples=400, deadline=None)
def test_segments_do_not_depend_on_how_text_is_cut(script: list[object]) -> None:
    whole = play(script, lambda text: [text])
    assert play(script, list) == whole
    assert play(script, lambda text: [text[:3], text[3:11], text[11:]]) == whole


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_segments_tile_the_source_and_lose_nothing(text: str) -> None:
    segments = cut(text)
    assert [segment.index for segment in segments] == list(range(len(segments)))
    assert [segment.start for segment in segments] == [0, *(segment.end for segment in segments)][: len(segments)]
    assert all(len(segment.text) == segment.end - segment.start for segment in segments)
    end = segments[-1].end if segments else 0
    blanked = blank(text, SCRIPTS).text
    for before, after in zip(blanked, "".join(segment.text for segment in segments), strict=False):
        assert after == before or (after == " " and not is_speakable(before))  # long punctuation is blank, too
    assert not is_speakable(blanked[end:])
    assert all(is_speakable(segment.text) or is_said_alone(segment.text) for segment in segments)


@given(SCRIPTS_OF_WRITERS)
@settings(max_examples=300, deadline=None)
def test_boundaries_of_neighbours_agree(script: list[object]) -> None:
    segments, _ = play(script, lambda text: [text])
    if segments:
        assert segments[0].before is Boundary.START
        assert segments[0].lead_in == ""
    for left, right in pairwise(segments):
        assert right.before is left.after
        apart = left.after not in WITHIN_SENTENCE or right.pause_s >= PARAGRAPH_SECONDS  # a blank line, or a long break
        assert right.lead_in == left.text or (apart and right.lead_in == "")
    assert all(segment.after is not Boundary.END for segment in segments[:-1])


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_no_segment_is_longer_than_the_limit(text: str) -> None:
    for segment in cut(text):
        assert length(segment.text) <= 1.05 * SEGMENT_SECONDS  # words in pieces are estimated piece by piece
        assert len(segment.text.strip()) <= SEGMENT_CODE_POINTS + WORD_CODE_POINTS


# Linear time: a code point costs the same work at the end of a long text as at its beginning.


def work(action: Callable[[], object]) -> int:
    """Calls made, of Python and of C functions."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize(
    "text", ["x", "(", " ", "a. ", "好", "](", "](x", "<a b='", "[uv_", "- \n", "1. \n", "9", "a, ", "ab.Cd"]
)
def test_work_per_code_point_does_not_grow_with_the_text(text: str) -> None:
    segmenter = Segmenter(SCRIPTS)
    block = text * (3000 // len(text))

    def push_block() -> None:
        for char in block:
            segmenter.push(char)

    push_block()  # the word cache is warm and the first segment is out
    first = work(push_block)
    for _ in range(8):
        push_block()
    assert work(push_block) <= 1.2 * first


@pytest.mark.parametrize("text", ["x", "a. ", "好", "9", "a, ", "ab.Cd", "x(((((((("])
def test_what_is_kept_of_a_text_does_not_grow_with_it(text: str) -> None:
    segmenter = Segmenter(SCRIPTS)
    for char in text * (20_000 // len(text)):
        segmenter.push(char)
    assert len(pickle.dumps(segmenter)) < 8_000


@pytest.mark.parametrize("text", ["(", " ", "](", "- \n", "x ", "x", "😊"])
def test_a_push_does_not_copy_what_came_before(text: str) -> None:
    segmenter = Segmenter()
    for char in text * (50_000 // len(text)):
        segmenter.push(char)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for char in text:
            segmenter.push(char)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 8_000


def test_a_slow_voice_is_given_less_text_at_once():
    text = "word " * 200

    def longest(speed: float) -> int:
        segmenter = Segmenter(speed=speed)
        return max(len(segment.text) for segment in segmenter.push(text) + segmenter.end())

    assert longest(0.5) <= 0.6 * longest(1.0)
    assert longest(2.0) == longest(1.0)
