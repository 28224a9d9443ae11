from voxgate.synth.segment import Boundary, Mark, MarkKind, Segment, without_margins

ALIAS = MarkKind.ALIAS


def test_white_space_around_a_segment_is_not_sent():
    segment = Segment(
        3, "  \n one two  ", 10, 22, Boundary.CLAUSE, Boundary.END, " zero, ", 0.5, (Mark(4, 7, ALIAS, "1"),)
    )

    bare = without_margins(segment)

    assert bare == Segment(3, "one two", 14, 21, Boundary.CLAUSE, Boundary.END, "zero,", 0.5, (Mark(0, 3, ALIAS, "1"),))
    assert without_margins(bare) == bare
