"""How much text is cut at once: the lengths of segments, in seconds of speech and in words; knows no text."""

from .boundaries import WORD_CODE_POINTS, WORD_SECONDS

SEGMENT_SECONDS = WORD_SECONDS  # a whole-segment engine is never busy with one listener for longer
SEGMENT_CODE_POINTS = 600  # bounds what is kept of a segment whose text is mostly not spoken
TEXT_CODE_POINTS = SEGMENT_CODE_POINTS + WORD_CODE_POINTS  # of a segment, but for white space around it
VALUE_CODE_POINTS = 200  # of what a mark says instead
FIRST_CLAUSE_WORDS = 4  # a first cut before the fourth word is heard as a stumble

LEAD_CODE_POINTS = 64  # punctuation before the first word of a segment that an engine is given
LEAD_SECONDS = 1.0

PARAGRAPH_SECONDS = 1.0  # pause at speed 1, as in joins.py

# A later segment that is too long is cut at its last clause, else before its last phrase, else at its last space, as
# shares of its length: not so early that text is read again and again, not so late that what remains is a stub.
CLAUSE_FROM_SECONDS = 0.4 * SEGMENT_SECONDS
PHRASE_FROM_SECONDS = 0.6 * SEGMENT_SECONDS
SPACE_UP_TO_SECONDS = 0.85 * SEGMENT_SECONDS

# The first segment is what the listener waits for: its computation grows with its length (the bundled voice: 12 ms for
# 7 words, 65 ms for 40), and so does the time the writer takes to produce it. 14 words play for about 4 s, longer than
# it takes to make what follows.
FIRST_WORDS = 14
FIRST_SECONDS = 5.0
FIRST_FORCED_WORDS = 12  # a cut at any space comes a little earlier, so that what remains is no stub
